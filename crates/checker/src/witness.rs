//! What others saw during a run: the integrator, and whoever caused the faults.

use serde::{Deserialize, Serialize};

/// A document that reached the integrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The tenant it came from: two tenants may well have the same text.
    pub tenant: String,
    /// The series its number is of.
    pub series: String,
    /// The text of its number.
    pub number: String,
    /// A hash of the document.
    pub document_hash: String,
    /// When it arrived, in microseconds.
    pub at: i64,
}

/// A fault that was caused on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What it was.
    pub name: String,
    /// When it struck, in microseconds of the clients' clock.
    pub from: i64,
    /// When it was over.
    pub until: i64,
}
