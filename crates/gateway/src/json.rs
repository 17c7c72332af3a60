//! Strict JSON: one meaning, or none. A member that comes twice would silently count once.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads a value. Fails where an object has the same member twice, at any depth, or a text holds U+0000, which
/// no database column can keep.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = Strict.deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        whole(text.to_owned()).map(Value::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let name = whole(name)?;
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("the member \"{}\" comes twice", name.escape_default())));
            }
            let value = members.next_value_seed(Strict)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

/// The largest integer that every JSON reader keeps as it is: 2^53 − 1 (RFC 8259 §6, RFC 8785 §3.2.2.3).
const EXACT: u64 = (1 << 53) - 1;

/// Whether every number in a value comes back as it was sent.
#[expect(clippy::cast_precision_loss, reason = "this very number has none")]
pub(crate) fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.unsigned_abs() <= EXACT,
            (None, Some(real)) => real.abs() <= EXACT as f64,
            (None, None) => false,
        },
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        _ => true,
    }
}

fn whole<E: Error>(text: String) -> Result<String, E> {
    if text.contains('\0') { Err(E::custom("a text holds the character U+0000")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::{is_exact, read};

    #[test]
    fn a_member_comes_once() {
        assert!(read(br#"{"a": 1, "b": {"a": [1.5, null, true, "x"]}}"#).is_ok());
        for bad in
            [r#"{"a":1,"a":1}"#, r#"{"m":[{"x":{"y":1,"y":2}}]}"#, r#"{"a":1,"\u0061":2}"#, r#"{"a":"\u0000"}"#, "{} {}", "", "{"]
        {
            assert!(read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_number_that_would_change_is_seen() {
        let exact = |text: &str| is_exact(&read(text.as_bytes()).unwrap());
        for good in ["9007199254740991", "-9007199254740991", "0.1", "1e15", "-0.5", r#"{"a":["9007199254740992"]}"#] {
            assert!(exact(good), "{good}");
        }
        for bad in
            ["9007199254740992", "-9007199254740993", "18446744073709551616", "12345678901234567890123", r#"{"a":[1e300]}"#]
        {
            assert!(!exact(bad), "{bad}");
        }
    }

    #[test]
    fn depth_is_limited() {
        assert!(read("[".repeat(100_000).as_bytes()).is_err());
    }
}
