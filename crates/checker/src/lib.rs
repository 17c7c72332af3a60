//! Decides whether a run under load and faults was right, from what clients saw and what the databases hold.

mod history;

pub use crate::history::{Answered, Attempt, Begun, Ended, HistoryError, Outcome, Recorder, read_history};
