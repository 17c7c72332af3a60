//! The next value of a period goes up.

use axum::{Extension, extract::State};
use domain::{id::SeriesName, principal::Principal};
use ledger::Raise;

use crate::{
    app::Gateway,
    body::{Json, Path},
    operation::Call,
    problem::Failed,
    routes::{periods, step},
};

pub(crate) async fn raise(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    Path((name, period)): Path<(String, String)>,
    Json(body): Json<api::Raise>,
) -> Result<axum::Json<api::Period>, Failed> {
    let name = SeriesName::parse(&name)?;
    let period = periods::named(&period).ok_or_else(|| Failed::not_found("such period"))?;
    let reason = step::reason(body.reason)?;
    if !(0..=domain::MAX_VALUE).contains(&body.value) {
        return Err(Failed::field("/value", format!("must be from 0 to {}", domain::MAX_VALUE)));
    }
    let placement = gateway.placement(&principal, &name).await?;
    let wish = Raise {
        series: &name,
        period: &period,
        next: body.value,
        reason: &reason,
        at: call.at,
        operation_id: &call.operation_id,
    };
    gateway.ledger.raise(&placement.shard, &principal, &wish).await.map_err(Failed::shard)?;
    let now = gateway.ledger.period(&placement.shard, &principal, &name, &period).await.map_err(Failed::shard)?;
    let now = now.ok_or_else(|| Failed::not_found("such period"))?;
    Ok(axum::Json(periods::words(&now)))
}
