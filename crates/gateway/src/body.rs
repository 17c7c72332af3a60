//! Paths and bodies: read whole, strictly, with a limit.

use api::{Body, Object, Slug};
use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::{header, request::Parts},
};
use domain::series::FieldError;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use serde::de::DeserializeOwned;

use crate::{json, problem::Failed};

/// The largest body, in bytes: a thousand items with some metadata each.
const LIMIT: usize = 2 * 1024 * 1024;

/// The parts of the path that a route names. One that is not text names nothing.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failed> {
        let named = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        named.map(|named| Self(named.0)).map_err(|_| Failed::not_found("such path"))
    }
}

/// A body that was read as `T`.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Body, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Failed;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failed> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err(Failed::new(Slug::MediaType, "send a JSON body with Content-Type: application/json"));
        }
        if request.headers().contains_key(header::CONTENT_ENCODING) {
            return Err(Failed::new(Slug::MediaType, "send the body as it is, without Content-Encoding"));
        }
        let too_large = || Failed::new(Slug::TooLarge, format!("a body has at most {LIMIT} bytes; send several requests"));
        // Said beforehand, it is refused beforehand: a client that waits for 100 Continue need not send it.
        let said = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if said.is_some_and(|length| length > LIMIT) {
            return Err(too_large());
        }
        let bytes = match Limited::new(request.into_body(), LIMIT).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
            Err(_) => return Err(Failed::new(Slug::MalformedJson, "the body ended before it was complete")),
        };
        let malformed = |error| Failed::new(Slug::MalformedJson, format!("the body is not strict JSON: {error}"));
        let value = json::read(&bytes).map_err(malformed)?;
        let body: Result<Object<T>, _> = serde_path_to_error::deserialize(&value);
        body.map(|body| Self(body.0)).map_err(|error| Failed::fields(vec![misfit(&error)]))
    }
}

/// What does not fit, with the place as a JSON pointer (RFC 6901).
fn misfit(error: &serde_path_to_error::Error<serde_json::Error>) -> FieldError {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in error.path() {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
            Segment::Enum { variant } => pointer.push_str(&format!("/{variant}")),
            Segment::Unknown => {}
        }
    }
    // The parser speaks of Rust's types.
    let said =
        error.inner().to_string().replace("expected i64", "expected an integer").replace("expected i32", "expected an integer");
    FieldError::new(pointer, said)
}
