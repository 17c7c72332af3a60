//! A series: a named run of numbers and the settings that decide them.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

use crate::{
    MAX_VALUE,
    id::{IssuerName, SeriesName},
    pattern::{MAX_TEXT, Overflow, Pattern},
    period::{Fiscal, Label, Period, Reset},
};

/// A field and what would be right for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) into the caller's body.
    pub pointer: String,
    /// What is wrong and what would be right.
    pub detail: String,
}

impl FieldError {
    /// An error at a place.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

/// What a tenant asks for, before it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// See [`Settings::issuer`].
    pub issuer: String,
    /// See [`Settings::pattern`].
    pub pattern: String,
    /// See [`Settings::reset`].
    pub reset: String,
    /// When a fiscal year begins (`MM-DD`) and what it is called after (`start`, `end`); goes with `reset: fiscal_year`.
    pub fiscal_year: Option<(String, String)>,
    /// See [`Settings::time_zone`].
    pub time_zone: String,
    /// See [`Settings::first`].
    pub first: i64,
    /// See [`Settings::gapless`].
    pub gapless: bool,
    /// See [`Settings::overflow`].
    pub overflow: String,
    /// See [`Settings::max_length`].
    pub max_length: i32,
    /// See [`Settings::chronology`].
    pub chronology: String,
    /// See [`Settings::max_days_ahead`].
    pub max_days_ahead: Option<i64>,
    /// See [`Settings::release`].
    pub release: String,
    /// See [`Settings::reservation_ttl_seconds`].
    pub reservation_ttl_seconds: Option<i64>,
    /// See [`Settings::reservation_overdue`].
    pub reservation_overdue: String,
}

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

/// The most days ahead that can be asked for: a hundred years.
pub const MAX_DAYS_AHEAD: i64 = 36_525;

/// The longest deadline of a reservation: ten years, in seconds.
pub const MAX_TTL: i64 = 315_576_000;

/// Whether a number may be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// It may not; what is not wanted is voided.
    Never,
    /// The last number of a period may, while it is reserved.
    LastUnsent,
}

impl Release {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::LastUnsent => "last_unsent",
        }
    }

    /// Reads the word; none if there is no such rule.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Never, Self::LastUnsent].into_iter().find(|release| release.word() == word)
    }
}

/// What becomes of a reservation that passed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdue {
    /// It is reported and stays: somebody may have used it.
    Alarm,
    /// It is voided, with the deadline as the reason.
    Void,
}

impl Overdue {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Alarm => "alarm",
            Self::Void => "void",
        }
    }

    /// Reads the word; none if there is no such policy.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Alarm, Self::Void].into_iter().find(|overdue| overdue.word() == word)
    }
}

/// Whether dates must follow numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chronology {
    /// They need not.
    None,
    /// A date may not go back inside a period.
    Strict,
}

impl Chronology {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Strict => "strict",
        }
    }

    /// Reads the word; none if there is no such rule.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::None, Self::Strict].into_iter().find(|chronology| chronology.word() == word)
    }
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

/// Whether a series takes issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It does.
    Active,
    /// Not for now.
    Paused,
    /// Never again.
    Closed,
}

impl Status {
    /// The word in the API and in the database.
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Closed => "closed",
        }
    }

    /// Reads the word; none if there is no such status.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Active, Self::Paused, Self::Closed].into_iter().find(|status| status.word() == word)
    }
}

