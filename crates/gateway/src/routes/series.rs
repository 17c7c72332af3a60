//! Series: create, read, list.

use std::sync::Arc;

use api::{CreateSeries, FiscalYear, ListedSeries, Page};
use axum::{
    Extension,
    extract::{Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::IntoResponse,
};
use directory::KeyUse;
use domain::{
    id::SeriesName,
    principal::Principal,
    series::{Draft, FieldError, Overdue, Series, Settings, Status},
};

use crate::{
    app::Gateway,
    body::{Json, Path},
    idempotency::Keyed,
    operation::Call,
    paging::Paging,
    problem::Failed,
};

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    key: Keyed,
    Json(body): Json<CreateSeries>,
) -> Result<impl IntoResponse, Failed> {
    let (name, settings) = check(&body)?;
    let fingerprint = key.fingerprint("create_series", &body)?;
    let _flight = gateway.flights.board(format!("{}/{}", principal.tenant, key.key)).await?;
    let new = directory::NewSeries { name, settings, at: call.at };
    let by = KeyUse { key: &key.key, fingerprint: &fingerprint, operation_id: &call.operation_id };
    let made = gateway.directory.create_series(&principal, &new, by).await.map_err(Failed::directory)?;
    let placement = Arc::new(made.made);
    gateway.settle(&principal, &placement).await?;
    // As it was made: what became of it since is not part of the first answer.
    let settings = placement.settings.clone();
    let series = Series { name: placement.name.clone(), settings, status: Status::Active, version: 1 };
    let mut headers = super::location(&format!("/v1/series/{}", series.name));
    headers.extend(etag(&series));
    if made.replayed {
        super::mark_replayed(&mut headers);
    }
    Ok((StatusCode::CREATED, headers, axum::Json(words(&series))))
}

pub(crate) async fn read(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
) -> Result<impl IntoResponse, Failed> {
    let name = SeriesName::parse(&name)?;
    let series = present(&gateway, &principal, &name).await?;
    Ok((etag(&series), axum::Json(words(&series))))
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    paging: Result<Query<Paging>, axum::extract::rejection::QueryRejection>,
) -> Result<axum::Json<Page<ListedSeries>>, Failed> {
    let paging = super::query(paging)?;
    let after = paging.after("series")?;
    let placed = gateway.directory.placements(&principal, after.as_deref(), paging.limit()? + 1).await;
    let names = placed.map_err(Failed::directory)?.into_iter().map(|placement| placement.name).collect();
    let page = paging.page("series", names, ToString::to_string)?;
    let mut items = Vec::with_capacity(page.items.len());
    for name in page.items {
        items.push(match present(&gateway, &principal, &name).await {
            Ok(series) => ListedSeries::Here(Box::new(words(&series))),
            Err(_) => ListedSeries::Away { series: name.to_string(), unavailable: true },
        });
    }
    Ok(axum::Json(Page { items, next_cursor: page.next_cursor }))
}

pub(crate) async fn present(gateway: &Gateway, principal: &Principal, name: &SeriesName) -> Result<Series, Failed> {
    let placement = gateway.placement(principal, name).await?;
    let series = gateway.ledger.series(&placement.shard, principal, name).await.map_err(Failed::shard)?;
    series.ok_or_else(|| Failed::not_found(format!("series {name}")))
}

pub(crate) fn etag(series: &Series) -> HeaderMap {
    let tag = HeaderValue::from_str(&format!("\"{}\"", series.version)).ok();
    tag.map(|tag| (header::ETAG, tag)).into_iter().collect()
}

fn check(body: &CreateSeries) -> Result<(SeriesName, Settings), Failed> {
    let mut errors = Vec::new();
    let name = SeriesName::parse(&body.series).map_err(|error| errors.push(FieldError::new("/series", error.to_string()))).ok();
    errors.extend(not_yet(body));
    let fiscal_year = body.fiscal_year.as_ref().map(|fiscal| (fiscal.starts.clone(), fiscal.label.clone()));
    let draft = Draft {
        issuer: body.issuer.clone(),
        pattern: body.pattern.clone(),
        reset: body.reset.clone(),
        fiscal_year,
        max_days_ahead: body.max_days_ahead,
        time_zone: body.time_zone.clone(),
        first: body.first,
        gapless: body.gapless,
        overflow: body.overflow.clone(),
        max_length: body.max_length,
        chronology: body.chronology.clone(),
        release: body.release.clone(),
        reservation_ttl_seconds: body.reservation_ttl_seconds,
        reservation_overdue: body.reservation_overdue.clone().unwrap_or_else(|| Overdue::Alarm.word().to_owned()),
    };
    match (name, draft.check()) {
        (Some(name), Ok(settings)) if errors.is_empty() => Ok((name, settings)),
        (_, checked) => {
            errors.extend(checked.err().unwrap_or_default());
            Err(Failed::fields(errors))
        }
    }
}

/// Settings that the contract has and this version does not act upon: better refused than ignored.
fn not_yet(body: &CreateSeries) -> impl Iterator<Item = FieldError> {
    let plain = CreateSeries::new("", "");
    let checks = [
        ("/parts", body.parts == plain.parts),
        ("/authorisations", body.authorisations == plain.authorisations),
        ("/rule_pack", body.rule_pack == plain.rule_pack),
        ("/integrator", body.integrator == plain.integrator),
    ];
    let wrong = checks.into_iter().filter(|(_, right)| !right);
    wrong.map(|(pointer, _)| FieldError::new(pointer, "only the default is available in this version; leave it out"))
}

pub(crate) fn words(series: &Series) -> api::Series {
    let settings = &series.settings;
    api::Series {
        settings: CreateSeries {
            issuer: settings.issuer.to_string(),
            reset: settings.reset.word().to_owned(),
            time_zone: settings.time_zone.clone(),
            first: settings.first,
            gapless: settings.gapless,
            overflow: settings.overflow.word().to_owned(),
            max_length: settings.max_length,
            chronology: settings.chronology.word().to_owned(),
            fiscal_year: settings
                .reset
                .fiscal()
                .map(|fiscal| FiscalYear { starts: fiscal.starts(), label: fiscal.label().word().to_owned() }),
            max_days_ahead: settings.max_days_ahead,
            release: settings.release.word().to_owned(),
            reservation_ttl_seconds: settings.reservation_ttl_seconds,
            reservation_overdue: (settings.reservation_ttl_seconds.is_some() || settings.reservation_overdue != Overdue::Alarm)
                .then(|| settings.reservation_overdue.word().to_owned()),
            ..CreateSeries::new(series.name.to_string(), settings.pattern.source())
        },
        status: series.status.word().to_owned(),
        version: series.version,
        warnings: settings.warnings(),
    }
}
