//! What is kept with a number changes or is erased; the number stays.

use api::Amend;
use axum::{Extension, extract::State};
use domain::{id::SeriesName, principal::Principal, series::FieldError};
use ledger::Amendment;
use serde_json::Value;

use crate::{
    app::Gateway,
    body::{Json, Path},
    operation::Call,
    problem::Failed,
    routes::{issue, number, step},
};

pub(crate) async fn amend(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    Path((name, text)): Path<(String, String)>,
    Json(body): Json<Amend>,
) -> Result<axum::Json<api::Explained>, Failed> {
    let series = SeriesName::parse(&name)?;
    let text = number::readable(text)?;
    let reason = step::reason(body.reason)?;
    let life = step::life(body.life)?;
    let mut errors = Vec::new();
    if body.metadata.is_none() && body.document_ref.is_none() {
        errors.push(FieldError::new("", "says nothing to change: give metadata, or document_ref as null"));
    }
    if matches!(body.document_ref, Some(Some(_))) {
        let detail = "can be erased (null), not exchanged: a number belongs to one document";
        errors.push(FieldError::new("/document_ref", detail));
    }
    let metadata = body.metadata.map(|metadata| metadata.map(Value::Object));
    if let Some(Some(metadata)) = &metadata {
        errors.extend(issue::unfit(metadata).map(|detail| FieldError::new("/metadata", detail)));
    }
    if !errors.is_empty() {
        return Err(Failed::fields(errors));
    }
    let placement = gateway.placement(&principal, &series).await?;
    let wanted = Amendment {
        series: &series,
        number: &text,
        life,
        metadata: metadata.as_ref().map(Option::as_ref),
        forget_document: body.document_ref.is_some(),
        reason: &reason,
        at: call.at,
        operation_id: &call.operation_id,
        trace_id: call.trace_id.as_deref(),
    };
    gateway.ledger.amend(&placement.shard, &principal, &wanted).await.map_err(Failed::shard)?;
    let explained = gateway.ledger.explain(&placement.shard, &principal, &series, &text).await.map_err(Failed::shard)?;
    let explained = explained.ok_or_else(|| Failed::not_found("such number"))?;
    Ok(axum::Json(number::words(&series, &text, explained)))
}
