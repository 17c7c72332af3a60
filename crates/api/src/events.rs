//! The audit trail.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who did what, and what it was before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When the request came.
    pub at: String,
    /// What happened, such as `series.changed`.
    pub kind: String,
    /// To what.
    pub subject: String,
    /// Who.
    pub principal: String,
    /// By which call.
    pub operation_id: String,
    /// What it was.
    pub before: Option<Value>,
    /// What it is; for a conflict what was wanted.
    pub after: Option<Value>,
}
