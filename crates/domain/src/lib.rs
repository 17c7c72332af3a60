//! The rules of sequential document numbers as plain values: what a pattern is, which period a date
//! falls into, which number comes next and when the answer is no.
//!
//! Nothing in here does I/O, reads a clock or draws randomness; instants, dates and random bytes are
//! arguments. Whatever must be true under concurrency is decided by the database with these rules.

pub mod clock;
pub mod id;
pub mod life;
pub mod next;
pub mod pattern;
pub mod period;
pub mod principal;
pub mod refusal;
pub mod secret;
pub mod series;
pub mod state;
pub mod text;

mod check;
mod overlap;

pub use overlap::overlap;

/// The largest value a counter may reach, 2^53 − 1: every JSON reader represents it exactly
/// (RFC 8259 §6, I-JSON RFC 7493 §2.2).
pub const MAX_VALUE: i64 = (1 << 53) - 1;
