//! API keys, for a tenant's administrators.

use api::{CreateKey, Page, Slug};
use axum::{
    Extension,
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
};
use directory::{KeyUse, NewKey};
use domain::{
    id::Label,
    principal::{Principal, Scope},
    secret::{ApiKey, ENTROPY, Mode},
    series::FieldError,
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    app::Gateway,
    auth::Scopes,
    body::{Json, Path},
    idempotency::Keyed,
    operation::Call,
    paging::Paging,
    problem::Failed,
    system::uuid,
};

/// Draws a new key.
pub(crate) fn mint(gateway: &Gateway, mode: Mode) -> ApiKey {
    let mut bytes = [0; ENTROPY];
    loop {
        gateway.entropy().fill(&mut bytes);
        if let Some(key) = ApiKey::from_entropy(mode, &bytes) {
            return key;
        }
    }
}

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(mode): Extension<Mode>,
    Extension(held): Extension<Scopes>,
    Extension(call): Extension<Call>,
    key: Keyed,
    Json(body): Json<CreateKey>,
) -> Result<impl IntoResponse, Failed> {
    let new = check(&body, call.at)?;
    if let Some(beyond) = new.scopes.iter().find(|scope| !held.0.contains(scope)) {
        let detail = format!("a key can't give what it does not have: this one lacks {}", beyond.word());
        return Err(Failed::new(Slug::ScopeMissing, detail));
    }
    let fingerprint = key.fingerprint("create_key", &body)?;
    let _flight = gateway.flights.board(format!("{}/{}", principal.tenant, key.key)).await?;
    let secret = mint(&gateway, mode);
    let new = NewKey { id: uuid(call.at, gateway.entropy()), secret_hash: secret.hash(), ..new };
    let by = KeyUse { key: &key.key, fingerprint: &fingerprint, operation_id: &call.operation_id };
    let made = gateway.directory.create_key(&principal, &new, call.at, by).await.map_err(Failed::directory)?;
    let mut made_key = words(made.made);
    // What became of it since is not part of the first answer.
    made_key.revoked_at = None;
    let mut headers = super::location(&format!("/v1/keys/{}", made_key.id));
    if made.replayed {
        super::mark_replayed(&mut headers);
    } else {
        made_key.secret = Some(secret.reveal().to_owned());
    }
    Ok((StatusCode::CREATED, headers, axum::Json(made_key)))
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    paging: Result<Query<Paging>, axum::extract::rejection::QueryRejection>,
) -> Result<(HeaderMap, axum::Json<Page<api::Key>>), Failed> {
    let paging = super::query(paging)?;
    let after = paging.after("keys")?.and_then(|id| Uuid::parse_str(&id).ok());
    let keys = gateway.directory.keys(&principal, after, paging.limit()? + 1).await.map_err(Failed::directory)?;
    let keys = keys.into_iter().map(words).collect();
    Ok((HeaderMap::new(), axum::Json(paging.page("keys", keys, |key: &api::Key| key.id.clone())?)))
}

pub(crate) async fn revoke(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    Path(id): Path<String>,
) -> Result<StatusCode, Failed> {
    let missing = || Failed::not_found("such key");
    let id = Uuid::parse_str(&id).map_err(|_| missing())?;
    let there = gateway.directory.revoke_key(&principal, id, call.at, &call.operation_id).await.map_err(Failed::directory)?;
    // Here at once; elsewhere when the directory is asked again.
    gateway.forget_key(id);
    there.then_some(StatusCode::NO_CONTENT).ok_or_else(missing)
}

fn check(body: &CreateKey, at: Timestamp) -> Result<NewKey, Failed> {
    let mut errors = Vec::new();
    let name = Label::parse(&body.name).map_err(|error| errors.push(FieldError::new("/name", error.to_string()))).ok();
    let mut scopes = Vec::new();
    for (place, word) in body.scopes.iter().enumerate() {
        match Scope::from_word(word).filter(|scope| Scope::TENANT.contains(scope)) {
            Some(scope) if scopes.contains(&scope) => errors.push(FieldError::new(format!("/scopes/{place}"), "comes twice")),
            Some(scope) => scopes.push(scope),
            None => {
                let known = Scope::TENANT.map(Scope::word).join(", ");
                errors.push(FieldError::new(format!("/scopes/{place}"), format!("must be one of {known}")));
            }
        }
    }
    if body.scopes.is_empty() {
        errors.push(FieldError::new("/scopes", "must name at least one scope"));
    }
    let expires_at = body.expires_at.as_ref().and_then(|text| match text.parse::<Timestamp>() {
        Ok(end) if end > at => Some(end),
        _ => {
            errors.push(FieldError::new(
                "/expires_at",
                "must be an instant in the future and before 9999-12-30, as RFC 3339; leave it out for a key without an end",
            ));
            None
        }
    });
    match name {
        Some(name) if errors.is_empty() => Ok(NewKey { id: Uuid::nil(), name, secret_hash: [0; 32], scopes, expires_at }),
        _ => Err(Failed::fields(errors)),
    }
}

fn words(key: directory::Key) -> api::Key {
    api::Key {
        id: key.id.to_string(),
        name: key.name,
        scopes: key.scopes,
        created_at: super::instant(key.created_at),
        expires_at: key.expires_at.map(super::instant),
        revoked_at: key.revoked_at.map(super::instant),
        secret: None,
    }
}
