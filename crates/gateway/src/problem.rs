//! From anything that went wrong to a problem document.

use api::{Conflict, Slug};
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{id::NameError, refusal::Refusal, series::FieldError};
use store::{Error, Stop};

/// Why a request failed, before the path and the operation's name are added.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    slug: Slug,
    detail: String,
    errors: Vec<FieldError>,
    /// The state that is in the way.
    state: Option<&'static str>,
    conflicts: Vec<Conflict>,
    challenge: bool,
}

impl Failed {
    pub(crate) fn new(slug: Slug, detail: impl Into<String>) -> Self {
        Self { slug, detail: detail.into(), errors: Vec::new(), state: None, conflicts: Vec::new(), challenge: false }
    }

    pub(crate) fn slug(&self) -> Slug {
        self.slug
    }

    /// 412: with what you and others changed.
    pub(crate) fn conflict(detail: String, conflicts: Vec<Conflict>) -> Self {
        Self { conflicts, ..Self::new(Slug::VersionConflict, detail) }
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// 401: with a challenge (RFC 6750 §3).
    pub(crate) fn unauthenticated(detail: &str) -> Self {
        Self { challenge: true, ..Self::new(Slug::Unauthenticated, detail) }
    }

    pub(crate) fn not_found(what: impl std::fmt::Display) -> Self {
        Refusal::NotFound(what.to_string()).into()
    }

    /// 422 at one place of the body.
    pub(crate) fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::fields(vec![FieldError::new(pointer, detail)])
    }

    pub(crate) fn fields(errors: Vec<FieldError>) -> Self {
        Refusal::Invalid(errors).into()
    }

    /// A shard's no, or its failure.
    pub(crate) fn shard(stop: Stop) -> Self {
        Self::stopped(stop, Slug::ShardUnavailable, "the database of this series")
    }

    /// The directory's no, or its failure.
    pub(crate) fn directory(stop: impl Into<Stop>) -> Self {
        Self::stopped(stop.into(), Slug::DirectoryUnavailable, "the directory")
    }

    fn stopped(stop: Stop, away: Slug, what: &str) -> Self {
        let error = match stop {
            Stop::Refusal(refusal) => return refusal.into(),
            Stop::ClocksApart { apart_ms } => {
                tracing::error!(apart_ms, "the clocks of gateway and shard disagree");
                let detail = format!(
                    "this server's clock and that of {what} are {apart_ms} ms apart; nothing was used, repeat the request in a moment"
                );
                return Self::new(away, detail);
            }
            Stop::Failure(error) => error,
        };
        let chain = chain(&error);
        match error {
            Error::Busy(_) | Error::Conflict { .. } | Error::Moved => {
                tracing::warn!(error = %chain, "gave up after trying again");
                Self::new(
                    Slug::Busy,
                    format!(
                        "{what} is busy; nothing was used, repeat the request in a moment (with the same key, if it has one)"
                    ),
                )
            }
            Error::Unavailable(_) => {
                tracing::warn!(error = %chain, "{what} is away");
                Self::new(
                    away,
                    format!(
                        "{what} did not answer; nothing was used, repeat the request in a moment (with the same key, if it has one)"
                    ),
                )
            }
            Error::Unknown(_) => {
                tracing::warn!(error = %chain, "the outcome is unknown");
                Self::new(
                    away,
                    format!(
                        "{what} gave no answer in time: it happened or it did not; repeat the request with the same key to find out"
                    ),
                )
            }
            Error::Corrupt(_) | Error::Failed(_) => {
                tracing::error!(error = %chain, "a statement failed");
                Self::internal()
            }
        }
    }

    pub(crate) fn internal() -> Self {
        Self::new(
            Slug::Internal,
            "this is a fault of the server, and is in its log under the operation_id; repeating the request with the same key is safe",
        )
    }

    /// Takes a refused response of the framework's own and says the same as a problem.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::METHOD_NOT_ALLOWED => {
                Self::new(Slug::MethodNotAllowed, "this path has other methods; see the Allow header")
            }
            StatusCode::PAYLOAD_TOO_LARGE => Self::new(Slug::TooLarge, "the request is larger than allowed"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::new(Slug::MediaType, "send application/json"),
            StatusCode::NOT_FOUND => Self::not_found("such path"),
            status if status.is_client_error() => Self::new(Slug::Invalid, "the request could not be read"),
            _ => Self::internal(),
        }
    }

    /// The finished document.
    pub(crate) fn render(&self, instance: &str, operation_id: &str) -> Response {
        let slug = self.slug;
        let problem = api::Problem {
            kind: format!("/problems/{}", slug.word()),
            title: slug.title().to_owned(),
            status: slug.status(),
            detail: self.detail.clone(),
            instance: instance.to_owned(),
            operation_id: operation_id.to_owned(),
            state: self.state.map(str::to_owned),
            errors: self
                .errors
                .iter()
                .map(|e| api::FieldError { pointer: e.pointer.clone(), detail: e.detail.clone() })
                .collect(),
            conflicts: self.conflicts.clone(),
        };
        let status = StatusCode::from_u16(slug.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"seriatim\""));
        }
        if slug.status() == 503 || slug == Slug::IdempotencyInProgress {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// An error and its causes, once each.
fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !said.ends_with(&more) {
            said.push_str(": ");
            said.push_str(&more);
        }
        cause = next.source();
    }
    said
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        let slug = match &refusal {
            Refusal::Invalid(_) => Slug::Invalid,
            Refusal::NotFound(_) => Slug::NotFound,
            Refusal::SeriesExists(_) => Slug::SeriesExists,
            Refusal::PatternOverlaps { .. } => Slug::PatternOverlaps,
            Refusal::SeriesPaused => Slug::SeriesPaused,
            Refusal::SeriesClosed => Slug::SeriesClosed,
            Refusal::PeriodClosed(_) => Slug::PeriodClosed,
            Refusal::SeriesExhausted { .. } => Slug::SeriesExhausted,
            Refusal::RangeExhausted { .. } => Slug::RangeExhausted,
            Refusal::Chronology { .. } => Slug::Chronology,
            Refusal::DocumentConflict { .. } => Slug::DocumentConflict,
            Refusal::DocumentVoided { .. } => Slug::DocumentVoided,
            Refusal::WrongState { .. }
            | Refusal::NotReleasable { .. }
            | Refusal::OtherLife { .. }
            | Refusal::StillOpen { .. } => Slug::WrongState,
            Refusal::NextUsed { .. } => Slug::NextUsed,
            Refusal::NumberReleased(_) => Slug::NumberReleased,
            Refusal::PeriodHasOpen { .. } => Slug::PeriodHasOpen,
            Refusal::NumberExists(_) => Slug::NumberExists,
            Refusal::KeyReused => Slug::IdempotencyKeyReused,
            Refusal::KeyInProgress => Slug::IdempotencyInProgress,
        };
        let mut failed = Self::new(slug, refusal.to_string());
        if let Refusal::WrongState { state, .. }
        | Refusal::NotReleasable { state, .. }
        | Refusal::OtherLife { state, .. }
        | Refusal::StillOpen { state, .. } = &refusal
        {
            failed.state = Some(state.word());
        }
        if let Refusal::Invalid(errors) = refusal {
            failed.errors = errors;
        }
        failed
    }
}

/// A name in the path that can't be right names nothing.
impl From<NameError> for Failed {
    fn from(error: NameError) -> Self {
        Self::new(Slug::NotFound, format!("there is nothing of that name: it {error}"))
    }
}

/// The outermost layer finds this in the response's extensions and renders it there.
impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.slug.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