impl Draft {
    /// Checks every field and then how they fit together; all errors at once.
    pub fn check(&self) -> Result<Settings, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut fail = |pointer: &str, detail: String| errors.push(FieldError::new(pointer, detail));
        let issuer = IssuerName::parse(&self.issuer).map_err(|e| fail("/issuer", e.to_string())).ok();
        let pattern = Pattern::parse(&self.pattern).map_err(|e| fail("/pattern", e.to_string())).ok();
        let reset = self.read_reset(&mut fail);
        let overflow = Overflow::from_word(&self.overflow);
        if overflow.is_none() {
            fail("/overflow", "must be refuse or widen".to_owned());
        }
        let chronology = Chronology::from_word(&self.chronology);
        if chronology.is_none() {
            fail("/chronology", "must be none or strict".to_owned());
        }
        if self.max_days_ahead.is_some_and(|days| !(0..=MAX_DAYS_AHEAD).contains(&days)) {
            fail("/max_days_ahead", format!("must be from 0 to {MAX_DAYS_AHEAD}, or null for any"));
        }
        let release = Release::from_word(&self.release);
        if release.is_none() {
            fail("/release", "must be never or last_unsent".to_owned());
        }
        if self.reservation_ttl_seconds.is_some_and(|ttl| !(1..=MAX_TTL).contains(&ttl)) {
            fail("/reservation_ttl_seconds", format!("must be from 1 to {MAX_TTL}, or null for no deadline"));
        }
        let overdue = Overdue::from_word(&self.reservation_overdue);
        if overdue.is_none() {
            fail("/reservation_overdue", "must be alarm or void".to_owned());
        }
        // Names are found in any case; one zone is to have one spelling.
        let zone = TimeZone::get(&self.time_zone).ok();
        let spelled = zone.as_ref().and_then(|zone| zone.iana_name()) == Some(&self.time_zone);
        if !spelled || !self.time_zone.contains('/') && self.time_zone != "UTC" {
            fail("/time_zone", "must be an IANA time zone such as Europe/Istanbul, or UTC".to_owned());
        }
        if !(0..=MAX_VALUE).contains(&self.first) {
            fail("/first", format!("must be from 0 to {MAX_VALUE}"));
        }
        let longest = i32::try_from(MAX_TEXT).unwrap_or(i32::MAX);
        if !(1..=longest).contains(&self.max_length) {
            fail("/max_length", format!("must be from 1 to {longest} characters"));
        }
        let words = (issuer, pattern, reset, overflow, chronology, release, overdue, errors.is_empty());
        let (
            Some(issuer),
            Some(pattern),
            Some(reset),
            Some(overflow),
            Some(chronology),
            Some(release),
            Some(reservation_overdue),
            true,
        ) = words
        else {
            return Err(errors);
        };
        let settings = Settings {
            issuer,
            pattern,
            reset,
            time_zone: self.time_zone.clone(),
            first: self.first,
            gapless: self.gapless,
            overflow,
            max_length: self.max_length,
            chronology,
            max_days_ahead: self.max_days_ahead,
            release,
            reservation_ttl_seconds: self.reservation_ttl_seconds,
            reservation_overdue,
        };
        settings.check_fit().map(|()| settings).map_err(|error| vec![error])
    }

    fn read_reset(&self, fail: &mut impl FnMut(&str, String)) -> Option<Reset> {
        if !Reset::WORDS.contains(&self.reset.as_str()) {
            fail("/reset", format!("must be one of {}", Reset::WORDS.join(", ")));
            return None;
        }
        let fiscal = match (&self.fiscal_year, self.reset == "fiscal_year") {
            (None, false) => None,
            (Some(_), false) => {
                fail("/fiscal_year", "goes with reset fiscal_year; leave it out, or choose that reset".to_owned());
                return None;
            }
            (None, true) => {
                fail(
                    "/fiscal_year",
                    "says when the year begins and what it is called after, as in {\"starts\": \"04-01\", \"label\": \"start\"}"
                        .to_owned(),
                );
                return None;
            }
            (Some((starts, label)), true) => {
                let label = Label::from_word(label);
                if label.is_none() {
                    fail("/fiscal_year/label", "must be start or end: the calendar year that it is called after".to_owned());
                }
                let fiscal = Fiscal::parse(starts, label.unwrap_or(Label::Start));
                if fiscal.is_none() {
                    fail("/fiscal_year/starts", "must be a day that every year has, as MM-DD".to_owned());
                }
                label?;
                Some(fiscal?)
            }
        };
        Reset::from_word(&self.reset, fiscal)
    }
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
