//! Problems: RFC 9457 documents, one slug per kind.

use serde::{Deserialize, Serialize};

macro_rules! slugs {
    ($($variant:ident $slug:literal $status:literal $title:literal;)*) => {
        /// What kind of problem it is. Never renamed: clients switch on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Slug {
            $(#[doc = $title] $variant,)*
        }

        impl Slug {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The last part of `type`.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The HTTP status.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// The same words for every problem of this kind.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

slugs! {
    MalformedJson "malformed-json" 400 "The body is not JSON";
    IdempotencyKeyRequired "idempotency-key-required" 400 "This operation needs an Idempotency-Key";
    IdempotencyKeyInvalid "idempotency-key-invalid" 400 "The Idempotency-Key is not valid";
    CursorInvalid "cursor-invalid" 400 "The cursor is not valid here";
    Unauthenticated "unauthenticated" 401 "Valid credentials are needed";
    ScopeMissing "scope-missing" 403 "The key lacks a scope";
    TenantSuspended "tenant-suspended" 403 "The tenant is suspended";
    NotFound "not-found" 404 "There is no such thing";
    MethodNotAllowed "method-not-allowed" 405 "The method is not allowed here";
    SeriesExists "series-exists" 409 "The series exists already";
    SeriesPaused "series-paused" 409 "The series is paused";
    SeriesClosed "series-closed" 409 "The series is closed";
    PeriodClosed "period-closed" 409 "The period is closed";
    PeriodHasOpen "period-has-open" 409 "The period has open numbers";
    SeriesExhausted "series-exhausted" 409 "The series is exhausted";
    RangeExhausted "range-exhausted" 409 "The range is exhausted";
    WrongState "wrong-state" 409 "The number's state does not allow it";
    Chronology "chronology" 422 "The date goes back";
    DocumentConflict "document-conflict" 409 "The document has a number already";
    DocumentVoided "document-voided" 409 "The document's number is voided";
    NumberReleased "number-released" 409 "The number was released";
    NumberExists "number-exists" 409 "The number exists already";
    PatternOverlaps "pattern-overlaps" 409 "The pattern overlaps another series";
    IdempotencyInProgress "idempotency-in-progress" 409 "The first request with this key is still running";
    NextUsed "next-used" 409 "The value is used already";
    VersionConflict "version-conflict" 412 "It was changed by somebody else";
    PreconditionRequired "precondition-required" 428 "An If-Match header is needed";
    TooLarge "too-large" 413 "The body is too large";
    MediaType "media-type" 415 "The media type is not supported";
    Invalid "invalid" 422 "Something in the request is not valid";
    IdempotencyKeyReused "idempotency-key-reused" 422 "The Idempotency-Key was used for another request";
    Internal "internal" 500 "Something went wrong here";
    Busy "busy" 503 "Too busy just now";
    ShardUnavailable "shard-unavailable" 503 "A database is not available";
    DirectoryUnavailable "directory-unavailable" 503 "The directory is not available";
}

/// An error, as every caller sees every error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `/problems/<slug>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The same for every problem of this kind.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong this time, and what would be right.
    pub detail: String,
    /// The path that was called.
    pub instance: String,
    /// Names the call in logs, traces and history.
    pub operation_id: String,
    /// The state of the number that is in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The fields at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The fields that you or others changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
}

/// A field that you or others changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// Its name.
    pub field: String,
    /// What it was in the version that you changed.
    pub base: serde_json::Value,
    /// What you want it to be.
    pub yours: serde_json::Value,
    /// What it is now.
    pub theirs: serde_json::Value,
}

/// A field at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) into the request's body.
    pub pointer: String,
    /// What is wrong and what would be right.
    pub detail: String,
}

impl Problem {
    /// The slug.
    pub fn slug(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }
}
