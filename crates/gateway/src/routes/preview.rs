//! What would come next; uses nothing.

use api::{Preview, PreviewNumber, Previewed};
use axum::{Extension, extract::State};
use domain::{id::SeriesName, period::parse_date, principal::Principal};

use crate::{
    app::Gateway,
    body::{Json, Path},
    operation::Call,
    problem::Failed,
};

/// The most numbers in one preview.
const MOST: i64 = 1_000;

pub(crate) async fn preview(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    Path(name): Path<String>,
    Json(body): Json<Preview>,
) -> Result<axum::Json<Previewed>, Failed> {
    let name = SeriesName::parse(&name)?;
    let date = body.document_date.as_deref().map(parse_date).transpose();
    let date = date.map_err(|detail| Failed::field("/document_date", detail))?;
    let count = Some(body.count.unwrap_or(1)).filter(|count| (1..=MOST).contains(count));
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or_else(|| Failed::field("/count", format!("must be from 1 to {MOST}")))?;
    let placement = gateway.placement(&principal, &name).await?;
    let preview = gateway.ledger.preview(&placement.shard, &principal, &name, date, count, call.at).await;
    let preview = preview.map_err(Failed::shard)?;
    let numbers = preview.numbers.into_iter().map(|next| PreviewNumber { number: next.number, value: next.value });
    Ok(axum::Json(Previewed { period: preview.period.to_string(), numbers: numbers.collect() }))
}
