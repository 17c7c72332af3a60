//! Paths and bodies: read whole, strictly, with a limit.

use std::time::Duration;

use api::{Body, Object, Slug};
use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::{header, request::Parts},
};
use domain::series::FieldError;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;

use crate::{json, problem::Failed};

/// The largest body, in bytes: a thousand items with some metadata each.
const LIMIT: usize = 2 * 1024 * 1024;

/// How much of a body that is too large is listened to, in bytes.
const PATIENT: usize = 16 * 1024 * 1024;
/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(8);

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
        let bytes = tokio::time::timeout(ARRIVAL, whole(request)).await.unwrap_or_else(|_| {
            let detail = format!("the body was not complete within {} s; nothing was used", ARRIVAL.as_secs());
            Err(Failed::new(Slug::MalformedJson, detail))
        })?;
        let malformed = |error| Failed::new(Slug::MalformedJson, format!("the body is not strict JSON: {error}"));
        let value = json::read(&bytes).map_err(malformed)?;
        let body: Result<Object<T>, _> = serde_path_to_error::deserialize(&value);
        body.map(|body| Self(body.0)).map_err(|error| Failed::fields(vec![misfit(&error)]))
    }
}

/// The same, for a body that may be left out: then everything in it is as if left out.
pub(crate) struct Optional<T>(pub(crate) T);

impl<T: Body + Default, S: Send + Sync> FromRequest<S> for Optional<T> {
    type Rejection = Failed;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failed> {
        let headers = request.headers();
        let empty = headers.get(header::CONTENT_LENGTH).is_none_or(|length| length == "0");
        if empty && !headers.contains_key(header::TRANSFER_ENCODING) {
            return Ok(Self(T::default()));
        }
        Json::from_request(request, state).await.map(|body| Self(body.0))
    }
}

/// The whole body, if it is not larger than allowed.
async fn whole(request: Request) -> Result<Vec<u8>, Failed> {
    let too_large = || Failed::new(Slug::TooLarge, format!("a body has at most {LIMIT} bytes; send several requests"));
    let headers = request.headers();
    // Said beforehand, it is refused beforehand: a client that waits for 100 Continue need not send it.
    let said = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let (beyond, waits) = (said.is_some_and(|length| length > LIMIT), headers.contains_key(header::EXPECT));
    if beyond && waits {
        return Err(too_large());
    }
    let mut body = request.into_body();
    let (mut bytes, mut discarded) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Failed::new(Slug::MalformedJson, "the body ended before it was complete"))?;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        if !beyond && discarded == 0 && bytes.len() + data.len() <= LIMIT {
            bytes.extend_from_slice(data);
            continue;
        }
        // Whoever is still sending when the connection closes may never read the answer, so we listen on for a while.
        discarded += data.len();
        if discarded > PATIENT {
            break;
        }
    }
    if beyond || discarded > 0 { Err(too_large()) } else { Ok(bytes) }
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
