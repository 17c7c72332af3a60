//! The journal of a run under faults: every attempt of every client and every fault, on one clock, for the
//! checker to hold against what the databases have afterwards.

use std::{
    collections::BTreeMap,
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    io::BufReader,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use checker::{Answered, Begun, Counter, Ended, Fault, Ledger, Observed, Outcome, Recorder, Report, Row, Run};
use reqwest::Method;
use serde_json::Value;
use sqlx::{Connection, PgConnection, Row as _};

use crate::Api;

/// Who asks, for what, and for the how-manieth time.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The tenant's id.
    pub tenant: String,
    /// The series.
    pub series: String,
    /// The idempotency key.
    pub key: String,
    /// The document.
    pub document_ref: String,
    /// The client.
    pub client: u64,
    /// The attempt with this key, from 1.
    pub attempt: u32,
}

/// Written while the run goes on, so that a program that dies can't have done what its journal does not say.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    history: Mutex<Recorder<File>>,
    faults: Mutex<Vec<Fault>>,
    began: Instant,
    attempts: AtomicU64,
}

impl Journal {
    /// A new one, in the folder for temporary files.
    pub fn begin(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("seriatim-{name}-{}.jsonl", std::process::id()));
        let file = File::create(&path).expect("a file for the history");
        Self {
            path,
            history: Mutex::new(Recorder::new(file)),
            faults: Mutex::default(),
            began: Instant::now(),
            attempts: AtomicU64::new(1),
        }
    }

    /// Microseconds since it began.
    pub fn now(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Notes a fault that struck at `from` and is over now.
    pub fn fault(&self, name: impl Into<String>, from: i64) {
        let fault = Fault { name: name.into(), from, until: self.now() };
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
    }

    /// How many faults there were.
    pub fn faults(&self) -> usize {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Asks for one number and writes down what was asked, before, and what was answered, after. The number's
    /// value, if it was.
    pub async fn issue(&self, api: &Api, ask: &Ask, body: &Value) -> Option<i64> {
        let id = self.attempts.fetch_add(1, Ordering::SeqCst);
        let begun = Begun {
            id,
            client: ask.client,
            attempt: ask.attempt,
            tenant: ask.tenant.clone(),
            series: ask.series.clone(),
            period: "all".to_owned(),
            key: ask.key.clone(),
            document_ref: Some(ask.document_ref.clone()),
            invoked: self.now(),
            gateway: api.base.clone(),
            epoch: 1,
        };
        self.write(|history| history.begin(&begun));
        let url = format!("{}/v1/series/{}/numbers", api.base, ask.series);
        let request = api.http.request(Method::POST, url).bearer_auth(&api.key).header("Idempotency-Key", &ask.key);
        let answer = async {
            let answer = request.json(body).send().await.ok()?;
            Some((answer.status().as_u16(), answer.text().await.ok()?))
        }
        .await;
        let completed = self.now();
        let number = answer.as_ref().filter(|(status, _)| matches!(status, 200 | 201)).map(|(_, text)| number(text));
        let outcome = match answer.as_ref().map(|(status, _)| *status) {
            Some(200 | 201) => Outcome::Ok,
            // This one says nothing about the first call with its key.
            Some(409) => Outcome::Info,
            Some(400..=499) => Outcome::Fail,
            _ => Outcome::Info,
        };
        let body_hash = number.as_ref().and(answer.as_ref()).map(|(_, text)| hash(text));
        let value = number.as_ref().map(|number| number.value);
        let ended = Ended { id, completed, outcome, numbers: number.into_iter().collect(), body_hash };
        self.write(|history| history.end(&ended));
        value
    }

    fn write(&self, line: impl FnOnce(&mut Recorder<File>) -> std::io::Result<()>) {
        line(&mut self.history.lock().unwrap_or_else(PoisonError::into_inner)).expect("the history takes a line");
    }

    /// Holds the run against what the shards have now. Nothing is in flight any more.
    pub async fn check(self, shard_urls: &BTreeMap<String, String>) -> Report {
        let healed_at = self.now();
        drop(self.history);
        let file = BufReader::new(File::open(&self.path).expect("the history"));
        let history = checker::read_history(file).expect("a history that can be read");
        let observed = Observed {
            history,
            ledger: ledger(shard_urls).await,
            sent: Vec::new(),
            faults: self.faults.into_inner().unwrap_or_else(PoisonError::into_inner),
            healed_at,
            sealed_limit: i64::MAX,
        };
        let report = checker::check(&observed);
        // What is wrong is worth keeping.
        if report.findings.is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
        report
    }
}

fn number(text: &str) -> Answered {
    let body: Value = serde_json::from_str(text).expect("an answer in JSON");
    let word = |member: &str| body[member].as_str().unwrap_or_default().to_owned();
    Answered {
        value: body["value"].as_i64().expect("a value"),
        number: word("number"),
        period: word("period"),
        part: body["part"].as_i64().and_then(|part| part.try_into().ok()).expect("a part"),
    }
}

fn hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Everything that the shards hold, asked by the superuser.
async fn ledger(shard_urls: &BTreeMap<String, String>) -> Ledger {
    let mut ledger = Ledger::default();
    for (shard, url) in shard_urls {
        let mut db = PgConnection::connect(url).await.expect("the superuser connects");
        let rows = "select n.tenant_id::text, n.series, n.part, n.period, n.value, n.number, n.state, c.key,
                           (extract(epoch from n.at) * 1000000)::bigint
                      from number n left join claim c on (c.tenant_id, c.series, c.part, c.period) =
                           (n.tenant_id, n.series, n.part, n.period) and n.value between c.first and c.first + c.count - 1";
        for row in sqlx::query(rows).fetch_all(&mut db).await.expect("the numbers") {
            ledger.rows.push(Row {
                shard: shard.clone(),
                tenant: row.get(0),
                series: row.get(1),
                part: row.get(2),
                period: row.get(3),
                value: row.get(4),
                number: row.get(5),
                state: row.get(6),
                key: row.get(7),
                at: row.get(8),
            });
        }
        let counters = "select tenant_id::text, series, part, period, last from counter";
        for row in sqlx::query(counters).fetch_all(&mut db).await.expect("the counters") {
            ledger.counters.push(Counter {
                shard: shard.clone(),
                tenant: row.get(0),
                series: row.get(1),
                part: row.get(2),
                period: row.get(3),
                last: row.get(4),
            });
        }
        let runs = "select tenant_id::text, series, part, period, first from run";
        for row in sqlx::query(runs).fetch_all(&mut db).await.expect("the runs") {
            ledger.runs.push(Run {
                tenant: row.get(0),
                series: row.get(1),
                part: row.get(2),
                period: row.get(3),
                first: row.get(4),
            });
        }
    }
    ledger
}
