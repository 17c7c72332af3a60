//! A series: a named run of numbers and the settings that decide them.

mod choice;
mod draft;

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

use crate::{
    MAX_VALUE,
    id::{IssuerName, SeriesName},
    pattern::{Overflow, Pattern},
    period::{Period, Reset},
};

pub use choice::{Chronology, Overdue, Release, Status};
pub use draft::{Draft, FieldError, MAX_DAYS_AHEAD, MAX_TTL};

/// What decides the numbers of a series. Checked as a whole: each setting fits the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The legal entity whose texts must not collide.
    pub issuer: IssuerName,
    /// How a value becomes a text.
    pub pattern: Pattern,
    /// When counting begins again.
    pub reset: Reset,
    /// An IANA zone; it decides which day it is where the document is dated today.
    pub time_zone: String,
    /// The first value of every period.
    pub first: i64,
    /// False allows values to be skipped by an explained jump.
    pub gapless: bool,
    /// What happens when a value no longer fits its width.
    pub overflow: Overflow,
    /// The longest text allowed, in characters.
    pub max_length: i32,
    /// Whether a document may be dated before one with a lower number.
    pub chronology: Chronology,
    /// How many days after today, in its zone, a document may be dated; none is any.
    pub max_days_ahead: Option<i64>,
    /// Whether a number that never left the house may go back.
    pub release: Release,
    /// How long a reservation may stay one, in seconds; none is for as long as it takes.
    pub reservation_ttl_seconds: Option<i64>,
    /// What becomes of a reservation that stayed longer.
    pub reservation_overdue: Overdue,
}

/// A series as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Its code.
    pub name: SeriesName,
    /// What decides its numbers.
    pub settings: Settings,
    /// Whether it takes issues.
    pub status: Status,
    /// Counts changes; a counter carries the version that its numbers are rendered with.
    pub version: i64,
}

impl Settings {
    fn check_fit(&self) -> Result<(), FieldError> {
        if self.pattern.has_fiscal_year() && self.reset.fiscal().is_none() {
            return Err(FieldError::new("/pattern", "has {fy}, which needs reset fiscal_year; write {yyyy} or {yy}"));
        }
        if !self.pattern.tells_periods_apart(self.reset) {
            let need = match self.reset {
                Reset::Never => "",
                Reset::Yearly => "{yyyy} or {yy}",
                Reset::Quarterly => "the year and {q} or {mm}",
                Reset::Monthly => "the year and {mm}",
                Reset::Daily => "the year, {mm} and {dd}",
                Reset::FiscalYear(_) => "{fy}",
            };
            let detail = format!(
                "with reset {} the texts would repeat: put {need} into the pattern, or choose reset never",
                self.reset.word()
            );
            return Err(FieldError::new("/pattern", detail));
        }
        match self.pattern.length(self.first, self.reset, self.overflow) {
            None => {
                Err(FieldError::new("/first", "does not fit the width of {seq:N}; widen the pattern or choose overflow widen"))
            }
            Some(length) if i32::try_from(length).is_ok_and(|length| length <= self.max_length) => Ok(()),
            Some(length) => {
                let detail = format!("the first text has {length} characters, more than max_length {}", self.max_length);
                Err(FieldError::new("/pattern", detail))
            }
        }
    }

    /// The date of a document that names none: today in the series' zone.
    pub fn today(&self, at: Timestamp) -> Date {
        // The zone was checked when the series was created and the zone database is part of the program.
        let zone = TimeZone::get(&self.time_zone).unwrap_or(TimeZone::UTC);
        zone.to_datetime(at).date()
    }

    /// The period of a date.
    pub fn period(&self, date: Date) -> Period {
        Period::of(self.reset, date)
    }

    /// Until when a reservation of this instant may stay one.
    pub fn due(&self, at: Timestamp) -> Option<Timestamp> {
        self.reservation_ttl_seconds.and_then(|ttl| at.checked_add(SignedDuration::from_secs(ttl)).ok())
    }

