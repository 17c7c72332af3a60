//! All numbers of a series as one stream: CSV (RFC 4180) or JSON, one object a line.

use std::sync::Arc;

use axum::response::Response;
use directory::Placement;
use domain::principal::Principal;
use ledger::{Filter, Listed, Place};

use crate::{
    app::Gateway,
    problem::Failed,
    routes::list,
    stream::{self, Pieces},
};

/// How many numbers are read at once.
const PAGE: i64 = 2_000;

/// How the numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Csv,
    JsonLines,
}

impl Format {
    pub(crate) fn read(word: &str) -> Result<Self, Failed> {
        match word {
            "csv" => Ok(Self::Csv),
            "jsonl" => Ok(Self::JsonLines),
            _ => Err(Failed::field("/format", "must be csv or jsonl; without it the answer is a page")),
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::JsonLines => "application/jsonl",
        }
    }
}

const COLUMNS: [&str; 10] =
    ["number", "value", "period", "part", "series", "state", "document_ref", "document_date", "issued_at", "metadata"];

/// Page after page, each in a short transaction of its own: what is issued meanwhile comes too, nothing comes twice.
pub(crate) async fn stream(
    gateway: Gateway,
    principal: Principal,
    placement: Arc<Placement>,
    filter: Filter,
    after: Option<Place>,
    format: Format,
) -> Result<Response, Failed> {
    // The first page is read before the head goes out: what goes wrong at once is said properly.
    let first = page(&gateway, &principal, &placement, &filter, after.as_ref()).await?;
    let reader = gateway.clone();
    Ok(stream::answer(&gateway, format.kind(), move |mut pieces| async move {
        let mut page_now = first;
        let mut head = format == Format::Csv;
        loop {
            let full = i64::try_from(page_now.len()) == Ok(PAGE);
            let last = page_now.last().map(|number| number.place.clone());
            let Some(text) = write(&placement, &page_now, format, head) else { return };
            if pieces.send(text).await.is_err() {
                return;
            }
            head = false;
            if !full {
                break;
            }
            match page(&reader, &principal, &placement, &filter, last.as_ref()).await {
                Ok(next) => page_now = next,
                Err(failed) => {
                    tracing::warn!(?failed, "an export was cut off");
                    return;
                }
            }
        }
        Pieces::finish(pieces);
    }))
}

async fn page(
    gateway: &Gateway,
    principal: &Principal,
    placement: &Placement,
    filter: &Filter,
    after: Option<&Place>,
) -> Result<Vec<Listed>, Failed> {
    let listed = gateway.ledger.list(&placement.shard, principal, &placement.name, filter, (after, PAGE)).await;
    listed.map_err(Failed::shard)
}

/// The numbers as text; none if one can't be written, which can't be.
fn write(placement: &Placement, numbers: &[Listed], format: Format, head: bool) -> Option<Vec<u8>> {
    let numbers = numbers.iter().map(|number| list::words(&placement.name, number));
    match format {
        Format::JsonLines => {
            let mut text = Vec::new();
            for number in numbers {
                serde_json::to_writer(&mut text, &number).ok()?;
                text.push(b'\n');
            }
            Some(text)
        }
        Format::Csv => {
            let mut csv = csv::Writer::from_writer(Vec::new());
            if head {
                csv.write_record(COLUMNS).ok()?;
            }
            for number in numbers {
                let (value, part) = (number.value.to_string(), number.part.to_string());
                let metadata = number.metadata.map(|metadata| metadata.to_string());
                csv.write_record([
                    number.number.as_deref().unwrap_or_default(),
                    &value,
                    &number.period,
                    &part,
                    &number.series,
                    &number.state,
                    number.document_ref.as_deref().unwrap_or_default(),
                    number.document_date.as_deref().unwrap_or_default(),
                    number.issued_at.as_deref().unwrap_or_default(),
                    metadata.as_deref().unwrap_or_default(),
                ])
                .ok()?;
            }
            csv.into_inner().ok()
        }
    }
}
