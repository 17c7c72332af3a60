//! What every handler shares.

use std::sync::Arc;

use directory::{Directory, Placement};
use domain::{
    id::{SeriesName, TenantId},
    principal::Principal,
};
use jiff::Timestamp;
use ledger::{Ledger, NewSeries};
use quick_cache::sync::Cache;
use store::Error;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Config, Entropy, auth::Known, flights::Flights, problem::Failed};

/// How many keys and placements are remembered.
const REMEMBERED: usize = 100_000;

/// How many audits run at once.
const AUDITS: usize = 3;

/// A gateway: everything that a request needs. Cheap to clone.
#[derive(Clone)]
pub struct Gateway(Arc<Parts>);

/// What a gateway holds.
pub struct Parts {
    pub(crate) directory: Directory,
    pub(crate) ledger: Ledger,
    pub(crate) config: Config,
    /// Keys seen lately, by their hash.
    pub(crate) keys: Cache<[u8; 32], Known>,
    /// Keys that the directory is being asked about.
    pub(crate) asking: Flights<[u8; 32]>,
    /// Where series live. A placement does not change while its shard's row has the same epoch.
    placements: Cache<(TenantId, SeriesName), Arc<Placement>>,
    pub(crate) flights: Flights<String>,
    /// How many audits may run at once: each holds a connection for long.
    pub(crate) audits: Arc<Semaphore>,
    /// Every request's task; a shutdown waits for them.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the gateway is to stop taking work.
    pub(crate) draining: CancellationToken,
    /// Cancelled when answers that are still being written have to end.
    pub(crate) cutting: CancellationToken,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("ledger", &self.0.ledger).finish_non_exhaustive()
    }
}

impl std::ops::Deref for Gateway {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Gateway {
    /// A gateway on these databases. Connections are made when they are first needed.
    pub fn new(config: Config) -> Result<Self, Error> {
        let clock = config.clock.clone();
        Ok(Self(Arc::new(Parts {
            directory: Directory::open(&config.directory_url, config.connections)?,
            ledger: Ledger::open(&config.shard_urls, config.connections, clock, config.clock_tolerance)?,
            keys: Cache::new(REMEMBERED),
            asking: Flights::default(),
            placements: Cache::new(REMEMBERED),
            flights: Flights::default(),
            audits: Arc::new(Semaphore::new(AUDITS)),
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
            cutting: CancellationToken::new(),
            config,
        })))
    }

    /// The present instant, to the microsecond that the databases keep.
    pub(crate) fn instant(&self) -> Timestamp {
        let now = self.config.clock.instant();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.config.entropy
    }

    /// Where a series lives, from memory where it is known: a directory that is away stops only what is new.
    /// A series met for the first time is put on its shard if a crash came between the two commits of its
    /// making, so whoever has a placement finds the series there.
    pub(crate) async fn placement(&self, principal: &Principal, name: &SeriesName) -> Result<Arc<Placement>, Failed> {
        let place = (principal.tenant, name.clone());
        if let Some(known) = self.placements.get(&place) {
            return Ok(known);
        }
        let found = self.directory.placement(principal, name).await.map_err(Failed::directory)?;
        let found = Arc::new(found.ok_or_else(|| Failed::not_found(format!("series {name}")))?);
        self.settle(principal, &found).await?;
        Ok(found)
    }

    /// Puts a series on its shard, unless it is there, and remembers where it lives.
    pub(crate) async fn settle(&self, principal: &Principal, placement: &Arc<Placement>) -> Result<(), Failed> {
        let new = NewSeries {
            name: placement.name.clone(),
            settings: placement.settings.clone(),
            epoch: placement.epoch,
            at: placement.created_at,
            by: placement.created_by.clone(),
        };
        self.ledger.ensure_series(&placement.shard, principal, &new).await.map_err(Failed::shard)?;
        self.placements.insert((principal.tenant, placement.name.clone()), placement.clone());
        Ok(())
    }
}
