//! Series.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Body;

/// `POST /v1/series`. What is not given has its default; unknown members are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateSeries {
    /// Its code.
    pub series: String,
    /// How a value becomes a text.
    pub pattern: String,
    /// Everything else.
    #[serde(default = "issuer")]
    pub issuer: String,
    /// When counting begins again.
    #[serde(default = "reset")]
    pub reset: String,
    /// When a fiscal year begins and what it is called.
    #[serde(default)]
    pub fiscal_year: Option<FiscalYear>,
    /// An IANA zone.
    #[serde(default = "time_zone")]
    pub time_zone: String,
    /// The first value of every period.
    #[serde(default = "one")]
    pub first: i64,
    /// False allows an explained jump.
    #[serde(default = "yes")]
    pub gapless: bool,
    /// `refuse` or `widen`.
    #[serde(default = "overflow")]
    pub overflow: String,
    /// The longest text allowed.
    #[serde(default = "max_length")]
    pub max_length: i32,
    /// `none` or `strict`.
    #[serde(default = "none")]
    pub chronology: String,
    /// How far ahead of today a date may lie.
    #[serde(default)]
    pub max_days_ahead: Option<i64>,
    /// `never` or `last_unsent`.
    #[serde(default = "never")]
    pub release: String,
    /// How long a reservation may stay one.
    #[serde(default)]
    pub reservation_ttl_seconds: Option<i64>,
    /// What becomes of one that stayed longer: `alarm` (which is also what an absent one means) or `void`. Shown where there is
    /// a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_overdue: Option<String>,
    /// How many independent sub-series.
    #[serde(default = "one")]
    pub parts: i64,
    /// Ranges granted by an authority.
    #[serde(default)]
    pub authorisations: Vec<Value>,
    /// A named set of rules.
    #[serde(default)]
    pub rule_pack: Option<String>,
    /// Where its documents go.
    #[serde(default)]
    pub integrator: Option<String>,
}

fn issuer() -> String {
    "default".to_owned()
}
fn reset() -> String {
    "yearly".to_owned()
}
fn time_zone() -> String {
    "Europe/Istanbul".to_owned()
}
fn one() -> i64 {
    1
}
fn yes() -> bool {
    true
}
fn overflow() -> String {
    "refuse".to_owned()
}
fn max_length() -> i32 {
    16
}
fn none() -> String {
    "none".to_owned()
}
fn never() -> String {
    "never".to_owned()
}

impl CreateSeries {
    /// A series with this code and pattern, and the default for everything else.
    pub fn new(series: impl Into<String>, pattern: impl Into<String>) -> Self {
        Self {
            series: series.into(),
            pattern: pattern.into(),
            issuer: issuer(),
            reset: reset(),
            fiscal_year: None,
            time_zone: time_zone(),
            first: one(),
            gapless: yes(),
            overflow: overflow(),
            max_length: max_length(),
            chronology: none(),
            max_days_ahead: None,
            release: never(),
            reservation_ttl_seconds: None,
            reservation_overdue: None,
            parts: one(),
            authorisations: Vec::new(),
            rule_pack: None,
            integrator: None,
        }
    }
}

impl Body for CreateSeries {
    fn defaults() -> Map<String, Value> {
        match json!(Self::new("", "")) {
            Value::Object(mut members) => {
                members.retain(|name, _| name != "series" && name != "pattern");
                members
            }
            _ => Map::new(),
        }
    }
}

/// A series as it stands; every member is always present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What decides its numbers.
    #[serde(flatten)]
    pub settings: CreateSeries,
    /// `active`, `paused` or `closed`.
    pub status: String,
    /// Counts its changes.
    pub version: i64,
    /// What is allowed and mostly not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// When a fiscal year begins, and what it is called after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FiscalYear {
    /// Its first day, as `MM-DD`.
    pub starts: String,
    /// `start` or `end`: the calendar year that it is called after.
    pub label: String,
}

/// `PATCH /v1/series/{series}`: what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchSeries {
    /// How a value becomes a text.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// When counting begins again.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// When a fiscal year begins and what it is called after; null with another reset.
    #[serde(default, deserialize_with = "crate::given", skip_serializing_if = "Option::is_none")]
    pub fiscal_year: Option<Option<FiscalYear>>,
    /// An IANA zone.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The first value of every period that has not begun.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub first: Option<i64>,
    /// False allows an explained jump.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub gapless: Option<bool>,
    /// `refuse` or `widen`.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub overflow: Option<String>,
    /// The longest text allowed.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i32>,
    /// `none` or `strict`.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub chronology: Option<String>,
    /// How far ahead of today a date may lie; null: any.
    #[serde(default, deserialize_with = "crate::given", skip_serializing_if = "Option::is_none")]
    pub max_days_ahead: Option<Option<i64>>,
    /// `never` or `last_unsent`.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// How long a reservation may stay one; null: for as long as it takes.
    #[serde(default, deserialize_with = "crate::given", skip_serializing_if = "Option::is_none")]
    pub reservation_ttl_seconds: Option<Option<i64>>,
    /// `alarm` or `void`.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub reservation_overdue: Option<String>,
    /// `active`, `paused`, or `closed` for ever.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

impl Body for PatchSeries {}

/// `POST /v1/series/{series}/periods/{period}/next`: the next value goes up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// The next value.
    pub value: i64,
    /// Why, 1 to 2,000 characters.
    pub reason: String,
}

impl Body for Raise {}

/// A series in a list; one whose shard is away is there by name only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ListedSeries {
    /// As it stands.
    Here(Box<Series>),
    /// By name.
    Away {
        /// Its code.
        series: String,
        /// Always true.
        unavailable: bool,
    },
}
