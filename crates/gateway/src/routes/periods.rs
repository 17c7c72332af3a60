//! The periods of a series, and closing one for good.

use api::Page;
use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
};
use domain::{id::SeriesName, period::Period, principal::Principal};
use ledger::PeriodState;

use crate::{app::Gateway, body::Path, operation::Call, paging::Paging, problem::Failed};

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    paging: Result<Query<Paging>, QueryRejection>,
) -> Result<axum::Json<Page<api::Period>>, Failed> {
    let name = SeriesName::parse(&name)?;
    let paging = super::query(paging)?;
    let kind = format!("periods/{name}");
    let (after, limit) = (paging.after(&kind)?, paging.limit()? + 1);
    let placement = gateway.placement(&principal, &name).await?;
    let periods = gateway.ledger.periods(&placement.shard, &principal, &name, (after.as_deref(), limit)).await;
    let periods = periods.map_err(Failed::shard)?.ok_or_else(|| Failed::not_found(format!("series {name}")))?;
    let page = paging.page(&kind, periods, |period| period.period.to_string())?;
    Ok(axum::Json(Page { items: page.items.iter().map(words).collect(), next_cursor: page.next_cursor }))
}

pub(crate) async fn close(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    Path((name, period)): Path<(String, String)>,
) -> Result<axum::Json<api::Period>, Failed> {
    let name = SeriesName::parse(&name)?;
    let period = named(&period).ok_or_else(|| Failed::not_found("such period"))?;
    let placement = gateway.placement(&principal, &name).await?;
    let closed = gateway.ledger.close_period(&placement.shard, &principal, &name, &period, (call.at, &call.operation_id)).await;
    let closed = closed.map_err(Failed::shard)?.ok_or_else(|| Failed::not_found(format!("series {name}")))?;
    Ok(axum::Json(words(&closed)))
}

/// What can be the name of a period at all.
pub(crate) fn named(name: &str) -> Option<Period> {
    let fits = (1..=16).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| Period::named(name))
}

pub(crate) fn words(period: &PeriodState) -> api::Period {
    api::Period {
        period: period.period.to_string(),
        state: period.gate.word().to_owned(),
        last: period.last,
        next: period.next,
        closed_at: period.closed_at.map(super::instant),
        closed_by: period.closed_by.clone(),
    }
}
