//! Tenants, for operators.

use api::{CreateTenant, Page};
use axum::{
    Extension,
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
};
use directory::{KeyUse, NewKey, NewTenant};
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
    let by = KeyUse { key: &key.key, fingerprint: &fingerprint };
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
    Ok((HeaderMap::new(), axum::Json(words(tenant.ok_or_else(missing)?))))
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
        created_at: super::instant(tenant.created_at),
        admin_key: None,
    }
}
