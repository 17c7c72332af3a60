//! Names and ids that were checked once and are right from then on.

use std::fmt;

use uuid::Uuid;

use crate::text;

/// A tenant: the paying customer and the isolation boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantId(pub Uuid);

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a name was refused, as a sentence that says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(pub String);

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Checks and takes the text; the error says what would be right.
            pub fn parse(raw: &str) -> Result<Self, NameError> {
                let check: fn(&str) -> Result<(), String> = $check;
                check(raw).map_err(NameError)?;
                Ok(Self(raw.to_owned()))
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_text!(
    /// The code of a series: `^[a-z0-9][a-z0-9_-]{0,63}$`.
    SeriesName, slug
);
checked_text!(
    /// A legal entity of a tenant whose numbers must not collide; written like a series code.
    IssuerName, slug
);
checked_text!(
    /// The caller's own reference of a document, 1–200 characters, none of them control or invisible.
    DocumentRef, |raw| text::readable(raw, 200)
);
checked_text!(
    /// What a person calls a tenant or a key, 1–200 readable characters.
    Label, |raw| text::readable(raw, 200)
);
checked_text!(
    /// An idempotency key: 1–255 visible ASCII characters, without the quotes it may have come in.
    IdempotencyKey, idempotency_key
);
checked_text!(
    /// Names one call through traces, logs and history: 1–64 of letters, digits, `-`, `_`, `.`, `:`.
    OperationId, operation_id
);

fn slug(raw: &str) -> Result<(), String> {
    let first = raw.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let rest = raw.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
    if first && rest && raw.len() <= 64 {
        Ok(())
    } else {
        Err("must be 1 to 64 of a-z, 0-9, '_' and '-', and begin with a letter or a digit".to_owned())
    }
}

fn idempotency_key(raw: &str) -> Result<(), String> {
    if (1..=255).contains(&raw.len()) && raw.bytes().all(|b| (0x21..=0x7e).contains(&b)) {
        Ok(())
    } else {
        Err("must be 1 to 255 visible ASCII characters".to_owned())
    }
}

fn operation_id(raw: &str) -> Result<(), String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    if (1..=64).contains(&raw.len()) && raw.bytes().all(allowed) {
        Ok(())
    } else {
        Err("must be 1 to 64 letters, digits, '-', '_', '.' or ':'".to_owned())
    }
}

impl IdempotencyKey {
    /// Takes the header as it came, quoted (a structured-field string, RFC 8941 §3.3.3) or bare: `"a"`
    /// and `a` are the same key.
    pub fn from_header(raw: &str) -> Result<Self, NameError> {
        let quoted = raw.strip_prefix('"');
        let bare = quoted.map_or(Some(raw), |rest| rest.strip_suffix('"'));
        Self::parse(bare.ok_or_else(|| NameError("begins with a quotation mark and does not end with one".to_owned()))?)
    }
}

impl IssuerName {
    /// The issuer of a series that names none.
    pub fn default_name() -> Self {
        Self("default".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_codes() {
        for good in ["a", "0", "invoices", "a_b-c", &"a".repeat(64)] {
            assert!(SeriesName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "_a", "A", "a b", "ä", &"a".repeat(65), "a\n"] {
            assert!(SeriesName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn keys_are_visible_ascii_and_may_come_quoted() {
        assert_eq!(IdempotencyKey::from_header("\"k-1\"").unwrap().as_str(), "k-1");
        assert_eq!(IdempotencyKey::from_header("k-1").unwrap().as_str(), "k-1");
        assert!(IdempotencyKey::from_header(&"k".repeat(255)).is_ok());
        for bad in ["", "\"\"", "a b", "ключ", &"k".repeat(256)] {
            assert!(IdempotencyKey::from_header(bad).is_err(), "{bad:?}");
        }
    }
}
