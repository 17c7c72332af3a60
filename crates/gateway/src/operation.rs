//! The outermost layer: names the call, owns its task, and turns every error into a problem document.
//!
//! A request runs in a task of its own. A client that hangs up, or a wait that took too long, ends only the
//! waiting: dropping a database future half way is what leaves connections inside open transactions.

use std::sync::Arc;

use api::Slug;
use axum::{
    extract::{Request, State},
    http::{HeaderName, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use domain::id::OperationId;
use jiff::Timestamp;
use tracing::Instrument;

use crate::{app::Gateway, problem::Failed, system::uuid};

const OPERATION_ID: HeaderName = HeaderName::from_static("operation-id");

/// What is the same for everything that one request does.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Names it in logs, traces and history.
    pub(crate) operation_id: OperationId,
    /// Its one instant.
    pub(crate) at: Timestamp,
    /// The caller's W3C trace id.
    pub(crate) trace_id: Option<String>,
}

pub(crate) async fn run(State(gateway): State<Gateway>, mut request: Request, next: Next) -> Response {
    let at = gateway.instant();
    let named = request.headers().get(OPERATION_ID).and_then(|value| OperationId::parse(value.to_str().ok()?).ok());
    let made = || OperationId::parse(&uuid(at, gateway.entropy()).to_string());
    let Some(operation_id) = named.or_else(|| made().ok()) else { return Failed::internal().render("/", "none") };
    let trace_id = request.headers().get("traceparent").and_then(|value| trace_id(value.to_str().ok()?));
    let path: Arc<str> = request.uri().path().into();
    let span = tracing::info_span!("request", method = %request.method(), path = %path, operation_id = %operation_id,
        tenant = tracing::field::Empty, status = tracing::field::Empty);
    request.extensions_mut().insert(Call { operation_id: operation_id.clone(), at, trace_id });

    let work = gateway.tasks.spawn(next.run(request).instrument(span.clone()));
    let answered = tokio::time::timeout(gateway.config.patience, work).await;
    let mut response = match answered {
        Ok(Ok(response)) => response,
        Ok(Err(panicked)) => {
            tracing::error!(parent: &span, error = %panicked, "a request's task ended without an answer");
            Failed::internal().into_response()
        }
        Err(_) => {
            let detail = "no answer in time: it may still happen; repeat the request with the same key to find out";
            Failed::new(Slug::Busy, detail).into_response()
        }
    };
    if let Some(failed) = response.extensions_mut().remove::<Failed>() {
        response = failed.render(&path, operation_id.as_str());
    } else if !is_ours(&response) {
        response = framework_error(&response, &path, operation_id.as_str());
    }
    span.record("status", response.status().as_u16());
    tracing::debug!(parent: &span, "answered");
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(operation_id.as_str()) {
        headers.insert(OPERATION_ID, value);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An answer that is no error, or says in JSON what is wrong; the framework's own errors are text or empty.
fn is_ours(response: &Response) -> bool {
    let error = response.status().is_client_error() || response.status().is_server_error();
    !error || response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json")
}

/// An error of the framework's own, said as a problem; what it knows beyond that (Allow) is kept.
fn framework_error(response: &Response, path: &str, operation_id: &str) -> Response {
    let mut problem = Failed::of_status(response.status()).render(path, operation_id);
    if let Some(allow) = response.headers().get(header::ALLOW) {
        problem.headers_mut().insert(header::ALLOW, allow.clone());
    }
    problem
}

/// The trace id of a `traceparent` (W3C Trace Context §3.2): `00-<32 hex>-<16 hex>-<2 hex>`, not all zeros.
fn trace_id(header: &str) -> Option<String> {
    let mut parts = header.split('-');
    let (version, id, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex = |text: &str, length| text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let formed = hex(version, 2) && version != "ff" && hex(id, 32) && hex(span, 16) && hex(flags, 2);
    (formed && id.bytes().any(|b| b != b'0')).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_formed_traceparent_has_a_trace() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(trace_id(&format!("00-{id}-b7ad6b7169203331-01")).as_deref(), Some(id));
        let zeros = "0".repeat(32);
        for bad in [
            "",
            "00",
            id,
            &format!("ff-{id}-b7ad6b7169203331-01"),
            &format!("00-{zeros}-b7ad6b7169203331-01"),
            &format!("00-{}-b7ad6b7169203331-01", id.to_uppercase()),
        ] {
            assert_eq!(trace_id(bad), None, "{bad}");
        }
    }
}
