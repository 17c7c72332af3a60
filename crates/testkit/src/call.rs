//! HTTP as a test speaks it: exactly what was asked for, nothing helpful added.

use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};

/// Speaks to one gateway with one key.
#[derive(Clone, Debug)]
pub struct Api {
    /// The client, for requests of a test's own making.
    pub http: reqwest::Client,
    /// The gateway's address.
    pub base: String,
    /// The API key.
    pub key: String,
}

/// An answer, whole.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The head.
    pub headers: HeaderMap,
    /// The body as it came.
    pub text: String,
    /// The body as JSON; null where it is none.
    pub body: Value,
}

impl Api {
    pub(crate) fn new(base: &str, key: &str) -> Self {
        Self { http: reqwest::Client::new(), base: base.to_owned(), key: key.to_owned() }
    }

    /// The same key at another gateway.
    #[must_use]
    pub fn at(&self, base: &str) -> Self {
        Self { base: base.to_owned(), http: reqwest::Client::new(), ..self.clone() }
    }

    /// The same gateway with another key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// Any call with a JSON body or none, and an idempotency key or none.
    pub async fn call(&self, method: Method, path: &str, key: Option<&str>, body: Option<&Value>) -> Reply {
        let mut request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        Reply::of(request).await
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Reply {
        self.call(Method::GET, path, None, None).await
    }

    /// POST.
    pub async fn post(&self, path: &str, key: &str, body: Value) -> Reply {
        self.call(Method::POST, path, Some(key), Some(&body)).await
    }

    /// Creates a series of this name with this pattern; whatever else is in `more`.
    pub async fn create_series(&self, name: &str, pattern: &str, more: Value) -> Reply {
        let mut body = json!({"series": name, "pattern": pattern});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        self.post("/v1/series", &format!("create-{name}"), body).await
    }

    /// Issues.
    pub async fn issue(&self, series: &str, key: &str, body: Value) -> Reply {
        self.post(&format!("/v1/series/{series}/numbers"), key, body).await
    }
}

impl Reply {
    /// Sends a request of the test's own making.
    pub async fn of(request: reqwest::RequestBuilder) -> Self {
        let answer = request.send().await.expect("an answer");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let text = answer.text().await.expect("a whole answer");
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self { status, headers, text, body }
    }

    /// Fails unless the status is this; hands itself on.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "mostly the check is all that is wanted")]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// Fails unless this is the problem with this status and slug, a whole problem document; hands itself on.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "mostly the check is all that is wanted")]
    pub fn problem(self, status: u16, slug: &str) -> Self {
        assert_eq!((self.status, self.body["type"].as_str()), (status, Some(&*format!("/problems/{slug}"))), "{}", self.text);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["status"], status);
        for member in ["title", "detail", "instance", "operation_id"] {
            assert!(self.body[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {}", self.text);
        }
        assert_eq!(self.headers["operation-id"].to_str().ok(), self.body["operation_id"].as_str());
        self
    }

    /// The value of the one number in the body.
    #[track_caller]
    pub fn value(&self) -> i64 {
        self.body["value"].as_i64().unwrap_or_else(|| panic!("no value in {}", self.text))
    }

    /// The values of several numbers in the body.
    #[track_caller]
    pub fn values(&self) -> Vec<i64> {
        let numbers = self.body["numbers"].as_array().unwrap_or_else(|| panic!("no numbers in {}", self.text));
        numbers.iter().map(|number| number["value"].as_i64().expect("a value")).collect()
    }

    /// Whether it says that it was answered before.
    pub fn replayed(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }
}
