//! Decides whether a run under load and faults was right, from what clients saw and what the databases hold.
//!
//! It is given five things that were written down by different hands: the [history](Attempt) of every attempt,
//! the [`Ledger`] read from every shard after the faults were healed and the work had drained, what the
//! integrator [received](Sent), which [faults](Fault) were caused, and when they were healed. It shares no code
//! with the program, has no clock and no randomness, and the same files always give the same [`Report`].
//!
//! | # | check | asks | holds |
//! |---|---|---|---|
//! | 1 | `checks::stored` | is every value there once, in one shard, without a gap, up to the counter? | I1, I2, I8 |
//! | 2 | `checks::answers` | is what clients were told there, under one owner; and was all that is there asked for? | I1, I3, I6, I9 |
//! | 3 | `checks::order` | did anybody who asked later get a lower value than somebody had already? | I4 |
//! | 4 | `checks::keys` | did a key ever get two answers? | I5 |
//! | 5 | `checks::sending` | did one number go out with two documents, or never? | I11 |
//! | 6 | `checks::coverage` | did each fault meet anything that it could have broken? | that green means something |
//!
//! # Why that is enough
//!
//! What is promised about a series key is that its operations look as if one person with one book had done
//! them, each at some moment between its request and its answer. To decide that for a history in general, all
//! orders have to be tried. Here the answers themselves say the order, since each names its value: the only
//! order that could explain them is by value. So it suffices that the values are those of one book (1), that
//! answers and book agree (2), and that this one order never puts an operation before another that had ended
//! when it began (3). A number without an answer was taken at any moment after its request, which is why it
//! has a beginning in (3) and no end. What is left are promises about keys (4) and about the world outside (5).
//!
//! An attempt without a known outcome may have taken its numbers or not; the ledger says which, and either is
//! right. Both are counted, since a run in which none of them happened has tested little. No check depends
//! on how the moments of two series compare: across series nothing is promised.
//!
//! # What it can't see
//!
//! - A number that was released and then given to another document has two owners in the history, which records
//!   requests for numbers only. A run that releases must not ask in the same series afterwards; rows that stay
//!   released, above the counter, are understood.
//! - A request for several documents with references of their own is recorded without any; two such requests
//!   with documents in common would look like one number under two keys.
//! - Clients whose clocks differ: one clock stamps all attempts and faults of a run.

mod checks;
mod finding;
mod history;
mod index;
mod ledger;
mod report;
mod witness;

use serde::{Deserialize, Serialize};

pub use crate::{
    finding::{Finding, Holder},
    history::{Answered, Attempt, Begun, Ended, HistoryError, Outcome, Recorder, read_history},
    ledger::{Counter, Ledger, Row, Run, SeriesKey},
    report::{Report, Resolved, Verdict},
    witness::{Fault, Sent},
};

/// Everything that is known about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// What clients asked and were told, in any order.
    pub history: Vec<Attempt>,
    /// What all shards hold, read once the work had drained.
    pub ledger: Ledger,
    /// What the integrator received.
    pub sent: Vec<Sent>,
    /// The faults that were caused.
    pub faults: Vec<Fault>,
    /// When the last fault was healed and the work had drained, in microseconds.
    pub healed_at: i64,
    /// For how long a number may wait to be sent, in microseconds.
    pub sealed_limit: i64,
}

/// Holds a run against what was promised.
pub fn check(observed: &Observed) -> Report {
    let index = index::Index::new(observed);
    let mut findings = Vec::new();
    checks::stored::check(&index, &mut findings);
    let resolved_info = checks::answers::check(&index, &mut findings);
    checks::order::check(&index, &mut findings);
    checks::keys::check(&index, &mut findings);
    checks::sending::check(observed, &index, &mut findings);
    let coverage = checks::coverage::check(observed);
    let verdict = if !findings.is_empty() {
        Verdict::Wrong
    } else if coverage.iter().any(|(_, met)| *met == 0) {
        Verdict::Unknown
    } else {
        Verdict::Right
    };
    Report { findings, resolved_info, coverage, verdict }
}
