//! The public words: what goes over HTTP, and (feature `client`) a typed client for it.
//!
//! Names here are the contract. Rules are elsewhere: a body that parses may still be refused.

#[cfg(feature = "client")]
pub mod client;
mod events;
mod numbers;
mod object;
mod problem;
mod series;
mod tenants;

pub use events::Event;
pub use numbers::{
    Amend, Audit, AuditLine, Entry, Explained, Gap, Issue, Item, ListedNumber, Number, Numbers, Period, PeriodAudit, Preview,
    PreviewNumber, PreviewRefusal, Previewed, Progress, Reserve, Run, Sighting, Sightings, Step,
};
pub use object::Object;
pub use problem::{Conflict, FieldError, Problem, Slug};
pub use series::{CreateSeries, FiscalYear, ListedSeries, PatchSeries, Raise, Series};
pub use tenants::{CreateKey, CreateTenant, Key, PatchTenant, Tenant};

use serde::{Deserialize, Deserializer, Serialize};

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next page begins; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A request body. For its fingerprint, members equal to their default are left out, so that a later version
/// with more members still recognises a repeated request.
pub trait Body: Serialize + serde::de::DeserializeOwned {
    /// The members that have a default, with it.
    fn defaults() -> serde_json::Map<String, serde_json::Value> {
        serde_json::Map::new()
    }
}

/// Tells null from absent.
#[expect(clippy::option_option, reason = "as in a merge patch, null and absent mean different things")]
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// What may be absent and may not be null.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Percent-encodes a path segment or query value: everything but RFC 3986's unreserved characters.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
