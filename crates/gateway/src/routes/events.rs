//! The tenant's audit trail, out of every database that keeps a part of it.

use std::collections::BTreeMap;

use api::{Event, Page};
use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::principal::Principal;
use store::Reached;

use crate::{app::Gateway, paging::Paging, problem::Failed};

/// How a cursor begins: it holds how far each database was read.
const KIND: &str = "events";
/// The directory's name among the shards'; no shard's name has such a character.
const DIRECTORY: &str = "@";

type Places = BTreeMap<String, Reached>;

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    paging: Result<Query<Paging>, QueryRejection>,
) -> Result<axum::Json<Page<Event>>, Failed> {
    let paging = super::query(paging)?;
    let limit = paging.limit()?;
    let cursor = paging.after(KIND)?;
    let mut places: Places = match &cursor {
        None => BTreeMap::new(),
        Some(cursor) => read(cursor).ok_or_else(Paging::invalid)?,
    };
    let mut trails = Vec::new();
    let reached = |places: &Places, name: &str| places.get(name).copied().unwrap_or_default();
    let of_directory = gateway.directory.events(&principal, reached(&places, DIRECTORY), limit).await;
    trails.push((DIRECTORY.to_owned(), of_directory.map_err(Failed::directory)?.into_iter().peekable()));
    let shards: Vec<String> = gateway.ledger.shards().map(str::to_owned).collect();
    for shard in shards {
        let events = gateway.ledger.events(&shard, &principal, reached(&places, &shard), limit).await;
        trails.push((shard, events.map_err(Failed::shard)?.into_iter().peekable()));
    }
    // Of what comes next in each, the earliest. In each the order is that of its transactions, whatever the instants say.
    let mut items = Vec::new();
    while i64::try_from(items.len()).is_ok_and(|len| len < limit) {
        let next = trails.iter_mut().filter_map(|(name, events)| Some((events.peek()?.at, name.clone()))).min();
        let Some((_, name)) = next else { break };
        let event = trails.iter_mut().find(|(of, _)| *of == name).and_then(|(_, events)| events.next());
        let Some(event) = event else { break };
        places.insert(name, event.place);
        items.push(words(event));
    }
    let full = i64::try_from(items.len()) == Ok(limit);
    // Also at the end: whoever asks again with it hears only what is new.
    let next_cursor = (full || cursor.is_some() || !items.is_empty()).then(|| write(&places));
    Ok(axum::Json(Page { items, next_cursor }))
}

fn write(places: &Places) -> String {
    let inside: Vec<_> = places.iter().map(|(name, place)| format!("{name}={}.{}", place.xid, place.event)).collect();
    URL_SAFE_NO_PAD.encode(format!("{KIND}:{}", inside.join(",")))
}

fn read(cursor: &str) -> Option<Places> {
    let place = |word: &str| {
        let (name, place) = word.split_once('=')?;
        let (xid, event) = place.split_once('.')?;
        let natural = |digits: &str| digits.parse::<i64>().ok().filter(|value| *value >= 0);
        Some((name.to_owned(), Reached { xid: natural(xid)?, event: natural(event)? }))
    };
    cursor.split(',').map(place).collect()
}

fn words(event: store::Event) -> Event {
    Event {
        at: super::instant(event.at),
        kind: event.kind,
        subject: event.subject,
        principal: event.principal,
        operation_id: event.operation_id,
        before: event.before,
        after: event.after,
    }
}
