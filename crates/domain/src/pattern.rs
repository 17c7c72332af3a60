//! Patterns: how a value becomes the text on a document, and how that text is read back.
//!
//! A pattern is literal text and tokens in braces. Every token but the one `{seq}` has a fixed width, so
//! a text of a given length can be cut in only one way: reading back needs no search.

use std::fmt;

use jiff::civil::Date;

use crate::{
    MAX_VALUE,
    check::Check,
    period::{Period, Reset, quarter},
};

/// The longest pattern that is read.
const MAX_PATTERN: usize = 200;
/// The longest text that a series may make.
pub const MAX_TEXT: usize = 64;
/// As many digits as the largest value has.
const MAX_WIDTH: usize = 16;

/// What happens when a value no longer fits its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The series is exhausted.
    Refuse,
    /// The text grows by a digit.
    Widen,
}

impl Overflow {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Widen => "widen",
        }
    }

    /// Reads the word; none if there is no such policy.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Refuse, Self::Widen].into_iter().find(|policy| policy.word() == word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Literal(String),
    Year4,
    Year2,
    Month,
    Day,
    Quarter,
    /// The fiscal year's label, four digits.
    FiscalYear,
    /// Check digits over everything left of them.
    Check(Check),
    /// The value; padded with zeros to the width where there is one.
    Seq(Option<usize>),
}

/// A pattern that was read and understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    source: String,
    pub(crate) tokens: Vec<Token>,
}

/// Why a pattern was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {at}: {what}")]
pub struct PatternError {
    /// The place, counted in characters from 1.
    pub at: usize,
    /// What is wrong there and what would be right.
    pub what: String,
}

/// What a text says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The value.
    pub value: i64,
    /// The period it belongs to.
    pub period: Period,
}

impl Pattern {
    /// Reads a pattern; the error names the place.
    pub fn parse(source: &str) -> Result<Self, PatternError> {
        let length = source.chars().count();
        if !(1..=MAX_PATTERN).contains(&length) {
            return Err(wrong(1, format!("a pattern has 1 to {MAX_PATTERN} characters, this one has {length}")));
        }
        let mut tokens = Vec::new();
        let mut literal = String::new();
        let mut seq_at = None;
        let mut chars = source.chars().zip(1..).peekable();
        while let Some((c, at)) = chars.next() {
            match c {
                '{' if chars.next_if(|(next, _)| *next == '{').is_some() => literal.push('{'),
                '}' if chars.next_if(|(next, _)| *next == '}').is_some() => literal.push('}'),
                '}' => return Err(wrong(at, "a closing brace without an opening one; write }} for a brace in the text")),
                '{' => {
                    let mut name = String::new();
                    loop {
                        match chars.next() {
                            Some(('}', _)) => break,
                            Some(('{', inner)) => return Err(wrong(inner, "a brace inside a token")),
                            Some((c, _)) => name.push(c),
                            None => return Err(wrong(at, "this brace is never closed; write {{ for a brace in the text")),
                        }
                    }
                    let token = token(&name).map_err(|what| wrong(at, what))?;
                    if matches!(token, Token::Seq(_)) && seq_at.replace(at).is_some() {
                        return Err(wrong(at, "a second {seq}; a pattern has exactly one"));
                    }
                    if !literal.is_empty() {
                        tokens.push(Token::Literal(std::mem::take(&mut literal)));
                    }
                    if matches!(token, Token::Check(_)) && tokens.is_empty() {
                        return Err(wrong(at, "check digits cover what is left of them, and nothing is; put them further right"));
                    }
                    tokens.push(token);
                }
                ' '..='~' => literal.push(c),
                _ => {
                    let what =
                        format!("U+{:04X} is not printable ASCII; look-alikes and invisible characters are refused", c as u32);
                    return Err(wrong(at, what));
                }
            }
        }
        if !literal.is_empty() {
            tokens.push(Token::Literal(literal));
        }
        if seq_at.is_none() {
            return Err(wrong(length, "there is no {seq} or {seq:N}; a pattern has exactly one"));
        }
        if source.starts_with(' ') || source.ends_with(' ') {
            return Err(wrong(if source.starts_with(' ') { 1 } else { length }, "a text must not begin or end with a space"));
        }
        Ok(Self { source: source.to_owned(), tokens })
    }

