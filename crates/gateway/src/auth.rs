//! Who calls, and whether the key carries the scope that the route declares.

use std::time::Duration;

use api::Slug;
use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::{self, Next},
    response::Response,
    routing::MethodRouter,
};
use directory::{Holder, KeyHolder};
use domain::{
    principal::{Operator, Principal, Scope, Who},
    secret::ApiKey,
};
use store::{Error, Stop};
use tokio::time::Instant;
use uuid::Uuid;

use crate::{app::Gateway, operation::Call, problem::Failed};

/// How long the directory's word on a key holds before it is asked again.
const FRESH: Duration = Duration::from_secs(1);
/// How long known keys go on being served while the directory is away.
const STALE: Duration = Duration::from_mins(5);

/// A route for callers whose key carries this scope. The scope decides what the handler finds: an operator's
/// scope an [`Operator`], a tenant's a [`Principal`].
pub(crate) fn scoped(gateway: &Gateway, scope: Scope, route: MethodRouter<Gateway>) -> MethodRouter<Gateway> {
    route.layer(middleware::from_fn_with_state((gateway.clone(), scope), authenticate))
}

async fn authenticate(
    State((gateway, scope)): State<(Gateway, Scope)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Failed> {
    let key = bearer(request.headers())?;
    let holder = look_up(&gateway, &key).await?;
    let at = request.extensions().get::<Call>().map_or_else(|| gateway.instant(), |call| call.at);
    if holder.revoked || holder.expires_at.is_some_and(|end| end <= at) {
        return Err(Failed::unauthenticated("the API key is revoked or has expired; use a current one"));
    }
    if let Holder::Tenant { suspended: true, .. } = holder.holder {
        return Err(Failed::new(Slug::TenantSuspended, "the tenant is suspended; its operator can lift that"));
    }
    if !holder.scopes.contains(&scope) {
        let detail = format!("this call needs a key with the scope {}", scope.word());
        return Err(Failed::new(Slug::ScopeMissing, detail));
    }
    match holder.holder {
        Holder::Operator => {
            request.extensions_mut().insert(Operator { key: holder.key });
        }
        Holder::Tenant { tenant, mode, .. } => {
            tracing::Span::current().record("tenant", tracing::field::display(tenant));
            request.extensions_mut().insert(Principal { tenant, who: Who::Key(holder.key) });
            request.extensions_mut().insert(mode);
            request.extensions_mut().insert(Scopes(holder.scopes));
        }
    }
    Ok(next.run(request).await)
}

/// The scopes of the key that calls.
#[derive(Clone, Debug)]
pub(crate) struct Scopes(pub(crate) Vec<Scope>);

fn bearer(headers: &HeaderMap) -> Result<ApiKey, Failed> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else {
        return Err(Failed::unauthenticated("send one Authorization header: Bearer and the API key"));
    };
    let token = only.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let token = token.ok_or_else(|| Failed::unauthenticated("send the header as: Authorization: Bearer <API key>"))?;
    ApiKey::parse(token)
        .ok_or_else(|| Failed::unauthenticated("this is no API key: its form or its checksum is wrong; copy it again"))
}

/// What the directory said of a key.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    holder: KeyHolder,
    /// When it said so.
    vouched: Instant,
    /// When it was last asked, with or without an answer.
    asked: Instant,
}

impl Gateway {
    /// Forgets what is remembered of a key.
    pub(crate) fn forget_key(&self, id: Uuid) {
        self.keys.retain(|_, known| known.holder.key != id);
    }
}

impl Known {
    fn is_fresh(&self) -> bool {
        self.asked.elapsed() < FRESH && self.vouched.elapsed() < STALE
    }
}

/// The holder of a key, as the directory said within the last second, or within the last minutes while it
/// can't be asked. Of many requests with one key, one asks and the others wait for it.
async fn look_up(gateway: &Gateway, key: &ApiKey) -> Result<KeyHolder, Failed> {
    let hash = key.hash();
    let fresh = || gateway.keys.get(&hash).filter(Known::is_fresh).map(|known| known.holder);
    if let Some(holder) = fresh() {
        return Ok(holder);
    }
    let asking = gateway.asking.board(hash).await;
    let _asking = asking.map_err(|_| Failed::new(Slug::DirectoryUnavailable, "the directory does not answer; try again"))?;
    if let Some(holder) = fresh() {
        return Ok(holder);
    }
    let asked = Instant::now();
    match gateway.directory.authenticate(&hash).await {
        Ok(Some(holder)) => {
            gateway.keys.insert(hash, Known { holder: holder.clone(), vouched: asked, asked });
            Ok(holder)
        }
        Ok(None) => {
            gateway.keys.remove(&hash);
            Err(Failed::unauthenticated("nobody holds this API key"))
        }
        Err(Stop::Failure(away @ (Error::Busy(_) | Error::Unavailable(_)))) => {
            let known = gateway.keys.get(&hash).filter(|known| known.vouched.elapsed() < STALE);
            let known = known.ok_or_else(|| Failed::directory(away))?;
            gateway.keys.insert(hash, Known { asked: Instant::now(), ..known.clone() });
            Ok(known.holder)
        }
        Err(stop) => Err(Failed::directory(stop)),
    }
}
