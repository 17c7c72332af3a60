//! HTTP in: authenticate, translate, answer. The gateway holds no rules and no SQL, and it never calls out.
//!
//! A request passes, from the outside in: `operation` (names the call, owns its task, turns every error into
//! a problem document), `auth` (who, and with which scope; declared beside the route), a route's handler
//! (words in, words out).

mod app;
mod auth;
mod body;
mod flights;
mod idempotency;
mod json;
mod operation;
mod paging;
mod problem;
mod routes;
mod server;
mod stream;
mod system;
mod versions;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::clock::Clock;
use jiff::SignedDuration;

pub use app::Gateway;
pub use server::{serve, serve_metrics};
pub use system::{Entropy, SystemClock, SystemEntropy, uuid};

/// The metrics of this process, in the text form that Prometheus reads.
pub type Exposition = Arc<dyn Fn() -> String + Send + Sync>;

/// What a gateway is made of.
#[derive(Clone)]
pub struct Config {
    /// The directory's address, as the app role.
    pub directory_url: String,
    /// Each shard's address by name, as the app role.
    pub shard_urls: BTreeMap<String, String>,
    /// The most connections to each database.
    pub connections: u32,
    /// The longest a caller waits for an answer; the work itself goes on to its end.
    pub patience: Duration,
    /// How far apart the clocks of this process and of a shard may be; none where a test moves one.
    pub clock_tolerance: Option<SignedDuration>,
    /// Where instants come from.
    pub clock: Arc<dyn Clock>,
    /// Where random bytes come from.
    pub entropy: Arc<dyn Entropy>,
    /// What `/metrics` shows; none is no such path.
    pub metrics: Option<Exposition>,
}

impl Config {
    /// The limits of a gateway in service, on the system's clock and randomness.
    pub fn new(directory_url: String, shard_urls: BTreeMap<String, String>) -> Self {
        Self {
            directory_url,
            shard_urls,
            connections: 16,
            patience: Duration::from_secs(10),
            clock_tolerance: Some(SignedDuration::from_secs(1)),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            metrics: None,
        }
    }
}
