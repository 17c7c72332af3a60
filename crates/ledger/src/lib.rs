//! All SQL of a shard: every operation as one transaction.
//!
//! One file per operation (`issue`, `preview`, `audit` …), one per table family (`claim`, `counter`,
//! `number`, `series`). The dangerous ones are `batch.rs`, the transaction that takes numbers, which begins with its
//! statements as a table and why in that order, and `lane.rs`, which joins what waits for one counter.

mod amend;
mod audit;
mod batch;
mod change;
mod claim;
mod clocks;
mod counter;
mod event;
mod explain;
mod finder;
mod inspect;
mod issue;
mod lane;
mod list;
mod migrate;
mod number;
mod period;
mod plan;
mod preview;
mod raise;
mod release;
mod series;
mod step;
mod sweep;

use std::{collections::BTreeMap, fmt, sync::Arc};

use domain::{
    clock::Clock,
    id::{SeriesName, TenantId},
    series::Series,
};
use jiff::SignedDuration;
use quick_cache::sync::Cache;
use sqlx::PgPool;
use store::{Error, Patience};

use crate::lane::Lanes;

pub use amend::Amendment;
pub use audit::{Audit, Gap, MOST, PeriodAudit, Progress, Run, Watch};
pub use change::{Change, Version};
pub use event::Noted;
pub use explain::{Entry, Explained, Found, Sought, Unused};
pub use finder::{Finder, Job};
pub use inspect::{Inspection, inspect};
pub use issue::{Answer, Member, Operation, Order};
pub use list::{Filter, Listed, Place};
pub use migrate::migrate;
pub use number::Number;
pub use period::PeriodState;
pub use preview::Preview;
pub use raise::Raise;
pub use series::NewSeries;
pub use step::Asked;

/// How long an operation that writes keeps trying while others are in its way.
pub(crate) const PATIENCE: Patience = Patience::seconds(8, 5);
/// How long a short read does.
pub(crate) const READING: Patience = Patience::seconds(3, 3);

/// How many series are remembered.
const REMEMBERED: usize = 100_000;

/// A handle to every shard; cheap to clone.
#[derive(Clone)]
pub struct Ledger {
    shards: Arc<BTreeMap<String, PgPool>>,
    clock: Arc<dyn Clock>,
    /// Series as they were last read. A counter says whether that still holds.
    series: Arc<Cache<(TenantId, SeriesName), Arc<Series>>>,
    lanes: Arc<Lanes>,
    /// How far apart the clocks of this process and of a shard may be; none where a test moves one of them.
    tolerance: Option<SignedDuration>,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("shards", &self.shards.keys()).finish_non_exhaustive()
    }
}

impl Ledger {
    /// A handle to the shards at these addresses (by name), as the app role, with at most `connections` at
    /// once to each.
    pub fn open(
        shards: &BTreeMap<String, String>,
        connections: u32,
        clock: Arc<dyn Clock>,
        tolerance: Option<SignedDuration>,
    ) -> Result<Self, Error> {
        let pools = shards.iter().map(|(name, url)| Ok((name.clone(), store::pool(url, connections)?)));
        let shards = Arc::new(pools.collect::<Result<_, Error>>()?);
        Ok(Self { shards, clock, series: Arc::new(Cache::new(REMEMBERED)), lanes: Arc::default(), tolerance })
    }

    /// The names of the shards that this process can reach by configuration.
    pub fn shards(&self) -> impl Iterator<Item = &str> {
        self.shards.keys().map(String::as_str)
    }

    fn shard(&self, name: &str) -> Result<&PgPool, Error> {
        let unknown =
            || Error::Unavailable(format!("shard {name} is in the directory but not in this process's configuration").into());
        self.shards.get(name).ok_or_else(unknown)
    }
}
