//! What an audit trail says, whichever database keeps it.

use jiff::Timestamp;
use serde_json::Value;

/// A place in the trail of one database: the transaction, and the row within it. Rows come in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reached {
    /// The transaction's id (PostgreSQL, `xid8`).
    pub xid: i64,
    /// The row.
    pub event: i64,
}

/// Who did what, and what it was before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where it stands.
    pub place: Reached,
    /// The instant of the request.
    pub at: Timestamp,
    /// Who.
    pub principal: String,
    /// By which call.
    pub operation_id: String,
    /// What happened, such as `series.changed`.
    pub kind: String,
    /// To what.
    pub subject: String,
    /// What it was.
    pub before: Option<Value>,
    /// What it is.
    pub after: Option<Value>,
}
