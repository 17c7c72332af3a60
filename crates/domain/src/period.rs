//! Periods: the slices of time in which counting restarts.

use std::fmt;

use jiff::civil::Date;

/// When a series begins again at its first value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// One period, `all`.
    Never,
    /// `2026`.
    Yearly,
    /// `2026-Q1`.
    Quarterly,
    /// `2026-01`.
    Monthly,
    /// `2026-01-31`.
    Daily,
    /// `FY2026`.
    FiscalYear(Fiscal),
}

/// A fiscal year: when it begins and what it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fiscal {
    month: i8,
    day: i8,
    label: Label,
}

/// Which of its calendar years a fiscal year is called after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// That of its first day.
    Start,
    /// That of its last day.
    End,
}

impl Label {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
        }
    }

    /// Reads the word; none if there is no such label.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Start, Self::End].into_iter().find(|label| label.word() == word)
    }
}

impl Fiscal {
    /// A year that begins on this day (`MM-DD`) each year; none on a day that not every year has.
    pub fn parse(starts: &str, label: Label) -> Option<Self> {
        // 2001 had no 29 February.
        let first = parse_date(&format!("2001-{starts}")).ok()?;
        Some(Self { month: first.month(), day: first.day(), label })
    }

    /// Its first day, as `MM-DD`.
    pub fn starts(self) -> String {
        format!("{:02}-{:02}", self.month, self.day)
    }

    /// What it is called after.
    pub fn label(self) -> Label {
        self.label
    }

    /// Whether it begins with a month, so that a month belongs to one year.
    pub fn begins_a_month(self) -> bool {
        self.day == 1
    }

    /// The label of the year that a date belongs to.
    pub fn year(self, date: Date) -> i16 {
        let begun = (date.month(), date.day()) >= (self.month, self.day);
        let start = if begun { date.year() } else { date.year() - 1 };
        // One that begins on 1 January ends in the year in which it began.
        let spans = (self.month, self.day) != (1, 1);
        if self.label == Label::End && spans { start + 1 } else { start }
    }
}

impl Reset {
    /// The words of every reset, for tables and messages.
    pub const WORDS: [&str; 6] = ["never", "yearly", "quarterly", "monthly", "daily", "fiscal_year"];

    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Yearly => "yearly",
            Self::Quarterly => "quarterly",
            Self::Monthly => "monthly",
            Self::Daily => "daily",
            Self::FiscalYear(_) => "fiscal_year",
        }
    }

    /// Reads the word; `fiscal` goes with `fiscal_year` and with nothing else. None if there is no such reset.
    pub fn from_word(word: &str, fiscal: Option<Fiscal>) -> Option<Self> {
        Some(match (word, fiscal) {
            ("never", None) => Self::Never,
            ("yearly", None) => Self::Yearly,
            ("quarterly", None) => Self::Quarterly,
            ("monthly", None) => Self::Monthly,
            ("daily", None) => Self::Daily,
            ("fiscal_year", Some(fiscal)) => Self::FiscalYear(fiscal),
            _ => return None,
        })
    }

    /// The fiscal year, where that is what counts.
    pub fn fiscal(self) -> Option<Fiscal> {
        match self {
            Self::FiscalYear(fiscal) => Some(fiscal),
            _ => None,
        }
    }

    /// Whether a period of this name can be: one that some date belongs to.
    pub fn makes(self, period: &Period) -> bool {
        let name = period.as_str();
        let day = match self {
            Self::Never => return name == "all",
            Self::Yearly => format!("{name}-01-01"),
            Self::Quarterly => match name.split_once("-Q") {
                Some((year, quarter @ ("1" | "2" | "3" | "4"))) => {
                    format!("{year}-{:02}-01", quarter.parse::<u8>().unwrap_or(0) * 3)
                }
                _ => return false,
            },
            Self::Monthly => format!("{name}-01"),
            Self::Daily => name.to_owned(),
            Self::FiscalYear(_) => match name.strip_prefix("FY") {
                Some(year) => format!("{year}-01-01"),
                None => return false,
            },
        };
        parse_date(&day).is_ok()
    }
}

/// The name of a period, the last part of a counter's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Period(String);

impl Period {
    /// The period that a document of this date belongs to.
    pub fn of(reset: Reset, date: Date) -> Self {
        let (y, m, d) = (date.year(), date.month(), date.day());
        Self(match reset {
            Reset::Never => "all".to_owned(),
            Reset::Yearly => format!("{y:04}"),
            Reset::Quarterly => format!("{y:04}-Q{}", quarter(date)),
            Reset::Monthly => format!("{y:04}-{m:02}"),
            Reset::Daily => format!("{y:04}-{m:02}-{d:02}"),
            Reset::FiscalYear(fiscal) => format!("FY{:04}", fiscal.year(date)),
        })
    }

