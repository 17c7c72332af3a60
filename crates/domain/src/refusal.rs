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
    /// It can't be given back.
    #[error("number {number} can't be released: {why}")]
    NotReleasable {
        /// The number.
        number: String,
        /// Its state.
        state: State,
        /// What is in the way, and what would be right.
        why: String,
    },
    /// What the key took was given back, and may be on another document by now.
    #[error("number {0}, which this Idempotency-Key took, was released; ask for a number with a new key")]
    NumberReleased(String),
    /// The number is in another life than the one that is meant.
    #[error("number {number} is {} in its life {life}, not in the one that is meant{}; say \"life\": {life} if it is this one", .state.word(), given_again(*.life))]
    OtherLife {
        /// The number.
        number: String,
        /// Its state now.
        state: State,
        /// Its life now.
        life: i32,
    },
    /// An open number keeps its document.
    #[error("number {number} is {}, so its document_ref is still needed to find it; confirm or void it first", .state.word())]
    StillOpen {
        /// The number.
        number: String,
        /// Its state.
        state: State,
    },
    /// The next value would be one that was given already.
    #[error(
        "value {next} of period {period} {}; the next value can only go up, to {free} or more",
        number.as_ref().map_or("is behind already".to_owned(), |number| format!("is used already: number {number}"))
    )]
    NextUsed {
        /// The value asked for.
        next: i64,
        /// The period.
        period: Period,
        /// The first number that would be met.
        number: Option<String>,
        /// The smallest value that is free.
        free: i64,
    },
    /// A period with open numbers stays open.
    #[error("the period {period} has {count} open numbers, such as {example}, which is {}; settle them first: confirm or void", .state.word())]
    PeriodHasOpen {
        /// The period.
        period: Period,
        /// How many are open.
        count: i64,
        /// One of them.
        example: String,
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

fn given_again(life: i32) -> &'static str {
    if life > 1 { ": it was released and given to another document" } else { "" }
}

/// What can be done instead.
fn advice(verb: Verb, state: State) -> &'static str {
    match (verb, state) {
        (_, State::Sending) => "; wait until its sending has an outcome",
        (Verb::Confirm, State::InDoubt) => "; say in a reason how it is known that the outside system took it",
        (Verb::Void, State::InDoubt) => "; find out first, or void it with a key that carries numbers:override",
        (Verb::Fail, State::InDoubt) => "; confirm it with a reason once it is known",
        (Verb::Fail, State::Issued) => "; an issued number can only be voided",
        (_, State::Released) => ": it was given back; ask for a number for its document",
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
