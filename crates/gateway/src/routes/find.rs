//! The same question to every series of the tenant: who has this text, or this document?

use std::{collections::BTreeMap, sync::Arc};

use api::{Sighting, Sightings, Slug};
use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
};
use directory::Placement;
use domain::{id::DocumentRef, principal::Principal};
use ledger::Sought;
use serde::Deserialize;

use crate::{app::Gateway, problem::Failed, routes::number};

/// How many placements are read at once.
const PAGE: i64 = 1_000;

/// What the query may say: one of the two.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    text: Option<String>,
    document_ref: Option<String>,
}

pub(crate) async fn find(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<axum::Json<Sightings>, Failed> {
    let sought = match super::query(asked)? {
        Asked { text: Some(text), document_ref: None } => match number::readable(text) {
            Ok(text) => Sought::Text(text),
            // No series could make it.
            Err(_) => return Ok(axum::Json(Sightings { items: Vec::new() })),
        },
        Asked { text: None, document_ref: Some(raw) } => Sought::Document(reference(&raw)?),
        _ => return Err(Failed::field("", "say in the query what is looked for: text or document_ref, one of them")),
    };
    let mut on_shards: BTreeMap<String, Vec<Arc<Placement>>> = BTreeMap::new();
    let mut after: Option<String> = None;
    loop {
        let placed = gateway.directory.placements(&principal, after.as_deref(), PAGE).await.map_err(Failed::directory)?;
        after = placed.last().map(|placement| placement.name.to_string());
        let full = i64::try_from(placed.len()) == Ok(PAGE);
        for placement in placed {
            on_shards.entry(placement.shard.clone()).or_default().push(Arc::new(placement));
        }
        if !full {
            break;
        }
    }
    let mut items = Vec::new();
    for (shard, placements) in on_shards {
        match gateway.ledger.find(&shard, &principal, &sought).await.map_err(Failed::shard) {
            Ok(found) => items.extend(found.into_iter().map(|found| {
                let text = match &sought {
                    Sought::Text(text) => text.as_str(),
                    Sought::Document(_) => "",
                };
                Sighting::Here(Box::new(number::words(&found.series, text, found.explained)))
            })),
            // Half an answer is better than none if it says what is missing.
            Err(failed) if failed.slug() == Slug::ShardUnavailable => {
                let away = |placement: Arc<Placement>| Sighting::Away { series: placement.name.to_string(), unavailable: true };
                items.extend(placements.into_iter().map(away));
            }
            Err(failed) => return Err(failed),
        }
    }
    items.sort_by(|a, b| series(a).cmp(series(b)));
    Ok(axum::Json(Sightings { items }))
}

fn series(sighting: &Sighting) -> &str {
    match sighting {
        Sighting::Here(explained) => &explained.series,
        Sighting::Away { series, .. } => series,
    }
}

/// A reference in a query.
pub(crate) fn reference(raw: &str) -> Result<String, Failed> {
    let read = DocumentRef::parse(raw).map_err(|error| Failed::field("/document_ref", format!("in the query: {error}")))?;
    Ok(read.to_string())
}
