//! Numbers: issuing them, explaining them, auditing them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Body, Object, PatchSeries};

/// `POST /v1/series/{series}/numbers`: one document, `count` nameless ones, or a list of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issue {
    /// The caller's reference of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_ref: Option<String>,
    /// Its date, RFC 3339 full-date; absent: today in the series' zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_date: Option<String>,
    /// Kept with the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// How many, for documents without a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// Several documents; all get a number, or none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<Object<Item>>>,
}

impl Body for Issue {}

/// One of several documents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The caller's reference of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_ref: Option<String>,
    /// Its date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_date: Option<String>,
    /// Kept with the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// `POST /v1/series/{series}/reservations`: a document that is to have a number before it is known what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// The caller's reference of the document.
    pub document_ref: String,
    /// Its date, RFC 3339 full-date; absent: today in the series' zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_date: Option<String>,
    /// Kept with the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

impl Body for Reserve {}

/// `POST …/numbers/{number}/confirm`, `/fail`, `/void` and `/release`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Which life of the number is meant, so that a late call never meets another document; absent: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<i32>,
    /// Why, 1 to 2,000 characters; `void` needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Body for Step {}

/// `PATCH …/numbers/{number}`: what is kept with a number changes or is erased; the number stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amend {
    /// Which life of the number is meant; absent: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<i32>,
    /// What is kept with it from now on; null: nothing. Absent: as it is.
    #[serde(default, deserialize_with = "crate::given", skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Option<Map<String, Value>>>,
    /// Null: the reference of its document is forgotten. Absent: as it is.
    #[serde(default, deserialize_with = "crate::given", skip_serializing_if = "Option::is_none")]
    pub document_ref: Option<Option<String>>,
    /// Why, 1 to 2,000 characters.
    pub reason: String,
}

impl Body for Amend {}

/// A number in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedNumber {
    /// The text on the document; null for a value that is missing in imported history.
    pub number: Option<String>,
    /// The integer.
    pub value: i64,
    /// The period it belongs to.
    pub period: String,
    /// Which part of the series.
    pub part: i16,
    /// The series.
    pub series: String,
    /// What has become of it.
    pub state: String,
    /// Which life it is in, where it was released and given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<i32>,
    /// The caller's reference of the document.
    pub document_ref: Option<String>,
    /// The document's date.
    pub document_date: Option<String>,
    /// When it was issued.
    pub issued_at: Option<String>,
    /// What the caller wanted kept with it.
    pub metadata: Option<Value>,
}

/// What a series says of a text that all were asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sighting {
    /// What it knows.
    Here(Box<Explained>),
    /// Its shard is away.
    Away {
        /// The series.
        series: String,
        /// Always true.
        unavailable: bool,
    },
}

/// `GET /v1/numbers`: the series that know a text or a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sightings {
    /// In the order of the series' codes.
    pub items: Vec<Sighting>,
}

/// A period of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// Its name.
    pub period: String,
    /// `open`, `paused` or `closed`.
    pub state: String,
    /// The largest value given; null where there is none.
    pub last: Option<i64>,
    /// The value that comes next; null where none does.
    pub next: Option<i64>,
    /// When it was closed; null also where the series as a whole was.
    pub closed_at: Option<String>,
    /// By whom.
    pub closed_by: Option<String>,
}

/// A number that was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number {
    /// The text on the document.
    pub number: String,
    /// The integer.
    pub value: i64,
    /// The period it belongs to.
    pub period: String,
    /// Which part of the series.
    pub part: i16,
    /// The series.
    pub series: String,
    /// What has become of it.
    pub state: String,
    /// Which life it is in, where it was released and given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<i32>,
    /// The caller's reference of the document.
    pub document_ref: Option<String>,
    /// The document's date.
    pub document_date: String,
    /// When it was issued; null while it is not.
    pub issued_at: Option<String>,
}

/// Several, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    /// The numbers.
    pub numbers: Vec<Number>,
}