    /// The text of a value on a date, or `None` where it does not fit the width. A fiscal year in it is that of the reset.
    pub fn render(&self, value: i64, date: Date, reset: Reset, overflow: Overflow) -> Option<String> {
        use std::fmt::Write;
        let mut text = String::with_capacity(24);
        for token in &self.tokens {
            match token {
                Token::Literal(literal) => {
                    text.push_str(literal);
                    Ok(())
                }
                Token::Year4 => write!(text, "{:04}", date.year()),
                Token::Year2 => write!(text, "{:02}", date.year() % 100),
                Token::Month => write!(text, "{:02}", date.month()),
                Token::Day => write!(text, "{:02}", date.day()),
                Token::Quarter => write!(text, "{}", quarter(date)),
                Token::FiscalYear => write!(text, "{:04}", reset.fiscal()?.year(date)),
                Token::Check(check) => {
                    let digits = check.of(&text);
                    text.push_str(&digits);
                    Ok(())
                }
                Token::Seq(width) => {
                    let before = text.len();
                    let done = write!(text, "{value:0width$}", width = width.unwrap_or(1));
                    if overflow == Overflow::Refuse && width.is_some_and(|width| text.len() - before > width) {
                        return None;
                    }
                    done
                }
            }
            .ok()?;
        }
        Some(text)
    }

    /// Reads a text back, or `None` if this pattern can't have made it under this reset.
    pub fn read(&self, text: &str, reset: Reset, overflow: Overflow) -> Option<Reading> {
        let digits = text.len().checked_sub(self.fixed_width())?;
        let mut parts = Parts::default();
        let mut rest = text;
        for token in &self.tokens {
            let width = token.width().unwrap_or(digits);
            let (part, after) = rest.split_at_checked(width)?;
            let left_of_it = &text[..text.len() - rest.len()];
            rest = after;
            match token {
                Token::Literal(literal) => (part == literal).then_some(())?,
                Token::Seq(width) => {
                    let fits = match width {
                        Some(width) => {
                            digits == *width || digits > *width && overflow == Overflow::Widen && !part.starts_with('0')
                        }
                        None => !part.starts_with('0') || part == "0",
                    };
                    parts.value = Some(number(part).filter(|_| fits)?);
                }
                Token::Year4 => same(&mut parts.year, number(part)?)?,
                Token::Year2 => same(&mut parts.short_year, number(part)?)?,
                Token::Month => same(&mut parts.month, number(part).filter(|m| (1..=12).contains(m))?)?,
                Token::Day => same(&mut parts.day, number(part).filter(|d| (1..=31).contains(d))?)?,
                Token::Quarter => same(&mut parts.quarter, number(part).filter(|q| (1..=4).contains(q))?)?,
                Token::FiscalYear => same(&mut parts.fiscal, number(part).filter(|year| *year > 0)?)?,
                Token::Check(check) => (part == check.of(left_of_it)).then_some(())?,
            }
        }
        let value = parts.value.filter(|value| *value <= MAX_VALUE)?;
        Some(Reading { value, period: parts.period(reset)? })
    }

    /// How long the text of a value is, or `None` where the value does not fit.
    pub fn length(&self, value: i64, reset: Reset, overflow: Overflow) -> Option<usize> {
        let any_day = Date::constant(2000, 1, 1);
        self.render(value, any_day, reset, overflow).map(|text| text.len())
    }

    /// Whether two periods of this reset always differ in their texts.
    pub fn tells_periods_apart(&self, reset: Reset) -> bool {
        let has = |token: &Token| self.tokens.contains(token);
        let year = has(&Token::Year4) || has(&Token::Year2);
        match reset {
            Reset::Never => true,
            Reset::Yearly => year,
            Reset::Quarterly => year && (has(&Token::Quarter) || has(&Token::Month)),
            Reset::Monthly => year && has(&Token::Month),
            Reset::Daily => year && has(&Token::Month) && has(&Token::Day),
            Reset::FiscalYear(fiscal) => {
                let month = has(&Token::Month) && (has(&Token::Day) || fiscal.begins_a_month());
                has(&Token::FiscalYear) || year && month
            }
        }
    }

    /// Whether it writes a fiscal year.
    pub fn has_fiscal_year(&self) -> bool {
        self.tokens.contains(&Token::FiscalYear)
    }

    /// Whether a year stands in the text.
    pub fn has_year(&self) -> bool {
        self.tokens.iter().any(|token| matches!(token, Token::Year4 | Token::Year2 | Token::FiscalYear))
    }

    /// Whether the year stands in the text with two digits and nowhere with four.
    pub fn has_short_year_alone(&self) -> bool {
        self.tokens.contains(&Token::Year2) && !self.tokens.contains(&Token::Year4)
    }

