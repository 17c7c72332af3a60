//! Work after the commit: loops that go on by themselves, each on every shard. It *finds* as the worker role, and *works* in
//! transactions of the tenant whose work it is.
//!
//! | loop | does | under |
//! |---|---|---|
//! | `sweep` | voids reservations past their deadline where the series wants it; counts the others | a lease, one process at a time |
//! | `audit` | proves one series after the other, for ever | a lease, one process at a time |
//!
//! Any number of processes run all loops; a lease is a row that ends by itself, so whoever is killed is followed by another.
//! Two that hold one lease (a stopped clock, a long pause) do no harm: every step is conditional.

mod audit;
mod metrics;
mod sweep;

use std::{fmt, sync::Arc, time::Duration};

use domain::{clock::Clock, id::OperationId};
use ledger::{Finder, Job, Ledger};
use store::Error;
use tokio_util::sync::CancellationToken;

pub use audit::Audited;
pub use metrics::Metrics;

/// What a dispatcher is made of.
#[derive(Clone)]
pub struct Config {
    /// The shards as the app role: where the work is done.
    pub ledger: Ledger,
    /// The shards as the worker role: where it is found.
    pub finder: Finder,
    /// Where instants come from.
    pub clock: Arc<dyn Clock>,
    /// The name of this process among others, unlike any other's.
    pub name: String,
    /// How long the loops rest.
    pub pace: Pace,
    /// What is counted.
    pub metrics: Metrics,
}

/// How long the loops rest.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two looks for overdue reservations.
    pub sweep: Duration,
    /// Between two series that are audited.
    pub audit: Duration,
    /// After all were.
    pub round: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { sweep: Duration::from_secs(5), audit: Duration::from_millis(200), round: Duration::from_mins(1) }
    }
}

/// The loops. Cheap to clone.
#[derive(Clone)]
pub struct Dispatcher(Arc<Config>);

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// How long a lease lasts that nobody keeps.
const LEASE: Duration = Duration::from_secs(30);

impl Dispatcher {
    /// Nothing runs yet.
    pub fn new(config: Config) -> Self {
        Self(Arc::new(config))
    }

    /// The name under which it holds leases.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Runs every loop on every shard until `shutdown` completes; each ends after the step that it is at.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        let stop = CancellationToken::new();
        let loops = tokio_util::task::TaskTracker::new();
        for shard in self.0.finder.shards() {
            let (this, shard, stop) = (self.clone(), shard.to_owned(), stop.clone());
            loops.spawn(async move {
                tokio::join!(this.sweep_loop(&shard, &stop), this.audit_loop(&shard, &stop));
            });
        }
        shutdown.await;
        stop.cancel();
        loops.close();
        loops.wait().await;
    }

    /// Takes or keeps the lease; false where another has it, or the shard can't be asked.
    async fn lease(&self, shard: &str, job: Job) -> bool {
        self.0.finder.lease(shard, job, &self.0.name, LEASE).await.unwrap_or_else(|error| {
            tracing::warn!(shard, job = job.word(), %error, "a shard can't be asked for work");
            false
        })
    }

    async fn leave(&self, shard: &str, job: Job) {
        // If it fails, the lease ends by itself.
        let _: Result<(), Error> = self.0.finder.leave(shard, job, &self.0.name).await;
    }

    /// The name of one step of a job, for histories and logs.
    fn operation(&self, job: Job, at: jiff::Timestamp) -> Option<OperationId> {
        OperationId::parse(&format!("{}-{}-{}", job.word(), at.as_millisecond(), self.0.name)).ok()
    }
}

/// Rests, unless it is to stop; true where it goes on.
async fn rest(time: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = stop.cancelled() => false,
    }
}
