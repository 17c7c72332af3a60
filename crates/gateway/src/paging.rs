//! Cursors: where the next page begins, opaque to the caller.

use api::Slug;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;

use crate::problem::Failed;

/// The most that one page holds.
const MOST: i64 = 1_000;
const USUAL: i64 = 100;

/// What a list takes in its query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paging {
    cursor: Option<String>,
    limit: Option<i64>,
}

impl Paging {
    /// The same as part of a longer query.
    pub(crate) fn new(cursor: Option<String>, limit: Option<i64>) -> Self {
        Self { cursor, limit }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// What is said to a cursor that no list made.
    pub(crate) fn invalid() -> Failed {
        Failed::new(Slug::CursorInvalid, "this cursor is not of this list; begin without one")
    }

    pub(crate) fn limit(&self) -> Result<i64, Failed> {
        let limit = self.limit.unwrap_or(USUAL);
        let right = (1..=MOST).contains(&limit);
        right.then_some(limit).ok_or_else(|| Failed::field("/limit", format!("must be from 1 to {MOST}")))
    }

    /// The last thing of the page before, if this list (`kind`) made the cursor.
    pub(crate) fn after(&self, kind: &str) -> Result<Option<String>, Failed> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let inside = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let after = inside.as_deref().and_then(|inside| inside.strip_prefix(kind)?.strip_prefix(':'));
        // What was in a cursor once is a name, so nothing else can be in an honest one.
        let after = after.filter(|after| !after.is_empty() && after.bytes().all(|b| b.is_ascii_graphic()));
        after.map(|after| Some(after.to_owned())).ok_or_else(Self::invalid)
    }

    /// The page of these items, of which one more than the limit was asked for.
    pub(crate) fn page<T>(&self, kind: &str, mut items: Vec<T>, name: impl Fn(&T) -> String) -> Result<api::Page<T>, Failed> {
        let limit = usize::try_from(self.limit()?).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().filter(|_| more).map(|last| URL_SAFE_NO_PAD.encode(format!("{kind}:{}", name(last))));
        Ok(api::Page { items, next_cursor: last })
    }
}
