//! Time as an argument.

use jiff::Timestamp;

/// Where instants come from. The program passes the system's clock, tests pass one that they move.
pub trait Clock: Send + Sync {
    /// The present instant. A request asks once and uses the answer for everything (one instant decides
    /// period, text and counter together).
    fn instant(&self) -> Timestamp;
}
