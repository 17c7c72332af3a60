//! Tenants, for operators.

use api::{Conflict, CreateTenant, Page, PatchTenant};
use axum::{
    Extension,
    extract::{Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::IntoResponse,
};
use directory::{KeyUse, NewKey, NewTenant, TenantChange};
use domain::{
    id::{Label, TenantId},
    principal::{Operator, Scope},
    secret::Mode,
};
use uuid::Uuid;

use super::keys::mint;
use crate::{
    app::Gateway,
    body::{Json, Path},
    idempotency::Keyed,
    operation::Call,
    paging::Paging,
    problem::Failed,
    system::uuid,
    versions,
};

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    Extension(operator): Extension<Operator>,
    Extension(call): Extension<Call>,
    key: Keyed,
    Json(body): Json<CreateTenant>,
) -> Result<impl IntoResponse, Failed> {
    let name = Label::parse(&body.name).map_err(|error| Failed::field("/name", error.to_string()))?;
    let mode = Mode::from_word(&body.mode).ok_or_else(|| Failed::field("/mode", "must be live or test"))?;
    let fingerprint = key.fingerprint("create_tenant", &body)?;
    let _flight = gateway.flights.board(format!("operator/{}", key.key)).await?;
    let secret = mint(&gateway, mode);
    let admin_key = NewKey {
        id: uuid(call.at, gateway.entropy()),
        name: Label::parse("administrator").map_err(|_| Failed::internal())?,
        secret_hash: secret.hash(),
        scopes: Scope::TENANT.to_vec(),
        expires_at: None,
    };
    let new = NewTenant { id: TenantId(uuid(call.at, gateway.entropy())), name, mode, admin_key, at: call.at };
    let by = KeyUse { key: &key.key, fingerprint: &fingerprint, operation_id: &call.operation_id };
    let made = gateway.directory.create_tenant(&operator, &new, by).await.map_err(Failed::directory)?;
    let mut tenant = words(made.made);
    let mut headers = super::location(&format!("/v1/tenants/{}", tenant.id));
    if made.replayed {
        super::mark_replayed(&mut headers);
    } else {
        tenant.admin_key = Some(secret.reveal().to_owned());
    }
    Ok((StatusCode::CREATED, headers, axum::Json(tenant)))
}

pub(crate) async fn read(
    State(gateway): State<Gateway>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
) -> Result<(HeaderMap, axum::Json<api::Tenant>), Failed> {
    let missing = || Failed::not_found("such tenant");
    let id = Uuid::parse_str(&id).map_err(|_| missing())?;
    let tenant = gateway.directory.tenant(&operator, TenantId(id)).await.map_err(Failed::directory)?;
    let tenant = tenant.ok_or_else(missing)?;
    Ok((etag(&tenant), axum::Json(words(tenant))))
}

pub(crate) async fn change(
    State(gateway): State<Gateway>,
    Extension(operator): Extension<Operator>,
    Extension(call): Extension<Call>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(body): Json<PatchTenant>,
) -> Result<(HeaderMap, axum::Json<api::Tenant>), Failed> {
    let missing = || Failed::not_found("such tenant");
    let id = Uuid::parse_str(&id).map_err(|_| missing())?;
    let version = versions::if_match(&headers)?;
    if body == PatchTenant::default() {
        return Err(Failed::field("", "says nothing to change: give name or status"));
    }
    let name = body.name.as_deref().map(Label::parse).transpose();
    let name = name.map_err(|error| Failed::field("/name", error.to_string()))?;
    let status = body.status.as_deref().map(|status| match status {
        "active" | "suspended" => Ok(status),
        _ => Err(Failed::field("/status", "must be active or suspended")),
    });
    let change = TenantChange {
        id: TenantId(id),
        version,
        name,
        status: status.transpose()?,
        at: call.at,
        operation_id: &call.operation_id,
    };
    match gateway.directory.change_tenant(&operator, &change).await.map_err(Failed::directory)? {
        None => Err(missing()),
        Some(Ok(tenant)) => {
            let tag = etag(&tenant);
            Ok((tag, axum::Json(words(tenant))))
        }
        Some(Err(now)) => {
            let pairs = [("name", body.name, now.name), ("status", body.status, now.status)];
            let conflicts = pairs.into_iter().filter_map(|(field, yours, theirs)| {
                let base = serde_json::Value::Null;
                Some(Conflict { field: field.to_owned(), base, yours: yours?.into(), theirs: theirs.into() })
            });
            let detail = "the tenant was changed since you read it; make your change to what it is now";
            Err(Failed::conflict(detail.to_owned(), conflicts.collect()))
        }
    }
}

fn etag(tenant: &directory::Tenant) -> HeaderMap {
    let tag = HeaderValue::from_str(&format!("\"{}\"", tenant.version)).ok();
    tag.map(|tag| (header::ETAG, tag)).into_iter().collect()
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Extension(operator): Extension<Operator>,
    paging: Result<Query<Paging>, axum::extract::rejection::QueryRejection>,
) -> Result<axum::Json<Page<api::Tenant>>, Failed> {
    let paging = super::query(paging)?;
    let after = paging.after("tenants")?.and_then(|id| Uuid::parse_str(&id).ok()).map(TenantId);
    let tenants = gateway.directory.tenants(&operator, after, paging.limit()? + 1).await.map_err(Failed::directory)?;
    let tenants = tenants.into_iter().map(words).collect();
    Ok(axum::Json(paging.page("tenants", tenants, |tenant: &api::Tenant| tenant.id.clone())?))
}

fn words(tenant: directory::Tenant) -> api::Tenant {
    api::Tenant {
        id: tenant.id.to_string(),
        name: tenant.name,
        mode: tenant.mode.word().to_owned(),
        status: tenant.status,
        version: tenant.version,
        created_at: super::instant(tenant.created_at),
        admin_key: None,
    }
}
