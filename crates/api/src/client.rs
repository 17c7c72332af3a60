//! A typed client: one method per operation, problems as errors.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Audit, AuditLine, CreateSeries, CreateTenant, Explained, Issue, ListedSeries, Number, Numbers, Page, PatchSeries, Period,
    Preview, Previewed, Problem, Progress, Raise, Reserve, Series, Sightings, Step, Tenant, escape,
};

/// How long an audit or an export may take.
const LONG: Duration = Duration::from_hours(2);

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
            // An address that is none never works.
            Self::Transport { source, .. } => !source.is_builder(),
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

    /// The series of the tenant, all of them.
    pub async fn all_series(&self) -> Result<Vec<ListedSeries>, Error> {
        self.all("/v1/series").await
    }

    /// Changes a series that was read in this version; `merge` changes what is apart from what others changed since.
    pub async fn change_series(&self, series: &str, version: i64, merge: bool, body: &PatchSeries) -> Result<Series, Error> {
        let path = format!("/v1/series/{}{}", escape(series), if merge { "?merge=true" } else { "" });
        let request = self.http.patch(format!("{}{path}", self.base)).header("If-Match", format!("\"{version}\"")).json(body);
        Ok(self.send(request).await?.body)
    }

    /// What would come next in a series, as it is or with changes.
    pub async fn preview(&self, series: &str, body: &Preview) -> Result<Previewed, Error> {
        let path = format!("/v1/series/{}/preview", escape(series));
        Ok(self.send(self.http.post(format!("{}{path}", self.base)).json(body)).await?.body)
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

    /// Takes a step in the life of a number: `verb` is confirm, fail, void or release.
    pub async fn step(&self, series: &str, number: &str, verb: &str, body: &Step) -> Result<Number, Error> {
        // A dot would be understood as a place in the path, so the text goes into the query.
        let path = format!("/v1/series/{}/numbers/-/{verb}?number={}", escape(series), escape(number));
        Ok(self.send(self.http.post(format!("{}{path}", self.base)).json(body)).await?.body)
    }

    /// What every series says of a text.
    pub async fn find(&self, text: &str) -> Result<Sightings, Error> {
        self.get(&format!("/v1/numbers?text={}", escape(text))).await
    }

    /// The periods of a series, all of them.
    pub async fn periods(&self, series: &str) -> Result<Vec<Period>, Error> {
        self.all(&format!("/v1/series/{}/periods", escape(series))).await
    }

    /// The next value of a period goes up, with the reason.
    pub async fn raise_next(&self, series: &str, period: &str, body: &Raise) -> Result<Period, Error> {
        let path = format!("/v1/series/{}/periods/{}/next", escape(series), escape(period));
        Ok(self.send(self.http.post(format!("{}{path}", self.base)).json(body)).await?.body)
    }

    /// Closes a period for good.
    pub async fn close_period(&self, series: &str, period: &str) -> Result<Period, Error> {
        let path = format!("/v1/series/{}/periods/{}/close", escape(series), escape(period));
        Ok(self.send(self.http.post(format!("{}{path}", self.base))).await?.body)
    }

    /// The numbers of a series as they come, piece by piece: `query` as in the list's, with its `format`.
    pub async fn export<E: From<Error>>(
        &self,
        series: &str,
        query: &[(&str, &str)],
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let query: Vec<_> = query.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
        let path = format!("/v1/series/{}/numbers?{}", escape(series), query.join("&"));
        let mut answer = self.stream(&path).await?;
        while let Some(piece) = answer.chunk().await.map_err(|source| self.lost(source))? {
            take(&piece)?;
        }
        Ok(())
    }

    /// Audits a series and hears how far it is.
    pub async fn follow_audit(
        &self,
        series: &str,
        period: Option<&str>,
        mut hear: impl FnMut(&Progress),
    ) -> Result<Audit, Error> {
        let of = period.map(|period| format!("&period={}", escape(period))).unwrap_or_default();
        let mut answer = self.stream(&format!("/v1/series/{}/audit?format=jsonl{of}", escape(series))).await?;
        let foreign = || Error::Foreign { base: self.base.clone(), status: 200 };
        let mut line = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|source| self.lost(source))? {
            for byte in piece {
                if byte != b'\n' {
                    line.push(byte);
                    continue;
                }
                match serde_json::from_slice(&line).map_err(|_| foreign())? {
                    AuditLine::Progress(progress) => hear(&progress),
                    AuditLine::Audit(audit) => return Ok(*audit),
                }
                line.clear();
            }
        }
        Err(foreign())
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

    /// A list to its end.
    async fn all<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, Error> {
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let from = cursor.map(|cursor| format!("&cursor={}", escape(&cursor))).unwrap_or_default();
            let page: Page<T> = self.get(&format!("{path}?limit=1000{from}")).await?;
            items.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(items);
            }
        }
    }

    fn lost(&self, source: reqwest::Error) -> Error {
        Error::Transport { base: self.base.clone(), source }
    }

    /// An answer that comes in pieces.
    async fn stream(&self, path: &str) -> Result<reqwest::Response, Error> {
        let request = self.http.get(format!("{}{path}", self.base)).timeout(LONG).bearer_auth(&self.key);
        let answer = request.send().await.map_err(|source| self.lost(source))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status().as_u16();
        let body = answer.bytes().await.map_err(|source| self.lost(source))?;
        let foreign = |_| Error::Foreign { base: self.base.clone(), status };
        Err(Error::Problem(Box::new(serde_json::from_slice(&body).map_err(foreign)?)))
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
