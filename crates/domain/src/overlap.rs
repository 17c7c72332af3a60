//! Can two patterns make the same text?
//!
//! For a given length each pattern is a row of character classes (its one variable part takes what is
//! left), so two patterns meet exactly where, for some length, every place has a character in common. Date
//! tokens are taken digit by digit, so the answer errs on the side of "yes".

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
    /// The first character of both.
    fn common(&self, other: &Self) -> Option<char> {
        let (low, high) = (self.0.max(other.0), self.1.min(other.1));
        (low <= high).then_some(low)
    }
}

fn classes(pattern: &Pattern, overflow: Overflow, length: usize) -> Option<Vec<Class>> {
    let digits = length.checked_sub(pattern.fixed_width()).filter(|digits| *digits > 0)?;
    let mut row = Vec::with_capacity(length);
    for token in &pattern.tokens {
        match token {
            Token::Literal(text) => row.extend(text.chars().map(|c| Class(c, c))),
            Token::Year4 => row.extend((0..4).map(|_| Class('0', '9'))),
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
                row.push(Class(if padded { '0' } else { '1' }, '9'));
                row.extend((1..digits).map(|_| Class('0', '9')));
            }
        }
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(a: &str, b: &str) -> Option<String> {
        let (a, b) = (Pattern::parse(a).unwrap(), Pattern::parse(b).unwrap());
        let there = overlap((&a, Overflow::Refuse), (&b, Overflow::Refuse));
        let back = overlap((&b, Overflow::Refuse), (&a, Overflow::Refuse));
        assert_eq!(there.is_some(), back.is_some());
        there
    }

    #[test]
    fn patterns_that_meet() {
        assert_eq!(meet("A{seq:4}", "A{seq:4}").as_deref(), Some("A0000"));
        assert!(meet("A{seq}", "A1{seq}").is_some());
        assert!(meet("A{yyyy}{seq:4}", "A{seq:8}").is_some());
        assert!(meet("{seq}{mm}", "{seq}").is_some());
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
