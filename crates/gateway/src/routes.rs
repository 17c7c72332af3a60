//! Every route, with the scope that it needs.

mod amend;
mod audit;
mod change;
mod events;
mod export;
mod find;
mod health;
mod issue;
mod keys;
mod list;
mod number;
mod periods;
mod preview;
mod raise;
mod series;
mod step;
mod tenants;

use axum::{
    Router,
    extract::{Query, rejection::QueryRejection},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware,
    routing::{delete, get, patch, post},
};
use domain::principal::Scope;
use jiff::Timestamp;

use crate::{Exposition, app::Gateway, auth::scoped, operation, problem::Failed};

pub(crate) fn router(gateway: &Gateway) -> Router {
    let with = |scope, route| scoped(gateway, scope, route);
    Router::new()
        .route(
            "/v1/tenants",
            with(Scope::TenantsManage, post(tenants::create)).merge(with(Scope::TenantsManage, get(tenants::list))),
        )
        .route(
            "/v1/tenants/{id}",
            with(Scope::TenantsManage, get(tenants::read)).merge(with(Scope::TenantsManage, patch(tenants::change))),
        )
        .route("/v1/events", with(Scope::AuditRead, get(events::list)))
        .route("/v1/keys", with(Scope::KeysManage, post(keys::create)).merge(with(Scope::KeysManage, get(keys::list))))
        .route("/v1/keys/{id}", with(Scope::KeysManage, delete(keys::revoke)))
        .route("/v1/series", with(Scope::SeriesWrite, post(series::create)).merge(with(Scope::SeriesRead, get(series::list))))
        .route(
            "/v1/series/{series}",
            with(Scope::SeriesRead, get(series::read)).merge(with(Scope::SeriesWrite, patch(change::change))),
        )
        .route("/v1/series/{series}/preview", with(Scope::SeriesRead, post(preview::preview)))
        .route("/v1/numbers", with(Scope::NumbersRead, get(find::find)))
        .route(
            "/v1/series/{series}/numbers",
            with(Scope::NumbersIssue, post(issue::issue)).merge(with(Scope::NumbersRead, get(list::list))),
        )
        .route("/v1/series/{series}/reservations", with(Scope::NumbersIssue, post(issue::reserve)))
        .route("/v1/series/{series}/numbers/{number}/confirm", with(Scope::NumbersIssue, post(step::confirm)))
        .route("/v1/series/{series}/numbers/{number}/fail", with(Scope::NumbersIssue, post(step::fail)))
        .route("/v1/series/{series}/numbers/{number}/void", with(Scope::NumbersVoid, post(step::void)))
        .route("/v1/series/{series}/numbers/{number}/release", with(Scope::NumbersIssue, post(step::release)))
        .route(
            "/v1/series/{series}/numbers/{number}",
            with(Scope::NumbersRead, get(number::explain)).merge(with(Scope::NumbersVoid, patch(amend::amend))),
        )
        .route("/v1/series/{series}/periods", with(Scope::SeriesRead, get(periods::list)))
        .route("/v1/series/{series}/periods/{period}/close", with(Scope::SeriesWrite, post(periods::close)))
        .route("/v1/series/{series}/periods/{period}/next", with(Scope::SeriesWrite, post(raise::raise)))
        .route("/v1/series/{series}/audit", with(Scope::NumbersRead, get(audit::audit)))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .merge(gateway.config.metrics.clone().map_or_else(Router::new, health::metrics))
        .fallback(async || Failed::not_found("such path"))
        .layer(middleware::from_fn_with_state(gateway.clone(), operation::run))
        .with_state(gateway.clone())
}

/// Metrics and a sign of life, for a process that has no gateway.
pub(crate) fn metrics_alone(metrics: Exposition) -> Router {
    health::metrics(metrics).route("/healthz", get(health::alive))
}

/// A query that was read, or which part of it can't be right.
fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Failed> {
    match query {
        Ok(Query(query)) => Ok(query),
        Err(rejection) => {
            let said = rejection.body_text();
            let said = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(&said);
            // A member that does not fit comes with its name before it.
            let (member, what) = said.split_once(": ").unwrap_or(("", said));
            let pointer = if member.is_empty() { String::new() } else { format!("/{member}") };
            Err(Failed::field(pointer, format!("in the query: {what}")))
        }
    }
}

/// An instant in answers: RFC 3339, UTC, six decimals.
fn instant(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// A header that says where the thing made is.
fn location(path: &str) -> HeaderMap {
    let place = HeaderValue::from_str(path).ok();
    place.map(|place| (header::LOCATION, place)).into_iter().collect()
}

/// Marks an answer that an earlier call got already.
fn mark_replayed(headers: &mut HeaderMap) {
    headers.insert(HeaderName::from_static("idempotent-replayed"), HeaderValue::from_static("true"));
}
