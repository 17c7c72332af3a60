//! Check digits: what a slip of the hand breaks.

/// How check digits are computed. They cover the letters and digits left of them, a letter as 10 to 35 whatever its case;
/// other characters count for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Two digits, ISO/IEC 7064 MOD 97-10.
    Mod97,
    /// One digit, ISO/IEC 7812-1 annex B (Luhn).
    Luhn,
}

impl Check {
    /// How many digits.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Mod97 => 2,
            Self::Luhn => 1,
        }
    }

    /// The check digits of a text.
    pub(crate) fn of(self, text: &str) -> String {
        let values = text.chars().filter_map(|c| c.to_digit(36));
        // A letter is two digits.
        let digits = values.flat_map(|value| [(value >= 10).then_some(value / 10), Some(value % 10)]).flatten();
        match self {
            Self::Mod97 => format!("{:02}", 98 - digits.chain([0, 0]).fold(0, |rest, digit| (rest * 10 + digit) % 97)),
            Self::Luhn => {
                let digits: Vec<u32> = digits.collect();
                let doubled = |(place, digit): (usize, &u32)| match digit * 2 {
                    twice if place % 2 == 0 => twice / 10 + twice % 10,
                    _ => *digit,
                };
                let sum: u32 = digits.iter().rev().enumerate().map(doubled).sum();
                format!("{}", (10 - sum % 10) % 10)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the standards and of what is printed elsewhere.
    #[test]
    fn check_digits() {
        assert_eq!(Check::Mod97.of("794"), "44", "ISO/IEC 7064, MOD 97-10");
        assert_eq!(Check::Mod97.of("539007547034RF"), "18", "ISO 11649: RF18 5390 0754 7034");
        assert_eq!(Check::Mod97.of("RE-2026/0001"), Check::Mod97.of("re20260001"));
        assert_eq!(Check::Luhn.of("7992739871"), "3");
        assert_eq!(Check::Luhn.of("455673758689985"), "5");
        assert_eq!(Check::Luhn.of("US037833100"), "5", "the ISIN US0378331005");
    }
}
