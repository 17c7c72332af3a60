//! Alive and ready, for machines.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    routing::get,
};
use serde::Serialize;
use store::Stop;

use crate::{Exposition, app::Gateway};

/// How long a database may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Serialize)]
pub(crate) struct Health {
    status: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    checks: BTreeMap<String, &'static str>,
}

/// What is counted, for Prometheus.
pub(crate) fn metrics<S: Clone + Send + Sync + 'static>(text: Exposition) -> Router<S> {
    let show = async move || ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text());
    Router::new().route("/metrics", get(show))
}

/// The process runs.
pub(crate) async fn alive() -> Json<Health> {
    Json(Health { status: "ok", checks: BTreeMap::new() })
}

/// The process can serve: not on its way out, the directory and at least one shard answer, and no shard's
/// clock disagrees with ours.
pub(crate) async fn ready(State(gateway): State<Gateway>) -> (StatusCode, Json<Health>) {
    let mut checks = BTreeMap::new();
    let directory = tokio::time::timeout(PATIENCE, gateway.directory.ping()).await;
    let directory_here = matches!(directory, Ok(Ok(())));
    checks.insert("directory".to_owned(), if directory_here { "ok" } else { "away" });
    let (mut here, mut apart) = (0, false);
    for shard in gateway.ledger.shards() {
        let said = match tokio::time::timeout(PATIENCE, gateway.ledger.ping(shard)).await {
            Ok(Ok(())) => {
                here += 1;
                "ok"
            }
            Ok(Err(Stop::ClocksApart { .. })) => {
                apart = true;
                "clock apart"
            }
            _ => "away",
        };
        checks.insert(format!("shard {shard}"), said);
    }
    let draining = gateway.draining.is_cancelled();
    let ready = directory_here && here > 0 && !apart && !draining;
    let all = ready && checks.values().all(|said| *said == "ok");
    let status = match (ready, all) {
        (true, true) => "ok",
        (true, false) => "degraded",
        (false, _) if draining => "draining",
        (false, _) => "not ready",
    };
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(Health { status, checks }))
}