    /// The text of a value on a date, or `None` where width or `max_length` forbid it.
    pub fn text(&self, value: i64, date: Date) -> Option<String> {
        let text = self.pattern.render(value, date, self.reset, self.overflow)?;
        i32::try_from(text.len()).is_ok_and(|length| length <= self.max_length).then_some(text)
    }

    /// Whether a value can have a text at all.
    pub fn fits(&self, value: i64) -> bool {
        let length = self.pattern.length(value, self.reset, self.overflow).filter(|_| value <= MAX_VALUE);
        length.is_some_and(|length| i32::try_from(length).is_ok_and(|length| length <= self.max_length))
    }

    /// The same settings as they would be asked for.
    pub fn draft(&self) -> Draft {
        Draft {
            issuer: self.issuer.to_string(),
            pattern: self.pattern.source().to_owned(),
            reset: self.reset.word().to_owned(),
            fiscal_year: self.reset.fiscal().map(|fiscal| (fiscal.starts(), fiscal.label().word().to_owned())),
            time_zone: self.time_zone.clone(),
            first: self.first,
            gapless: self.gapless,
            overflow: self.overflow.word().to_owned(),
            max_length: self.max_length,
            chronology: self.chronology.word().to_owned(),
            max_days_ahead: self.max_days_ahead,
            release: self.release.word().to_owned(),
            reservation_ttl_seconds: self.reservation_ttl_seconds,
            reservation_overdue: self.reservation_overdue.word().to_owned(),
        }
    }

    /// What is allowed and mostly not meant, as sentences.
    pub fn warnings(&self) -> Vec<String> {
        let goes_on = self.reset == Reset::Never && self.pattern.has_year();
        let warning = "the pattern has the year, and with reset never the value goes on over its end; choose reset yearly if \
                       counting is to begin again";
        goes_on.then(|| warning.to_owned()).into_iter().collect()
    }

