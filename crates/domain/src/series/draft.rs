//! What is asked for, and whether it is right.

use jiff::tz::TimeZone;

use super::{Chronology, Overdue, Release, Settings};
use crate::{
    MAX_VALUE,
    id::IssuerName,
    pattern::{MAX_TEXT, Overflow, Pattern},
    period::{Fiscal, Label, Reset},
};

/// The most days ahead that can be asked for: a hundred years.
pub const MAX_DAYS_AHEAD: i64 = 36_525;

/// The longest deadline of a reservation: ten years, in seconds.
pub const MAX_TTL: i64 = 315_576_000;

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