/// One number read back with its whole history, existing or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The text that was asked for.
    pub number: String,
    /// The integer.
    pub value: i64,
    /// The period it belongs to.
    pub period: String,
    /// Which part of the series.
    pub part: i16,
    /// The series.
    pub series: String,
    /// What has become of it; `unused` for a text that was never given.
    pub state: String,
    /// Which life it is in, where it was released and given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<i32>,
    /// The caller's reference of the document.
    pub document_ref: Option<String>,
    /// The document's date.
    pub document_date: Option<String>,
    /// When it was issued.
    pub issued_at: Option<String>,
    /// What the caller wanted kept with it.
    pub metadata: Option<Value>,
    /// What happened to it, oldest first; for an unused text one entry that says why.
    pub history: Vec<Entry>,
}

/// One step in the life of a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When; absent where nothing happened.
    pub at: Option<String>,
    /// From which state.
    pub from: Option<String>,
    /// To which.
    pub to: String,
    /// Who.
    pub principal: Option<String>,
    /// By which call.
    pub operation_id: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The trace of that call (W3C Trace Context), if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

/// `POST /v1/series/{series}/preview`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preview {
    /// For documents of this date; absent: today in the series' zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_date: Option<String>,
    /// How many; absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// As if the series had been changed so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<Object<PatchSeries>>,
}

impl Body for Preview {}

/// What would come next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previewed {
    /// In which period.
    pub period: String,
    /// In order; none where the proposed change would be refused, or the next numbers would.
    pub numbers: Vec<PreviewNumber>,
    /// Why a proposed change, or the numbers under it, would be refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<PreviewRefusal>,
    /// What is allowed and mostly not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A no that would be met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewRefusal {
    /// The kind of problem, such as `pattern-overlaps`.
    pub slug: String,
    /// What is wrong and what would be right.
    pub detail: String,
}

/// A number that nobody has yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewNumber {
    /// The text.
    pub number: String,
    /// The integer.
    pub value: i64,
}

/// The proof of a series, or of one period of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// The series.
    pub series: String,
    /// The period asked for, or of the only one there is, with its figures; over all periods sums and lists.
    #[serde(flatten)]
    pub whole: PeriodAudit,
    /// Each period by itself, where all were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub periods: Option<Vec<PeriodAudit>>,
}

/// A line of `GET …/audit?format=jsonl`: how far it is, again and again, and at last the proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditLine {
    /// How far it is.
    Progress(Progress),
    /// The proof.
    Audit(Box<Audit>),
}

/// How far something is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What is looked at: `numbers`, `texts`, `histories`, `claims`.
    pub step: String,
    /// How many rows were looked at.
    pub done: i64,
    /// Of about how many.
    pub of: i64,
}

/// The proof of one period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodAudit {
    /// Which; null over all periods.
    pub period: Option<String>,
    /// The smallest value given; null where there is none, and over all periods.
    pub first: Option<i64>,
    /// The largest value given.
    pub last: Option<i64>,
    /// The value that comes next; null where the period is closed.
    pub next: Option<i64>,
    /// How many numbers are in which state.
    pub states: BTreeMap<String, i64>,
    /// The unbroken stretches.
    pub runs: Vec<Run>,
    /// Values that nobody can account for.
    pub gaps: Vec<Gap>,
    /// Texts on two documents.
    pub duplicates: Vec<String>,
    /// Reservations past their deadline.
    pub overdue: Vec<String>,
    /// Numbers that have been `sending` or `in_doubt` for longer than a quarter of an hour.
    #[serde(default)]
    pub stuck: Vec<String>,
    /// States that can't be.
    pub impossible: Vec<String>,
    /// Whether every value is accounted for.
    pub complete: bool,
}

/// An unbroken stretch of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The period.
    pub period: String,
    /// Its first value.
    pub first: i64,
    /// The last value that it may reach.
    pub limit: Option<i64>,
    /// Why it began there.
    pub why: String,
    /// Who began it.
    pub principal: String,
    /// When.
    pub at: String,
}

/// Values that are not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The period.
    pub period: String,
    /// The first missing value.
    pub from: i64,
    /// The last missing value.
    pub to: i64,
}
