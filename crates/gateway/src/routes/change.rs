//! Changing a series under optimistic locking.

use api::PatchSeries;
use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::HeaderMap,
    response::IntoResponse,
};
use domain::{
    id::SeriesName,
    principal::Principal,
    series::{FieldError, Series, Settings, Status},
};
use ledger::{Change, Noted, Version};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    app::Gateway,
    body::{Json, Path},
    operation::Call,
    problem::Failed,
    routes::series,
    versions,
};

/// What decides numbers: changes of these are never merged with others, since nobody has seen what comes of both.
const DECIDES: [&str; 8] = ["pattern", "reset", "fiscal_year", "time_zone", "first", "gapless", "overflow", "max_length"];

/// How often a change is made anew because another came between.
const TRIES: usize = 4;

/// What the query may say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    merge: Option<bool>,
}

pub(crate) async fn change(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    Path(name): Path<String>,
    asked: Result<Query<Asked>, QueryRejection>,
    headers: HeaderMap,
    Json(body): Json<PatchSeries>,
) -> Result<impl IntoResponse, Failed> {
    let name = SeriesName::parse(&name)?;
    let merge = super::query(asked)?.merge.unwrap_or(false);
    let version = versions::if_match(&headers)?;
    let wanted = fields(&body)?;
    if wanted.is_empty() {
        return Err(Failed::field("", "says nothing to change: give the fields that are to be others"));
    }
    let placement = gateway.placement(&principal, &name).await?;
    for _ in 0..TRIES {
        let mut yours = wanted.clone();
        let now = series::present(&gateway, &principal, &name).await?;
        let theirs = all(&Version { version: now.version, draft: now.settings.draft(), status: now.status });
        if now.version != version {
            let base = gateway.ledger.version(&placement.shard, &principal, &name, version).await.map_err(Failed::shard)?;
            let base = base.map(|base| all(&base)).unwrap_or_default();
            if merge {
                // A whole series sent back: what is as it was is no change of yours, nor what others have made so since.
                yours.retain(|field, value| base.get(field) != Some(value) && theirs.get(field) != Some(value));
            }
            if base.is_empty() || !(merge && can_merge(&base, &yours, &theirs)) {
                return Err(conflict(&gateway, &principal, &placement.shard, &name, &call, (base, yours, theirs)).await);
            }
        }
        let (settings, status) = apply(&theirs, &yours)?;
        if (&settings, status) == (&now.settings, now.status) {
            // It is so already: nothing to note, and no version that differs from none.
            return Ok((series::etag(&now), axum::Json(series::words(&now))));
        }
        // What decides no text is no matter for the directory.
        let same_texts = (&settings.pattern, settings.overflow, settings.reset)
            == (&now.settings.pattern, now.settings.overflow, now.settings.reset);
        let meets_own = if same_texts {
            None
        } else {
            let met = gateway.directory.register_pattern(&principal, &name, &settings).await;
            met.map_err(Failed::directory)?.map(|meeting| meeting.example)
        };
        let change = Change {
            series: &name,
            version: now.version,
            settings: &settings,
            status,
            meets_own: meets_own.as_deref(),
            at: call.at,
            operation_id: &call.operation_id,
        };
        if gateway.ledger.change_series(&placement.shard, &principal, &change).await.map_err(Failed::shard)? {
            let changed = Series { name, settings, status, version: now.version + 1 };
            return Ok((series::etag(&changed), axum::Json(series::words(&changed))));
        }
    }
    Err(Failed::new(api::Slug::Busy, "others change this series all the time; nothing was changed, try again in a moment"))
}

/// The fields that a body names, as they are stored.
pub(crate) fn fields(body: &PatchSeries) -> Result<Map<String, Value>, Failed> {
    match serde_json::to_value(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Failed::internal()),
    }
}

/// Every field of a version, with its status.
fn all(version: &Version) -> Map<String, Value> {
    let mut all = store::settings::write(&version.draft);
    all.insert("status".to_owned(), version.status.word().into());
    all
}

/// The series with these fields changed, checked as a whole.
pub(crate) fn apply(now: &Map<String, Value>, yours: &Map<String, Value>) -> Result<(Settings, Status), Failed> {
    let mut wanted = now.clone();
    wanted.extend(yours.clone());
    // What goes with a fiscal year only goes with it.
    if yours.contains_key("reset") && wanted["reset"] != "fiscal_year" && !yours.contains_key("fiscal_year") {
        wanted.insert("fiscal_year".to_owned(), Value::Null);
    }
    let status = wanted["status"].as_str().and_then(Status::from_word);
    let status = status.ok_or_else(|| Failed::field("/status", "must be active, paused or closed"))?;
    let settings = store::settings::read(&wanted).check().map_err(Failed::fields)?;
    Ok((settings, status))
}

/// Whether what you and others changed since is apart, and decides no number.
fn can_merge(base: &Map<String, Value>, yours: &Map<String, Value>, theirs: &Map<String, Value>) -> bool {
    let changed = |field: &&String| base.get(*field) != theirs.get(*field);
    let others: Vec<&String> = theirs.keys().filter(changed).collect();
    let decides = |field: &str| DECIDES.contains(&field);
    !yours.keys().any(|field| decides(field) || others.contains(&field)) && !others.iter().any(|field| decides(field))
}

/// The no, which is noted too: who could not, and what they wanted.
async fn conflict(
    gateway: &Gateway,
    principal: &Principal,
    shard: &str,
    name: &SeriesName,
    call: &Call,
    (base, yours, theirs): (Map<String, Value>, Map<String, Value>, Map<String, Value>),
) -> Failed {
    let noted = Noted {
        kind: "series.conflict",
        subject: name.as_str(),
        before: Some(Value::Object(theirs.clone())),
        after: Some(Value::Object(yours.clone())),
        at: call.at,
        operation_id: &call.operation_id,
    };
    if let Err(stop) = gateway.ledger.note(shard, principal, &noted).await {
        tracing::warn!(error = %stop, "a conflict could not be noted");
    }
    let detail = if base.is_empty() {
        "there never was such a version of this series; read it, and make your change to what it is"
    } else {
        "the series was changed since you read it: see conflicts for what you and others changed; make your change to what it is \
         now. Sent with ?merge=true it is made beside theirs, if no field is in both and neither changes what decides numbers \
         (pattern, reset, fiscal_year, time_zone, first, gapless, overflow, max_length)"
    };
    let base = if base.is_empty() { json!({}).as_object().cloned().unwrap_or_default() } else { base };
    Failed::conflict(detail.to_owned(), versions::conflicts(&base, &yours, &theirs))
}

/// What would be wrong with a proposal, as refusals would say it.
pub(crate) async fn proposed(
    gateway: &Gateway,
    principal: &Principal,
    now: &Series,
    body: &PatchSeries,
) -> Result<(Series, Vec<FieldError>), Failed> {
    let yours = fields(body)?;
    let version = Version { version: now.version, draft: now.settings.draft(), status: now.status };
    let (settings, status) = apply(&all(&version), &yours)?;
    let meetings = gateway.directory.meetings(principal, Some(&now.name), &settings).await.map_err(Failed::directory)?;
    let told = |what: &str, meeting: directory::Meeting| {
        FieldError::new("pattern-overlaps", format!("the texts could be those of {what}, for example {}", meeting.example))
    };
    let other = meetings.other.map(|meeting| told(&format!("series {}", meeting.series), meeting));
    let own = meetings.own.map(|meeting| told("this series under its earlier settings, so it must have no number yet", meeting));
    Ok((Series { settings, status, ..now.clone() }, other.into_iter().chain(own).collect()))
}
