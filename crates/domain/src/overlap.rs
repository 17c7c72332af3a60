//! Can two patterns make the same text?
//!
//! For a given length each pattern is a row of character classes (its one variable part takes what is
//! left), so two patterns meet exactly where, for some length, every place has a character in common. Date
//! and check tokens are taken digit by digit, and letters whatever their case, so the answer errs on the side of "yes": to a
//! person, and to many a system that numbers go into, `abc1` is `ABC1`.

use crate::pattern::{MAX_TEXT, Overflow, Pattern, Token};

/// A text that both patterns could make, or `None` if there is none.
pub fn overlap(a: (&Pattern, Overflow), b: (&Pattern, Overflow)) -> Option<String> {
    (1..=MAX_TEXT).find_map(|length| {
        let (left, right) = (classes(a.0, a.1, length)?, classes(b.0, b.1, length)?);
        left.iter().zip(&right).map(|(x, y)| x.common(y)).collect()
    })
}

/// The characters that may stand at one place, both ends included.
struct Class(char, char);

impl Class {
    /// A character of both.
    fn common(&self, other: &Self) -> Option<char> {
        let (low, high) = (self.0.max(other.0), self.1.min(other.1));
        // A one where it may be: a month, a day or a quarter of only zeros would be no example.
        let one = (low..=high).contains(&'1').then_some('1');
        one.or((low <= high).then_some(low))
    }
}

fn classes(pattern: &Pattern, overflow: Overflow, length: usize) -> Option<Vec<Class>> {
    let digits = length.checked_sub(pattern.fixed_width()).filter(|digits| *digits > 0)?;
    let mut row = Vec::with_capacity(length);
    for token in &pattern.tokens {
        match token {
            Token::Literal(text) => row.extend(text.chars().map(|c| c.to_ascii_uppercase()).map(|c| Class(c, c))),
            Token::Year4 | Token::FiscalYear => row.extend((0..4).map(|_| Class('0', '9'))),
            Token::Check(_) => row.extend((0..token.width().unwrap_or_default()).map(|_| Class('0', '9'))),
            Token::Year2 => row.extend((0..2).map(|_| Class('0', '9'))),
            Token::Month => row.extend([Class('0', '1'), Class('0', '9')]),
            Token::Day => row.extend([Class('0', '3'), Class('0', '9')]),
            Token::Quarter => row.push(Class('1', '4')),
            Token::Seq(width) => {
                let padded = width.is_some_and(|width| width == digits);
                let grown = width.is_none_or(|width| digits > width && overflow == Overflow::Widen);
                if !padded && !grown {
                    return None;
                }
                // Without a width, zero is the one value that begins with a zero.
                let zero = padded || width.is_none() && digits == 1;
                row.push(Class(if zero { '0' } else { '1' }, '9'));
                row.extend((1..digits).map(|_| Class('0', '9')));
            }
        }
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use jiff::civil::Date;

    use super::*;
    use crate::period::tests::resets;

    fn meet(a: &str, b: &str) -> Option<String> {
        let (a, b) = (Pattern::parse(a).unwrap(), Pattern::parse(b).unwrap());
        let there = overlap((&a, Overflow::Refuse), (&b, Overflow::Refuse));
        let back = overlap((&b, Overflow::Refuse), (&a, Overflow::Refuse));
        assert_eq!(there.is_some(), back.is_some());
        there
    }

    #[test]
    fn patterns_that_meet() {
        assert_eq!(meet("A{seq:4}", "A{seq:4}").as_deref(), Some("A1111"));
        assert!(meet("A{seq}", "A1{seq}").is_some());
        assert!(meet("A{yyyy}{seq:4}", "A{seq:8}").is_some());
        assert!(meet("{seq}{mm}", "{seq}").is_some());
        assert!(meet("A{fy}{seq:2}", "a{seq:6}").is_some());
        assert!(meet("A{seq:2}{check:mod97}", "A{seq:4}").is_some());
    }

    /// Random patterns over few pieces, so that they often meet: wherever two make the same text, the answer
    /// must have been yes.
    #[test]
    fn whatever_meets_was_foreseen() {
        let mut seed = 0x5eed_u64;
        let mut draw = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((seed >> 33) % below).unwrap()
        };
        let pieces = ["{yy}", "{mm}", "{dd}", "{q}", "1", "0", "A", "{fy}"];
        let fiscal = resets()[5];
        let mut made: HashMap<String, Vec<(Pattern, Overflow)>> = HashMap::new();
        for _ in 0..40_000 {
            let at = draw(3);
            let piece = |place| if place == at { ["{seq}", "{seq:1}", "{seq:2}"][draw(3)] } else { pieces[draw(8)] };
            let source: String = (0..3).map(piece).collect();
            let overflow = [Overflow::Refuse, Overflow::Widen][draw(2)];
            let (year, month, day) = (2010 + draw(3), 1 + draw(12), 1 + draw(28));
            let day = Date::new(year.try_into().unwrap(), month.try_into().unwrap(), day.try_into().unwrap()).unwrap();
            let pattern = Pattern::parse(&source).unwrap();
            if let Some(text) = pattern.render(draw(120).try_into().unwrap(), day, fiscal, overflow) {
                made.entry(text).or_default().push((pattern, overflow));
            }
        }
        let mut met = 0;
        for (text, patterns) in &made {
            for (a, b) in patterns.iter().zip(&patterns[1..]) {
                met += u32::from(a.0 != b.0);
                assert!(overlap((&a.0, a.1), (&b.0, b.1)).is_some(), "{} and {} both make {text}", a.0, b.0);
            }
        }
        assert!(met > 1_000, "only {met} pairs met: the test proves nothing");
    }

    #[test]
    fn patterns_that_never_meet() {
        assert_eq!(meet("A{seq:4}", "B{seq:4}"), None);
        assert_eq!(meet("A{seq:4}", "A{seq:5}"), None);
        assert_eq!(meet("A{seq}", "A-{seq}"), None);
        assert_eq!(meet("{q}{seq:3}", "9{seq:3}"), None);
        assert_eq!(meet("A{seq}", "A0{seq:3}"), None);
    }
}