    /// Whether a document of this date can have a number here; otherwise what would be right. A year of two digits
    /// can't say its century: a date of another one, most often a slip, would take the texts of this one's.
    pub fn check_date(&self, date: Date, at: Timestamp) -> Result<(), String> {
        if let Some(days) = self.max_days_ahead {
            let latest = self.today(at).checked_add(jiff::Span::new().days(days)).unwrap_or(Date::MAX);
            if date > latest {
                return Err(format!(
                    "is too far ahead: with max_days_ahead {days} the latest date today is {latest}; wait, or correct the date"
                ));
            }
        }
        if self.pattern.has_short_year_alone() && !(2000..=2099).contains(&date.year()) {
            return Err(format!(
                "the pattern {} writes the year with two digits, for 2000 to 2099, so it can't tell {} from another century; \
                 correct the date, or use a pattern with {{yyyy}}",
                self.pattern,
                date.year()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use jiff::civil::date;

    use super::*;

    pub(crate) fn draft(pattern: &str, reset: &str) -> Draft {
        Draft {
            issuer: "default".into(),
            pattern: pattern.into(),
            reset: reset.into(),
            time_zone: "Europe/Istanbul".into(),
            first: 1,
            gapless: true,
            overflow: "refuse".into(),
            max_length: 16,
            chronology: "none".into(),
            fiscal_year: None,
            max_days_ahead: None,
            release: "never".into(),
            reservation_ttl_seconds: None,
            reservation_overdue: "alarm".into(),
        }
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        let bad = Draft {
            issuer: "No Body".into(),
            pattern: "{seq".into(),
            reset: "weekly".into(),
            time_zone: "Mars/Olympus".into(),
            first: MAX_VALUE + 1,
            gapless: true,
            overflow: "wrap".into(),
            max_length: 0,
            chronology: "loose".into(),
            fiscal_year: None,
            max_days_ahead: Some(-1),
            release: "always".into(),
            reservation_ttl_seconds: Some(0),
            reservation_overdue: "forget".into(),
        };
        let pointers: Vec<_> = bad.check().unwrap_err().into_iter().map(|e| e.pointer).collect();
        assert_eq!(
            pointers,
            [
                "/issuer",
                "/pattern",
                "/reset",
                "/overflow",
                "/chronology",
                "/max_days_ahead",
                "/release",
                "/reservation_ttl_seconds",
                "/reservation_overdue",
                "/time_zone",
                "/first",
                "/max_length"
            ]
        );
    }

    #[test]
    fn settings_must_fit_each_other() {
        assert!(draft("ABC{yyyy}{seq:9}", "yearly").check().is_ok());
        assert!(Draft { time_zone: "europe/istanbul".into(), ..draft("A{yyyy}{seq:9}", "yearly") }.check().is_err());
        assert!(Draft { time_zone: "UTC".into(), ..draft("A{yyyy}{seq:9}", "yearly") }.check().is_ok());
        assert!(draft("A{seq:9}", "yearly").check().is_err());
        assert!(draft("A{yyyy}{seq:5}", "monthly").check().is_err());
        assert!(draft("ABCD{yyyy}{seq:9}", "yearly").check().is_err(), "17 characters");
        assert!(Draft { first: 10_000, ..draft("{seq:4}", "never") }.check().is_err());
        assert!(Draft { first: 10_000, overflow: "widen".into(), ..draft("{seq:4}", "never") }.check().is_ok());
    }

    #[test]
    fn a_fiscal_year_goes_with_its_reset() {
        let fiscal = |starts: &str, label: &str| Draft {
            fiscal_year: Some((starts.into(), label.into())),
            ..draft("F{fy}-{seq:4}", "fiscal_year")
        };
        let april = fiscal("04-01", "end").check().unwrap();
        assert_eq!(april.text(7, date(2026, 3, 31)).unwrap(), "F2026-0007");
        assert_eq!(april.text(7, date(2026, 4, 1)).unwrap(), "F2027-0007");
        assert_eq!(april.draft(), fiscal("04-01", "end"));
        let pointer = |draft: &Draft| draft.check().unwrap_err()[0].pointer.clone();
        assert_eq!(pointer(&fiscal("02-29", "end")), "/fiscal_year/starts");
        assert_eq!(pointer(&fiscal("04-01", "middle")), "/fiscal_year/label");
        assert_eq!(pointer(&draft("F{fy}-{seq:4}", "fiscal_year")), "/fiscal_year");
        assert_eq!(pointer(&Draft { reset: "yearly".into(), ..fiscal("04-01", "end") }), "/fiscal_year");
        assert_eq!(pointer(&draft("F{fy}-{seq:4}", "never")), "/pattern");
        assert_eq!(pointer(&Draft { pattern: "F{yyyy}-{seq:4}".into(), ..fiscal("04-01", "end") }), "/pattern");
        assert!(Draft { pattern: "F{yyyy}{mm}-{seq:4}".into(), ..fiscal("04-01", "end") }.check().is_ok());
        assert!(Draft { pattern: "F{yyyy}{mm}-{seq:4}".into(), ..fiscal("04-15", "end") }.check().is_err());
    }

    #[test]
    fn what_is_mostly_not_meant_is_said() {
        let warned = |draft: Draft| draft.check().unwrap().warnings().len();
        assert_eq!(warned(draft("A{yyyy}{seq:9}", "yearly")), 0);
        assert_eq!(warned(draft("A{yyyy}{seq:9}", "never")), 1);
    }

    #[test]
    fn a_date_may_be_so_far_ahead() {
        let settings = Draft { max_days_ahead: Some(30), ..draft("{seq}", "never") }.check().unwrap();
        // 1 March in Istanbul already.
        let at: Timestamp = "2026-02-28T22:00:00Z".parse().unwrap();
        assert_eq!(settings.check_date(date(2026, 3, 31), at), Ok(()));
        assert!(settings.check_date(date(2026, 4, 1), at).unwrap_err().contains("2026-03-31"));
        assert_eq!(settings.check_date(date(1999, 1, 1), at), Ok(()));
    }

    #[test]
    fn one_instant_decides_the_day_in_the_zone() {
        let istanbul = draft("ABC{yyyy}{seq:9}", "yearly").check().unwrap();
        let late: Timestamp = "2026-12-31T21:30:00Z".parse().unwrap();
        assert_eq!(istanbul.today(late), date(2027, 1, 1));
        assert_eq!(istanbul.period(istanbul.today(late)).as_str(), "2027");
    }
}
