//! The numbers of a series: a page of them, or all as one stream.

use api::{ListedNumber, Page};
use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    response::{IntoResponse, Response},
};
use domain::{id::SeriesName, period::Period, principal::Principal, state::State as NumberState};
use ledger::{Filter, Listed, Place};
use serde::Deserialize;

use crate::{
    app::Gateway,
    body::Path,
    paging::Paging,
    problem::Failed,
    routes::{export, periods},
};

/// What the query may say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    state: Option<String>,
    period: Option<String>,
    document_ref: Option<String>,
    format: Option<String>,
    cursor: Option<String>,
    limit: Option<i64>,
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, Failed> {
    let name = SeriesName::parse(&name)?;
    let asked = super::query(asked)?;
    let filter = asked.filter()?;
    // A cursor belongs to one list: that of this series, so filtered.
    let kind = format!(
        "numbers/{name}/{}/{}/{}",
        filter.state.map_or("", NumberState::word),
        filter.period.as_ref().map_or("", Period::as_str),
        filter.document_ref.is_some()
    );
    let format = asked.format.as_deref().map(export::Format::read).transpose()?;
    let paging = Paging::new(asked.cursor, asked.limit);
    let after = paging.after(&kind)?.map(|after| place(&after).ok_or_else(Paging::invalid)).transpose()?;
    let placement = gateway.placement(&principal, &name).await?;
    if let Some(format) = format {
        if paging.is_limited() {
            return Err(Failed::field("/limit", "goes with pages; a stream has all that follows the cursor"));
        }
        return export::stream(gateway, principal, placement, filter, after, format).await;
    }
    let limit = paging.limit()? + 1;
    let listed = gateway.ledger.list(&placement.shard, &principal, &name, &filter, (after.as_ref(), limit)).await;
    let page = paging.page(&kind, listed.map_err(Failed::shard)?, |number| cursor(&number.place))?;
    let items = page.items.iter().map(|number| words(&name, number)).collect();
    Ok(axum::Json(Page { items, next_cursor: page.next_cursor }).into_response())
}

impl Asked {
    fn filter(&self) -> Result<Filter, Failed> {
        let state = self.state.as_deref().map(|word| {
            let known = NumberState::ALL.map(NumberState::word).join(", ");
            NumberState::from_word(word).ok_or_else(|| Failed::field("/state", format!("must be one of {known}")))
        });
        let period = self.period.as_deref().map(|name| {
            let detail = "must be a period's name, such as 2026, 2026-Q1, 2026-01 or all";
            periods::named(name).ok_or_else(|| Failed::field("/period", detail))
        });
        // What can't be a reference is the reference of nothing, and no database column takes a NUL.
        let document_ref = self.document_ref.as_deref().map(super::find::reference).transpose()?;
        Ok(Filter { state: state.transpose()?, period: period.transpose()?, document_ref })
    }
}

fn cursor(place: &Place) -> String {
    format!("{}/{}/{}", place.part, place.period, place.value)
}

fn place(cursor: &str) -> Option<Place> {
    let (part, rest) = cursor.split_once('/')?;
    let (period, value) = rest.split_once('/')?;
    Some(Place { part: part.parse().ok()?, period: periods::named(period)?, value: value.parse().ok()? })
}

pub(crate) fn words(series: &SeriesName, number: &Listed) -> ListedNumber {
    ListedNumber {
        number: number.number.clone(),
        value: number.place.value,
        period: number.place.period.to_string(),
        part: number.place.part,
        series: series.to_string(),
        state: number.state.word().to_owned(),
        life: (number.life > 1).then_some(number.life),
        document_ref: number.document_ref.clone(),
        document_date: number.document_date.map(|date| date.to_string()),
        issued_at: number.issued_at.map(super::instant),
        metadata: number.metadata.clone(),
    }
}
