//! What would come next; uses nothing.

use api::{Preview, PreviewNumber, PreviewRefusal, Previewed};
use axum::{Extension, extract::State};
use domain::{id::SeriesName, period::parse_date, principal::Principal};
use store::Stop;

use crate::{
    app::Gateway,
    body::{Json, Path},
    operation::Call,
    problem::Failed,
    routes::{change, series},
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
    let now = series::present(&gateway, &principal, &name).await?;
    let (series, refusals) = match &body.proposed {
        None => (now, Vec::new()),
        Some(proposed) => change::proposed(&gateway, &principal, &now, proposed).await?,
    };
    let mut refusals: Vec<_> =
        refusals.into_iter().map(|error| PreviewRefusal { slug: error.pointer, detail: error.detail }).collect();
    let preview = gateway.ledger.preview(&placement.shard, &principal, &series, date, count, call.at).await;
    let (period, numbers) = match preview {
        Ok(preview) => (preview.period, preview.numbers),
        // What is proposed is shown with what it would meet; what is there is refused as an issue would be.
        Err(Stop::Refusal(refusal)) if body.proposed.is_some() => {
            let failed = Failed::from(refusal);
            refusals.push(PreviewRefusal { slug: failed.slug().word().to_owned(), detail: failed.detail().to_owned() });
            let settings = &series.settings;
            (settings.period(date.unwrap_or_else(|| settings.today(call.at))), Vec::new())
        }
        Err(stop) => return Err(Failed::shard(stop)),
    };
    let numbers = numbers.into_iter().map(|next| PreviewNumber { number: next.number, value: next.value }).collect();
    Ok(axum::Json(Previewed { period: period.to_string(), numbers, refusals, warnings: series.settings.warnings() }))
}
