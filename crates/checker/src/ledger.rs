//! What stands in the databases afterwards, read from every shard once the work has come to rest.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What counts by itself: one part of one series of one tenant in one period.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SeriesKey {
    /// The tenant.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// The part; zero where the series is not split.
    pub part: i16,
    /// The period.
    pub period: String,
}

impl fmt::Display for SeriesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{} {}", self.tenant, self.series, self.part, self.period)
    }
}

/// A number in a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The shard it was read from.
    pub shard: String,
    /// The tenant.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// The part of the series.
    pub part: i16,
    /// The period.
    pub period: String,
    /// The integer.
    pub value: i64,
    /// The text on the document; none for a `missing` one.
    pub number: Option<String>,
    /// The word for its state.
    pub state: String,
    /// The idempotency key whose claim took it.
    pub key: Option<String>,
    /// When it was taken, in microseconds.
    pub at: i64,
}

/// A counter in a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// The shard it was read from.
    pub shard: String,
    /// The tenant.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// The part of the series.
    pub part: i16,
    /// The period.
    pub period: String,
    /// The last value given; one less than the first of its run before any.
    pub last: i64,
}

/// An unbroken stretch of values. Values jump only where one begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The tenant.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// The part of the series.
    pub part: i16,
    /// The period.
    pub period: String,
    /// Its first value.
    pub first: i64,
}

/// Everything that all shards hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The numbers.
    pub rows: Vec<Row>,
    /// The counters.
    pub counters: Vec<Counter>,
    /// The runs.
    pub runs: Vec<Run>,
}

impl Row {
    pub(crate) fn place(&self) -> Place<'_> {
        Place { tenant: &self.tenant, series: &self.series, part: self.part, period: &self.period }
    }

    /// Given back: its text is free for the next document, and the counter has stepped behind it.
    pub(crate) fn is_released(&self) -> bool {
        self.state == "released"
    }

    /// Never given at all: a hole in a history that was taken over from elsewhere.
    pub(crate) fn is_missing(&self) -> bool {
        self.state == "missing"
    }

    /// Taken for a document that has not left the house yet.
    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self.state.as_str(), "reserved" | "sending")
    }
}

impl Counter {
    pub(crate) fn place(&self) -> Place<'_> {
        Place { tenant: &self.tenant, series: &self.series, part: self.part, period: &self.period }
    }
}

impl Run {
    pub(crate) fn place(&self) -> Place<'_> {
        Place { tenant: &self.tenant, series: &self.series, part: self.part, period: &self.period }
    }
}

/// A series key that is only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) series: &'a str,
    pub(crate) part: i16,
    pub(crate) period: &'a str,
}

impl Place<'_> {
    pub(crate) fn owned(self) -> SeriesKey {
        SeriesKey {
            tenant: self.tenant.to_owned(),
            series: self.series.to_owned(),
            part: self.part,
            period: self.period.to_owned(),
        }
    }
}
