//! The verbs of a number that is there: confirm, fail, void, release. They are safe to repeat and need no key.

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
};
use domain::{
    id::SeriesName,
    life::Verb,
    principal::{Principal, Scope},
    series::FieldError,
};
use ledger::Asked;
use serde::Deserialize;

use crate::{
    app::Gateway,
    auth::Scopes,
    body::{Optional, Path},
    operation::Call,
    problem::Failed,
};

/// The longest reason, in characters.
const REASON: usize = 2_000;
/// In the path, for a text that is in the query: one that a path can't hold as it is.
const IN_QUERY: &str = "-";

/// What the query may say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    number: Option<String>,
}

/// Everything that a verb's handler is given.
type Given = (
    State<Gateway>,
    Extension<Principal>,
    Extension<Scopes>,
    Extension<Call>,
    Path<(String, String)>,
    Result<Query<Named>, QueryRejection>,
);

pub(crate) async fn confirm(given: Given, body: Optional<api::Step>) -> Result<axum::Json<api::Number>, Failed> {
    step(Verb::Confirm, given, body.0).await
}

pub(crate) async fn fail(given: Given, body: Optional<api::Step>) -> Result<axum::Json<api::Number>, Failed> {
    step(Verb::Fail, given, body.0).await
}

pub(crate) async fn void(given: Given, body: Optional<api::Step>) -> Result<axum::Json<api::Number>, Failed> {
    if body.0.reason.is_none() {
        return Err(Failed::field("/reason", "say why the number is given up; it is final"));
    }
    step(Verb::Void, given, body.0).await
}

pub(crate) async fn release(given: Given, body: Optional<api::Step>) -> Result<axum::Json<api::Number>, Failed> {
    step(Verb::Release, given, body.0).await
}

async fn step(verb: Verb, given: Given, body: api::Step) -> Result<axum::Json<api::Number>, Failed> {
    let (State(gateway), Extension(principal), Extension(scopes), Extension(call), Path((name, text)), query) = given;
    let series = SeriesName::parse(&name)?;
    let number = named(text, super::query(query)?)?;
    let reason = body.reason.map(reason).transpose()?;
    let life = life(body.life)?;
    let placement = gateway.placement(&principal, &series).await?;
    let asked = Asked {
        series: &series,
        number: &number,
        verb,
        life,
        reason: reason.as_deref(),
        may_override: scopes.0.contains(&Scope::NumbersOverride),
        at: call.at,
        operation_id: &call.operation_id,
        trace_id: call.trace_id.as_deref(),
    };
    let number = match verb {
        Verb::Release => gateway.ledger.release(&placement.shard, &principal, &asked).await,
        Verb::Confirm | Verb::Fail | Verb::Void => gateway.ledger.step(&placement.shard, &principal, &asked).await,
    };
    let number = number.map_err(Failed::shard)?;
    Ok(axum::Json(super::issue::words(&series, &number)))
}

/// The text of the number, from the path or, where the path says so, from the query.
fn named(in_path: String, query: Named) -> Result<String, Failed> {
    let text = match (in_path.as_str(), query.number) {
        (IN_QUERY, Some(number)) => number,
        (_, None) => in_path,
        (_, Some(_)) => return Err(Failed::field("/number", "in the query: goes with - in the path's place of the number")),
    };
    super::number::readable(text)
}

/// Which life is meant: the first, if nothing else is said.
pub(crate) fn life(said: Option<i32>) -> Result<i32, Failed> {
    let life = said.unwrap_or(1);
    if life < 1 {
        return Err(Failed::field(
            "/life",
            "must be 1 or more: 1 is a number's first life, and the answer that gave it says any later one",
        ));
    }
    Ok(life)
}

pub(crate) fn reason(text: String) -> Result<String, Failed> {
    let length = text.chars().count();
    if text.trim().is_empty() || length > REASON {
        let detail = format!("must be 1 to {REASON} characters that say something, not {length}");
        return Err(Failed::fields(vec![FieldError::new("/reason", detail)]));
    }
    Ok(text)
}
