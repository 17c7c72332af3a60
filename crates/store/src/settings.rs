//! A series' settings as JSON, each by the name that it has in the API: for the directory, which keeps what a series was made
//! with, and for the shard, which keeps every version.

use domain::series::{Draft, Settings};
use serde_json::{Map, Value, json};

use crate::Error;

/// The settings, every one of them.
pub fn write(draft: &Draft) -> Map<String, Value> {
    let fiscal_year = draft.fiscal_year.as_ref().map(|(starts, label)| json!({"starts": starts, "label": label}));
    let all = json!({
        "issuer": draft.issuer,
        "pattern": draft.pattern,
        "reset": draft.reset,
        "fiscal_year": fiscal_year,
        "time_zone": draft.time_zone,
        "first": draft.first,
        "gapless": draft.gapless,
        "overflow": draft.overflow,
        "max_length": draft.max_length,
        "chronology": draft.chronology,
        "max_days_ahead": draft.max_days_ahead,
        "release": draft.release,
        "reservation_ttl_seconds": draft.reservation_ttl_seconds,
        "reservation_overdue": draft.reservation_overdue,
    });
    match all {
        Value::Object(all) => all,
        _ => Map::new(),
    }
}

/// The same back. What is not said, because it was written before there was such a setting, is what it was then.
pub fn read(stored: &Map<String, Value>) -> Draft {
    let text = |field: &str, before: &str| stored.get(field).and_then(Value::as_str).unwrap_or(before).to_owned();
    let number = |field: &str| stored.get(field).and_then(Value::as_i64);
    let fiscal_year = stored.get("fiscal_year").filter(|it| !it.is_null()).map(|it| {
        let part = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
        (part("starts"), part("label"))
    });
    Draft {
        issuer: text("issuer", ""),
        pattern: text("pattern", ""),
        reset: text("reset", ""),
        fiscal_year,
        time_zone: text("time_zone", ""),
        first: number("first").unwrap_or(-1),
        gapless: stored.get("gapless").and_then(Value::as_bool).unwrap_or(true),
        overflow: text("overflow", ""),
        max_length: number("max_length").and_then(|length| length.try_into().ok()).unwrap_or(-1),
        chronology: text("chronology", "none"),
        max_days_ahead: number("max_days_ahead"),
        release: text("release", "never"),
        reservation_ttl_seconds: number("reservation_ttl_seconds"),
        reservation_overdue: text("reservation_overdue", "alarm"),
    }
}

/// Settings that were checked before they were stored.
pub fn stored(stored: &Value) -> Result<Settings, Error> {
    let all = stored.as_object().ok_or_else(|| Error::corrupt("stored settings are no object"))?;
    read(all).check().map_err(|errors| Error::corrupt(format!("stored settings: {errors:?}")))
}
