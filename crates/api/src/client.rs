//! A typed client: one method per operation, problems as errors.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use crate::{Audit, CreateSeries, CreateTenant, Explained, Issue, Number, Numbers, Problem, Reserve, Series, Tenant, escape};

/// Speaks to a gateway with one API key.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
}

/// An answer and what its head said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    /// The body.
    pub body: T,
    /// 201: made by this key; 200: it was there already.
    pub status: u16,
    /// Whether an earlier call with this key got it.
    pub replayed: bool,
}

/// Why there is no answer to work with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gateway said no.
    #[error("{}", .0.detail)]
    Problem(Box<Problem>),
    /// No answer, or half of one: it may have happened. Repeat with the same key.
    #[error("no answer from {base}")]
    Transport {
        /// The gateway's address.
        base: String,
        /// What went wrong.
        source: reqwest::Error,
    },
    /// An answer that is none of this program's.
    #[error("the answer (status {status}) is not Seriatim's; is {base} the right address?")]
    Foreign {
        /// The address.
        base: String,
        /// The status.
        status: u16,
    },
}

impl Error {
    /// Whether repeating the same call, with the same key, may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Problem(problem) => matches!(problem.status, 429 | 503) || problem.slug() == "idempotency-in-progress",
            Self::Transport { .. } => true,
            Self::Foreign { status, .. } => matches!(status, 502..=504),
        }
    }
}

impl Client {
    /// A client for the gateway at `base`, with an API key.
    pub fn new(base: &str, key: &str) -> Result<Self, Error> {
        let base = base.trim_end_matches('/').to_owned();
        let http = reqwest::Client::builder().connect_timeout(Duration::from_secs(5)).timeout(Duration::from_secs(30));
        match http.tcp_nodelay(true).build() {
            Ok(http) => Ok(Self { http, base, key: key.to_owned() }),
            Err(source) => Err(Error::Transport { base, source }),
        }
    }

    /// Creates a tenant (operator).
    pub async fn create_tenant(&self, key: &str, body: &CreateTenant) -> Result<Tenant, Error> {
        Ok(self.post("/v1/tenants", key, body).await?.body)
    }

    /// Creates a series.
    pub async fn create_series(&self, key: &str, body: &CreateSeries) -> Result<Series, Error> {
        Ok(self.post("/v1/series", key, body).await?.body)
    }

    /// Reads a series.
    pub async fn series(&self, series: &str) -> Result<Series, Error> {
        self.get(&format!("/v1/series/{}", escape(series))).await
    }

    /// Issues one number.
    pub async fn issue(&self, series: &str, key: &str, body: &Issue) -> Result<Answered<Number>, Error> {
        self.post(&format!("/v1/series/{}/numbers", escape(series)), key, body).await
    }

    /// Issues several: `body` has `count` or `items`.
    pub async fn issue_many(&self, series: &str, key: &str, body: &Issue) -> Result<Answered<Numbers>, Error> {
        self.post(&format!("/v1/series/{}/numbers", escape(series)), key, body).await
    }

    /// Reserves a number for a document.
    pub async fn reserve(&self, series: &str, key: &str, body: &Reserve) -> Result<Answered<Number>, Error> {
        self.post(&format!("/v1/series/{}/reservations", escape(series)), key, body).await
    }

    /// Explains a text of a series.
    pub async fn number(&self, series: &str, number: &str) -> Result<Explained, Error> {
        self.get(&format!("/v1/series/{}/numbers/{}", escape(series), escape(number))).await
    }

    /// Audits a series over all its periods, or one of them.
    pub async fn audit(&self, series: &str, period: Option<&str>) -> Result<Audit, Error> {
        let query = period.map(|period| format!("?period={}", escape(period))).unwrap_or_default();
        self.get(&format!("/v1/series/{}/audit{query}", escape(series))).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, key: &str, body: &impl Serialize) -> Result<Answered<T>, Error> {
        let request = self.http.post(format!("{}{path}", self.base)).header("Idempotency-Key", key).json(body);
        self.send(request).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        Ok(self.send(self.http.get(format!("{}{path}", self.base))).await?.body)
    }

    async fn send<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> Result<Answered<T>, Error> {
        let transport = |source| Error::Transport { base: self.base.clone(), source };
        let answer = request.bearer_auth(&self.key).send().await.map_err(transport)?;
        let status = answer.status();
        let replayed = answer.headers().contains_key("idempotent-replayed");
        let body = answer.bytes().await.map_err(transport)?;
        let foreign = |_| Error::Foreign { base: self.base.clone(), status: status.as_u16() };
        if status.is_success() {
            return Ok(Answered { body: serde_json::from_slice(&body).map_err(foreign)?, status: status.as_u16(), replayed });
        }
        let problem = serde_json::from_slice(&body).map_err(foreign)?;
        Err(Error::Problem(Box::new(problem)))
    }
}