    /// The pattern as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How many characters every text has beside its value.
    pub(crate) fn fixed_width(&self) -> usize {
        self.tokens.iter().filter_map(Token::width).sum()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl Token {
    /// The fixed width; none for the value, which takes what is left.
    pub(crate) fn width(&self) -> Option<usize> {
        match self {
            Self::Literal(text) => Some(text.len()),
            Self::Year4 | Self::FiscalYear => Some(4),
            Self::Year2 | Self::Month | Self::Day => Some(2),
            Self::Quarter => Some(1),
            Self::Check(check) => Some(check.width()),
            Self::Seq(_) => None,
        }
    }
}

/// The date tokens found while reading; tokens that repeat must agree.
#[derive(Default)]
struct Parts {
    value: Option<i64>,
    year: Option<i64>,
    short_year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    quarter: Option<i64>,
    fiscal: Option<i64>,
}

impl Parts {
    fn period(&self, reset: Reset) -> Option<Period> {
        // A two-digit year is read in this century: what it stood for is not in the text.
        let year = match (self.year, self.short_year) {
            (Some(year), Some(short)) if year % 100 != short => return None,
            // No document is of the year 0.
            (Some(0), _) => return None,
            (year, short) => year.or(short.map(|short| 2000 + short)),
        };
        let quarter_of = |month: i64| (month - 1) / 3 + 1;
        let quarter = match (self.quarter, self.month) {
            (Some(quarter), Some(month)) if quarter_of(month) != quarter => return None,
            (quarter, month) => quarter.or(month.map(quarter_of)),
        };
        let day_of = |day: i64| {
            let (year, month) = (i16::try_from(year?).ok()?, i8::try_from(self.month?).ok()?);
            Date::new(year, month, i8::try_from(day).ok()?).ok()
        };
        if let (Some(_), Some(_), Some(day)) = (year, self.month, self.day) {
            day_of(day)?;
        }
        if let Reset::FiscalYear(fiscal) = reset {
            // A month belongs to one fiscal year only where that begins with a month.
            let day = self.day.or(fiscal.begins_a_month().then_some(1));
            let of_date = day.and_then(day_of).map(|date| i64::from(fiscal.year(date)));
            return match (self.fiscal, of_date) {
                (Some(said), Some(year)) if said != year => None,
                (said, year) => Some(Period::named(format!("FY{:04}", said.or(year)?))),
            };
        }
        Some(Period::named(match reset {
            Reset::Never => "all".to_owned(),
            Reset::Yearly => format!("{:04}", year?),
            Reset::Quarterly => format!("{:04}-Q{}", year?, quarter?),
            Reset::Monthly => format!("{:04}-{:02}", year?, self.month?),
            Reset::Daily => format!("{:04}-{:02}-{:02}", year?, self.month?, self.day?),
            Reset::FiscalYear(_) => return None,
        }))
    }
}

fn token(name: &str) -> Result<Token, String> {
    Ok(match name {
        "yyyy" => Token::Year4,
        "yy" => Token::Year2,
        "mm" => Token::Month,
        "dd" => Token::Day,
        "q" => Token::Quarter,
        "seq" => Token::Seq(None),
        "fy" => Token::FiscalYear,
        "check:mod97" => Token::Check(Check::Mod97),
        "check:luhn" => Token::Check(Check::Luhn),
        "part" | "prefix" => {
            return Err(format!("{{{name}}} is not available in this version"));
        }
        _ => match name.strip_prefix("seq:") {
            Some(width) => {
                let plain = width.bytes().all(|b| b.is_ascii_digit()) && !width.starts_with('0');
                let width = width.parse().ok().filter(|width| plain && (1..=MAX_WIDTH).contains(width));
                Token::Seq(Some(width.ok_or(format!("the width of {{seq:N}} is a number from 1 to {MAX_WIDTH}"))?))
            }
            None => {
                return Err(format!(
                    "{{{}}} is no token; there are yyyy, yy, mm, dd, q, fy, seq, seq:N, check:mod97 and check:luhn",
                    name.escape_default()
                ));
            }
        },
    })
}

fn wrong(at: usize, what: impl Into<String>) -> PatternError {
    PatternError { at, what: what.into() }
}

fn number(digits: &str) -> Option<i64> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn same(slot: &mut Option<i64>, value: i64) -> Option<()> {
    (*slot.get_or_insert(value) == value).then_some(())
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::period::tests::resets;

    fn pattern(source: &str) -> Pattern {
        Pattern::parse(source).unwrap()
    }

    #[test]
    fn texts_of_all_tokens() {
        let day = date(2026, 11, 5);
        let text = |source: &str, value| pattern(source).render(value, day, Reset::Never, Overflow::Refuse);
        assert_eq!(text("ABC{yyyy}{seq:9}", 1).unwrap(), "ABC2026000000001");
        assert_eq!(text("{yy}/{mm}/{dd}/{q}-{seq}", 42).unwrap(), "26/11/05/4-42");
        assert_eq!(text("{{{seq:2}}}", 7).unwrap(), "{07}");
    }

    #[test]
    fn a_width_is_never_cut() {
        let day = date(2026, 1, 1);
        let four = pattern("{seq:4}");
        assert_eq!(four.render(9999, day, Reset::Never, Overflow::Refuse).unwrap(), "9999");
        assert_eq!(four.render(10000, day, Reset::Never, Overflow::Refuse), None);
        assert_eq!(four.render(10000, day, Reset::Never, Overflow::Widen).unwrap(), "10000");
    }

    #[test]
    fn errors_name_the_place() {
        for (source, at) in [
            ("", 1),
            ("ABC", 3),
            ("{seq}{seq}", 6),
            ("A{nope}{seq}", 2),
            ("A{seq", 2),
            ("A}{seq}", 2),
            ("{se{q}", 4),
            ("A{seq:0}", 2),
            ("A{seq:17}", 2),
            ("A{seq:+4}", 2),
            ("АВС{seq}", 1),
            ("A\u{200b}{seq}", 2),
            (" {seq}", 1),
            ("{seq} ", 6),
            ("{part}{seq}", 1),
            ("{check:luhn}{seq}", 1),
            ("{seq}{check:crc}", 6),
        ] {
            assert_eq!(Pattern::parse(source).unwrap_err().at, at, "{source:?}");
        }
        assert!(Pattern::parse(&"x".repeat(10_000)).is_err());
    }

    /// Random patterns from a fixed seed: whatever is rendered is read back as the same value and period,
    /// and no text of another length or with one digit changed into a letter is taken for it.
    #[test]
    fn what_is_rendered_is_read_back() {
        let mut seed = 0x5eed_u64;
        let mut draw = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let pieces = [
            "{yyyy}",
            "{yy}",
            "{mm}",
            "{dd}",
            "{q}",
            "{fy}",
            "{check:luhn}",
            "{check:mod97}",
            "A",
            "7",
            "-",
            "/",
            "{{",
            "}}",
            "x 1",
        ];
        for _ in 0..20_000 {
            let mut source = String::new();
            for _ in 0..draw(5) {
                source.push_str(pieces[usize::try_from(draw(15)).unwrap()]);
            }
            let seq = ["{seq}".to_owned(), format!("{{seq:{}}}", 1 + draw(16))];
            source.push_str(&seq[usize::try_from(draw(2)).unwrap()]);
            for _ in 0..draw(5) {
                source.push_str(pieces[usize::try_from(draw(15)).unwrap()]);
            }
            let Ok(pattern) = Pattern::parse(&source) else { continue };
            let month = i8::try_from(1 + draw(12)).unwrap();
            let day = date(2000 + i16::try_from(draw(100)).unwrap(), month, i8::try_from(1 + draw(28)).unwrap());
            let value = i64::try_from(draw(1 << 31) >> draw(31)).unwrap();
            let overflow = if draw(2) == 0 { Overflow::Refuse } else { Overflow::Widen };
            for reset in resets().into_iter().filter(|reset| pattern.tells_periods_apart(*reset)) {
                let Some(text) = pattern.render(value, day, reset, overflow) else { continue };
                let reading = Reading { value, period: Period::of(reset, day) };
                assert_eq!(pattern.read(&text, reset, overflow), Some(reading), "{source} {text}");
                assert_eq!(pattern.read(&text.replacen(|c: char| c.is_ascii_digit(), "x", 1), reset, overflow), None);
            }
        }
    }

    #[test]
    fn a_check_digit_finds_a_slip() {
        let made =
            pattern("INV{yyyy}-{seq:5}-{check:mod97}").render(42, date(2026, 1, 1), Reset::Never, Overflow::Refuse).unwrap();
        let read = |text: &str| pattern("INV{yyyy}-{seq:5}-{check:mod97}").read(text, Reset::Never, Overflow::Refuse);
        assert_eq!(read(&made).unwrap().value, 42);
        // One digit wrong, or two swapped, is found.
        assert_eq!(read(&made.replace("00042", "00043")), None);
        assert_eq!(read(&made.replace("00042", "00024")), None);
    }

    #[test]
    fn what_can_not_be_made_is_not_read() {
        let read = |source: &str, text: &str| pattern(source).read(text, Reset::Never, Overflow::Refuse);
        assert_eq!(read("A{seq:4}", "A00001"), None);
        assert_eq!(read("A{seq}", "A01"), None);
        assert_eq!(read("A{seq}", "A"), None);
        assert_eq!(read("A{seq}", "B1"), None);
        assert_eq!(read("A{mm}{seq}", "A131"), None);
        assert_eq!(read("{yyyy}{yy}{seq}", "2026251"), None);
        assert_eq!(read("{yyyy}{mm}{dd}{seq}", "202602301"), None);
        assert_eq!(read("{seq}", "9007199254740992"), None);
        assert_eq!(read("{seq}A", "1é"), None);
    }
}
