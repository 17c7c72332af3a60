//! Strict JSON: one meaning, or none. A member that comes twice would silently count once.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Fails where an object has the same member twice, at any depth, or a text holds U+0000, which no database
/// column can keep.
pub(crate) fn check(bytes: &[u8]) -> Result<(), serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    Strict.deserialize(&mut json)?;
    json.end()
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if text.contains('\0') { Err(E::custom("a text holds the character U+0000")) } else { Ok(()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Strict)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = std::collections::HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            self::Strict.visit_str::<A::Error>(&name)?;
            members.next_value_seed(Strict)?;
            if let Some(twice) = seen.replace(name) {
                return Err(A::Error::custom(format!("the member \"{}\" comes twice", twice.escape_default())));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_member_comes_once() {
        assert!(check(br#"{"a": 1, "b": {"a": [1.5, null, true, "x"]}}"#).is_ok());
        for bad in
            [r#"{"a":1,"a":1}"#, r#"{"m":[{"x":{"y":1,"y":2}}]}"#, r#"{"a":1,"\u0061":2}"#, r#"{"a":"\u0000"}"#, "{} {}", "", "{"]
        {
            assert!(check(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn depth_is_limited() {
        assert!(check("[".repeat(100_000).as_bytes()).is_err());
    }
}
