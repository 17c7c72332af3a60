//! Idempotency keys: the header, and what a request means.

use api::{Body, Slug};
use axum::{extract::FromRequestParts, http::request::Parts};
use domain::id::IdempotencyKey;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::problem::Failed;

/// Changes whenever fingerprints are made in another way.
const VERSION: u8 = 1;

/// The key of a request and where it went.
pub(crate) struct Keyed {
    pub(crate) key: IdempotencyKey,
    path: String,
    query: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Keyed {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failed> {
        let mut all = parts.headers.get_all("idempotency-key").iter();
        let key = match (all.next(), all.next()) {
            (None, _) => {
                let detail = "send an Idempotency-Key header, a new one for each new request: repeating it repeats nothing";
                return Err(Failed::new(Slug::IdempotencyKeyRequired, detail));
            }
            (Some(only), None) => only.to_str().ok().map(IdempotencyKey::from_header),
            (Some(_), Some(_)) => None,
        };
        let invalid = |said: &str| Failed::new(Slug::IdempotencyKeyInvalid, format!("the Idempotency-Key {said}"));
        let key = key.ok_or_else(|| invalid("must come once, as visible ASCII"))?.map_err(|error| invalid(&error.to_string()))?;
        let uri = &parts.uri;
        Ok(Self { key, path: uri.path().to_owned(), query: uri.query().unwrap_or_default().to_owned() })
    }
}

impl Keyed {
    /// SHA-256 over what the request means: operation, path, query and the canonical body (RFC 8785, members
    /// equal to their default left out). Each part goes in with its length, so that none runs into the next.
    pub(crate) fn fingerprint<T: Body>(&self, operation: &str, body: &T) -> Result<[u8; 32], Failed> {
        let canonical = canonical(body).map_err(|error| {
            tracing::error!(%error, "a body that was read can't be written");
            Failed::internal()
        })?;
        let mut hash = Sha256::new();
        hash.update([VERSION]);
        for part in [operation, &self.path, &self.query, &canonical] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
        Ok(hash.finalize().into())
    }
}

fn canonical<T: Body>(body: &T) -> Result<String, serde_json::Error> {
    let mut value = serde_json::to_value(body)?;
    if let Value::Object(members) = &mut value {
        let defaults = T::defaults();
        members.retain(|name, value| defaults.get(name) != Some(value));
    }
    serde_json_canonicalizer::to_string(&value)
}

#[cfg(test)]
mod tests {
    use api::{CreateSeries, Issue};

    use super::*;

    fn fingerprint<T: Body>(path: &str, query: &str, operation: &str, body: &str) -> [u8; 32] {
        let key = Keyed { key: IdempotencyKey::parse("k").unwrap(), path: path.into(), query: query.into() };
        key.fingerprint::<T>(operation, &serde_json::from_str(body).unwrap()).unwrap()
    }

    #[test]
    fn the_same_meaning_has_the_same_fingerprint() {
        let one = r#"{"document_ref":"a","metadata":{"x":1,"y":[1.0,2e2]}}"#;
        let two = r#" {"metadata" : {"y":[1,200], "x":1.0}, "document_ref":"\u0061", "document_date": null} "#;
        assert_eq!(fingerprint::<Issue>("/p", "", "issue", one), fingerprint::<Issue>("/p", "", "issue", two));
        let short = r#"{"series":"s","pattern":"A{yyyy}{seq}"}"#;
        let long = r#"{"series":"s","pattern":"A{yyyy}{seq}","reset":"yearly","first":1,"max_length":16,"parts":1}"#;
        assert_eq!(fingerprint::<CreateSeries>("/p", "", "c", short), fingerprint::<CreateSeries>("/p", "", "c", long));
    }

    #[test]
    fn another_meaning_has_another() {
        let base = fingerprint::<Issue>("/p", "", "issue", "{}");
        assert_ne!(base, fingerprint::<Issue>("/q", "", "issue", "{}"));
        assert_ne!(base, fingerprint::<Issue>("/p", "a=1", "issue", "{}"));
        assert_ne!(base, fingerprint::<Issue>("/p", "", "reserve", "{}"));
        assert_ne!(base, fingerprint::<Issue>("/p", "", "issue", r#"{"document_ref":"{}"}"#));
        assert_ne!(fingerprint::<Issue>("/p", "ab", "issue", "{}"), fingerprint::<Issue>("/pa", "b", "issue", "{}"));
    }
}
