//! Changing what has versions: `If-Match` says which was changed, and whoever is late is shown what came between.

use api::{Conflict, Slug};
use axum::http::{HeaderMap, header};
use serde_json::{Map, Value};

use crate::problem::Failed;

/// The version that the caller changed.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<i64, Failed> {
    let mut all = headers.get_all(header::IF_MATCH).iter();
    let (first, second) = (all.next(), all.next());
    let Some(only) = first.filter(|_| second.is_none()) else {
        let detail = "say in If-Match which version you changed: the ETag that you read it with";
        return Err(Failed::new(Slug::PreconditionRequired, detail));
    };
    let version = only.to_str().ok().and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"')?.parse().ok());
    version.filter(|version| *version >= 1).ok_or_else(|| {
        let detail = "If-Match must be one ETag as it was read, such as \"3\": a change is always made to one version";
        Failed::new(Slug::PreconditionRequired, detail)
    })
}

/// Each field that the caller (`yours`) or others (`theirs`) changed since `base`, in the order of their names.
pub(crate) fn conflicts(base: &Map<String, Value>, yours: &Map<String, Value>, theirs: &Map<String, Value>) -> Vec<Conflict> {
    let of = |fields: &Map<String, Value>, field: &String| fields.get(field).cloned().unwrap_or(Value::Null);
    theirs
        .keys()
        .filter(|field| yours.contains_key(*field) || base.get(*field) != theirs.get(*field))
        .map(|field| Conflict {
            field: field.clone(),
            base: of(base, field),
            yours: yours.get(field).cloned().unwrap_or_else(|| of(base, field)),
            theirs: of(theirs, field),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_sides_are_shown() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let base = map(json!({"a": 1, "b": 2, "c": 3}));
        let theirs = map(json!({"a": 1, "b": 5, "c": 3}));
        let found = conflicts(&base, &map(json!({"a": 9})), &theirs);
        let told: Vec<_> = found.iter().map(|c| json!([c.field, c.base, c.yours, c.theirs])).collect();
        assert_eq!(told, [json!(["a", 1, 9, 1]), json!(["b", 2, 2, 5])]);
    }
}
