//! What can be wrong, each kind with all that a person needs to go and look.

use std::fmt;

use serde::Serialize;

use crate::ledger::SeriesKey;

/// Something that must not be, whatever happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// A shard has one value of a series key twice.
    Repeated {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// In which shard.
        shard: String,
    },
    /// Two shards have the same value of one series key.
    TwoShards {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// In which shards.
        shards: [String; 2],
    },
    /// A value does not follow the one before it, and no run begins with it.
    Gap {
        /// Of which series key.
        series: SeriesKey,
        /// The value before the gap; none where the first values are missing.
        before: Option<i64>,
        /// The value behind it.
        value: i64,
    },
    /// The counter went on over a value that was given back: nobody has it, and nobody will.
    Skipped {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// Where the counter is.
        counter: i64,
    },
    /// A counter is not where the numbers are.
    CounterOff {
        /// Of which series key.
        series: SeriesKey,
        /// In which shard.
        shard: String,
        /// Where the counter is.
        counter: i64,
        /// The last value that is there and not released.
        last: Option<i64>,
    },
    /// Numbers have no counter.
    CounterMissing {
        /// Of which series key.
        series: SeriesKey,
        /// The last value.
        last: i64,
    },
    /// A number that a client was told is not in the ledger.
    Lost {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// Its text.
        number: String,
        /// The key that asked.
        key: String,
        /// The attempt that was told.
        attempt: u64,
    },
    /// A client was told another text than the ledger has.
    Altered {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// The text in the answer.
        answered: String,
        /// The text in the ledger.
        stored: Option<String>,
        /// The attempt that was told.
        attempt: u64,
    },
    /// One number belongs to two documents or keys.
    Shared {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// One of them.
        first: Holder,
        /// Another.
        second: Holder,
    },
    /// One answer names a number twice, so two of its documents have it.
    ToldTwice {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// The attempt that was told.
        attempt: u64,
    },
    /// A key that was refused every time has a number all the same.
    FailTook {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// The key.
        key: String,
        /// The first attempt that was refused.
        attempt: u64,
    },
    /// The ledger has a number for a key that nobody sent.
    Ghost {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// The key.
        key: String,
    },
    /// A number stands in the ledger that no key took and nobody was told.
    Unclaimed {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// In which shard.
        shard: String,
    },
    /// A key took a number that none of its answers names.
    Surplus {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// The key.
        key: String,
    },
    /// A number was asked for when a higher one was already known to a client.
    Inversion {
        /// Of which series key.
        series: SeriesKey,
        /// The lower value.
        value: i64,
        /// When it was asked for, at the earliest.
        invoked: i64,
        /// The higher value.
        higher: i64,
        /// When a client had it.
        completed: i64,
    },
    /// One key was answered with different numbers.
    KeyNumbers {
        /// Whose key.
        tenant: String,
        /// In which series.
        series: String,
        /// Which.
        key: String,
        /// Two attempts that differ.
        attempts: [u64; 2],
    },
    /// One key was answered with different bodies.
    KeyBodies {
        /// Whose key.
        tenant: String,
        /// In which series.
        series: String,
        /// Which.
        key: String,
        /// Two attempts that differ.
        attempts: [u64; 2],
    },
    /// The integrator got different documents under one number.
    TwoDocuments {
        /// Whose number.
        tenant: String,
        /// In which series.
        series: String,
        /// Its text.
        number: String,
        /// The hashes of two that differ.
        hashes: [String; 2],
    },
    /// The integrator got a document whose number is not in the ledger.
    SentUnknown {
        /// Whose number.
        tenant: String,
        /// In which series.
        series: String,
        /// Its text.
        number: String,
    },
    /// A number has been waiting to be sent for too long.
    Sealed {
        /// Of which series key.
        series: SeriesKey,
        /// Which value.
        value: i64,
        /// The word for its state.
        state: String,
        /// For how long, in microseconds.
        age: i64,
    },
}

