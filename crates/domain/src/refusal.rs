//! A business no. A refusal is not a failure: the request was understood, nothing was used, and the
//! caller is told what would be right.

use jiff::civil::Date;

use crate::{id::SeriesName, life::Verb, period::Period, series::FieldError, state::State};

/// Why the answer is no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Fields that can't be right, all that were found.
    #[error("{}", fields(.0))]
    Invalid(Vec<FieldError>),
    /// There is no such thing, or it is another tenant's.
    #[error("there is no {0}")]
    NotFound(String),
    /// A series of this name is there already.
    #[error("the series {0} exists already, made otherwise; choose another name")]
    SeriesExists(SeriesName),
    /// The texts of two series of one issuer could collide.
    #[error("the texts could be those of series {series}, for example {example}; choose another pattern or another issuer")]
    PatternOverlaps {
        /// The series it meets.
        series: String,
        /// A text that both could make.
        example: String,
    },
    /// The series takes no issues for now.
    #[error("the series is paused; resume it to issue")]
    SeriesPaused,
    /// The series is closed for ever.
    #[error("the series is closed and takes no more numbers; issue in another series")]
    SeriesClosed,
    /// The period is closed for ever.
    #[error("the period {0} is closed and takes no more numbers; date the document in an open period")]
    PeriodClosed(Period),
    /// The next text would not fit width or length.
    #[error(
        "the next value, {next}, no longer fits this series: its width, its max_length or the largest value there is; continue in another series"
    )]
    SeriesExhausted {
        /// The value that does not fit.
        next: i64,
    },
    /// The range of the present run is used up.
    #[error("the range ends at {limit} and has no {wanted} values left; add a range")]
    RangeExhausted {
        /// The last value of the range.
        limit: i64,
        /// How many were asked for.
        wanted: usize,
    },
    /// The date lies before one that a lower number has.
    #[error(
        "{date} is before {last}, the date of the latest number in this period, and this series keeps to the order of dates; date the document {last} or later"
    )]
    Chronology {
        /// The date that goes back.
        date: Date,
        /// The latest date with a number.
        last: Date,
    },
    /// The reference already has a number under another date.
    #[error("document {reference} has number {number} of {date} already; ask with that date, or use another document_ref")]
    DocumentConflict {
        /// The reference.
        reference: String,
        /// Its number.
        number: String,
        /// The date of that number.
        date: Date,
    },
    /// The reference's number was given up for good.
    #[error("document {reference} had number {number}, which is voided; use a new document_ref")]
    DocumentVoided {
        /// The reference.
        reference: String,
        /// Its number.
        number: String,
    },
    /// From this state the verb leads nowhere.
    #[error("number {number} is {}, from where there is no {}{}", .state.word(), .verb.word(), advice(*.verb, *.state))]
    WrongState {
        /// The number.
        number: String,
        /// What was to become of it.
        verb: Verb,
        /// Its state.
        state: State,
    },
    /// The text stands on a document already.
    #[error(
        "number {0} exists already in this series, under another period or value; ask the audit, and continue in another series"
    )]
    NumberExists(String),
    /// The key was used for something else.
    #[error("this Idempotency-Key was used for another request; use a new key for a new request")]
    KeyReused,
    /// The first request with this key is still running.
    #[error("the first request with this Idempotency-Key is still running; repeat it in a moment")]
    KeyInProgress,
}

/// What can be done instead.
fn advice(verb: Verb, state: State) -> &'static str {
    match (verb, state) {
        (_, State::Sending) => "; wait until its sending has an outcome",
        (Verb::Confirm, State::InDoubt) => "; say in a reason how it is known that the outside system took it",
        (Verb::Void, State::InDoubt) => "; find out first, or void it with a key that carries numbers:override",
        (Verb::Fail, State::InDoubt) => "; confirm it with a reason once it is known",
        (Verb::Fail, State::Issued) => "; an issued number can only be voided",
        (_, State::Voided) => ": it was given up for good; use a new document_ref",
        _ => "",
    }
}

fn fields(errors: &[FieldError]) -> String {
    match errors {
        [only] if only.pointer.is_empty() => only.detail.clone(),
        [only] => format!("{}: {}", only.pointer, only.detail),
        many => format!("{} fields are not right; see errors", many.len()),
    }
}