    /// Takes a name as stored or asked for. It is only ever compared, so any short text will do.
    pub fn named(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The quarter of the year, 1 to 4.
pub fn quarter(date: Date) -> i8 {
    (date.month() - 1) / 3 + 1
}

/// Reads a document date: RFC 3339 full-date, years 0001 to 9999, a day that exists.
pub fn parse_date(raw: &str) -> Result<Date, String> {
    let shape =
        raw.len() == 10 && raw.bytes().enumerate().all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() });
    let date = shape.then(|| raw.parse::<Date>().ok()).flatten().filter(|date| date.year() >= 1);
    date.ok_or_else(|| "must be a date that exists, as YYYY-MM-DD".to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use jiff::civil::date;

    use super::*;

    /// Every reset, with a fiscal year from April that is called after its end.
    pub(crate) fn resets() -> [Reset; 6] {
        let fiscal = Fiscal::parse("04-01", Label::End).unwrap();
        [Reset::Never, Reset::Yearly, Reset::Quarterly, Reset::Monthly, Reset::Daily, Reset::FiscalYear(fiscal)]
    }

    #[test]
    fn periods_are_named_by_their_reset() {
        let day = date(2026, 1, 31);
        let names: Vec<_> = resets().iter().map(|r| Period::of(*r, day).to_string()).collect();
        assert_eq!(names, ["all", "2026", "2026-Q1", "2026-01", "2026-01-31", "FY2026"]);
        assert_eq!(resets().map(Reset::word), Reset::WORDS);
        assert_eq!(Period::of(Reset::Quarterly, date(2026, 12, 1)).as_str(), "2026-Q4");
    }

    #[test]
    fn a_period_is_one_that_a_date_belongs_to() {
        let made = |reset: Reset, names: &[&str]| names.iter().all(|name| reset.makes(&Period::named(*name)));
        let none = |reset: Reset, names: &[&str]| !names.iter().any(|name| reset.makes(&Period::named(*name)));
        for reset in resets() {
            assert!(reset.makes(&Period::of(reset, date(2024, 2, 29))), "{reset:?}");
        }
        assert!(made(Reset::Quarterly, &["2026-Q1", "2026-Q4"]) && none(Reset::Quarterly, &["2026-Q5", "2026-Q0", "2026", "Q1"]));
        assert!(none(Reset::Never, &["ALL", "2026", ""]) && none(Reset::Yearly, &["all", "26", "0000", "2026-01", "20261"]));
        assert!(none(Reset::Monthly, &["2026-13", "2026-1", "2026"]) && none(Reset::Daily, &["2026-02-29", "2026-01"]));
    }

    #[test]
    fn a_fiscal_year_is_called_after_its_start_or_its_end() {
        let year = |starts: &str, label, y, m, d| Fiscal::parse(starts, label).unwrap().year(date(y, m, d));
        assert_eq!((year("04-01", Label::Start, 2026, 3, 31), year("04-01", Label::Start, 2026, 4, 1)), (2025, 2026));
        assert_eq!((year("04-01", Label::End, 2026, 3, 31), year("04-01", Label::End, 2026, 4, 1)), (2026, 2027));
        // October to September.
        assert_eq!((year("10-01", Label::End, 2026, 9, 30), year("10-01", Label::End, 2026, 10, 1)), (2026, 2027));
        assert_eq!((year("10-01", Label::Start, 2026, 9, 30), year("10-01", Label::Start, 2026, 10, 1)), (2025, 2026));
        assert_eq!((year("01-01", Label::Start, 2026, 1, 1), year("01-01", Label::End, 2026, 12, 31)), (2026, 2026));
        assert_eq!(year("03-01", Label::Start, 2024, 2, 29), 2023);
        for bad in ["02-29", "13-01", "4-1", "04-31", "", "0401"] {
            assert_eq!(Fiscal::parse(bad, Label::Start), None, "{bad}");
        }
    }

    #[test]
    fn dates_are_strict() {
        assert_eq!(parse_date("2024-02-29"), Ok(date(2024, 2, 29)));
        for bad in [
            "",
            "0000-00-00",
            "0000-01-01",
            "20261-01-01",
            "2026-02-29",
            "2026-1-1",
            "20260101",
            "2026-01-01T00:00:00Z",
            "+2026-1-01",
        ] {
            assert!(parse_date(bad).is_err(), "{bad}");
        }
    }
}