/// Who has a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The key.
    pub key: String,
    /// The document that it was for, where one was named.
    pub document_ref: Option<String>,
    /// The attempt that was told; none where the ledger says so.
    pub attempt: Option<u64>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.key)?;
        if let Some(document) = &self.document_ref {
            write!(f, " for document {document}")?;
        }
        match self.attempt {
            Some(attempt) => write!(f, " (attempt {attempt})"),
            None => write!(f, " (in the ledger)"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated { series, value, shard } => write!(f, "{series}: value {value} is twice in {shard}"),
            Self::TwoShards { series, value, shards: [one, other] } => {
                write!(f, "{series}: value {value} is both in {one} and in {other}")
            }
            Self::Gap { series, before: Some(before), value } => {
                write!(f, "{series}: value {value} comes after {before}, and no run begins with it")
            }
            Self::Gap { series, before: None, value } => {
                write!(f, "{series}: value {value} is the first, and no run begins with it")
            }
            Self::Skipped { series, value, counter } => {
                write!(f, "{series}: value {value} was given back, but the counter went on to {counter}")
            }
            Self::CounterOff { series, shard, counter, last: Some(last) } => {
                write!(f, "{series}: the counter in {shard} is at {counter}, the last number is {last}")
            }
            Self::CounterOff { series, shard, counter, last: None } => {
                write!(f, "{series}: the counter in {shard} is at {counter} without numbers, and no run begins behind it")
            }
            Self::CounterMissing { series, last } => {
                write!(f, "{series}: there are numbers up to {last} and no counter")
            }
            Self::Lost { series, value, number, key, attempt } => {
                write!(f, "{series}: value {value} ({number}) was told to key {key} (attempt {attempt}) and is gone")
            }
            Self::Altered { series, value, answered, stored: Some(stored), attempt } => {
                write!(f, "{series}: value {value} was told as {answered} (attempt {attempt}) and stands as {stored}")
            }
            Self::Altered { series, value, answered, stored: None, attempt } => {
                write!(f, "{series}: value {value} was told as {answered} (attempt {attempt}) and stands without a text")
            }
            Self::Shared { series, value, first, second } => {
                write!(f, "{series}: value {value} belongs both to {first} and to {second}")
            }
            Self::ToldTwice { series, value, attempt } => {
                write!(f, "{series}: value {value} comes twice in one answer (attempt {attempt})")
            }
            Self::FailTook { series, value, key, attempt } => {
                write!(f, "{series}: key {key} was refused every time (attempt {attempt}) and took value {value}")
            }
            Self::Ghost { series, value, key } => write!(f, "{series}: value {value} was taken by key {key}, which nobody sent"),
            Self::Unclaimed { series, value, shard } => {
                write!(f, "{series}: value {value} in {shard} was taken by no key and told to nobody")
            }
            Self::Surplus { series, value, key } => {
                write!(f, "{series}: key {key} took value {value}, which none of its answers names")
            }
            Self::Inversion { series, value, invoked, higher, completed } => {
                write!(f, "{series}: value {value} was asked for at {invoked}, after {higher} was known at {completed}")
            }
            Self::KeyNumbers { tenant, series, key, attempts: [one, other] } => {
                write!(f, "{tenant} {series}: key {key} was answered with different numbers (attempts {one} and {other})")
            }
            Self::KeyBodies { tenant, series, key, attempts: [one, other] } => {
                write!(f, "{tenant} {series}: key {key} was answered with different bodies (attempts {one} and {other})")
            }
            Self::TwoDocuments { tenant, series, number, hashes: [one, other] } => {
                write!(f, "{tenant} {series}: number {number} was sent with two documents, {one} and {other}")
            }
            Self::SentUnknown { tenant, series, number } => {
                write!(f, "{tenant} {series}: number {number} was sent and is not in the ledger")
            }
            Self::Sealed { series, value, state, age } => {
                write!(f, "{series}: value {value} was still {state} after {age} µs")
            }
        }
    }
}
