//! The sweeper: reservations past their deadline are settled as their series wants it. They are voided, with the deadline
//! as the reason, or they stay and are counted.

use domain::principal::{Principal, Who};
use ledger::Job;
use store::{Error, Stop};
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, rest};

/// How many reservations one transaction voids.
const TOGETHER: i64 = 500;
/// How many series are looked for at once.
const SERIES: i64 = 100;

impl Dispatcher {
    pub(crate) async fn sweep_loop(&self, shard: &str, stop: &CancellationToken) {
        loop {
            if self.lease(shard, Job::Sweep).await
                && let Err(why) = self.sweep(shard).await
            {
                tracing::warn!(shard, error = %why, "the sweeper was stopped and will try again");
            }
            match self.0.finder.overdue(shard, self.0.clock.instant()).await {
                Ok(count) => self.0.metrics.overdue(shard, count),
                Err(error) => tracing::debug!(shard, %error, "overdue reservations can't be counted"),
            }
            if !rest(self.0.pace.sweep, stop).await {
                return self.leave(shard, Job::Sweep).await;
            }
        }
    }

    /// Settles what is overdue now; how many reservations were voided. Ends early where the lease is lost.
    pub async fn sweep(&self, shard: &str) -> Result<i64, Stop> {
        let at = self.0.clock.instant();
        let Some(operation) = self.operation(Job::Sweep, at) else {
            return Err(Error::corrupt("the name of a sweep").into());
        };
        let mut voided = 0;
        loop {
            let found = self.0.finder.overdue_series(shard, at, SERIES).await?;
            let mut moved = 0;
            for (tenant, series) in found {
                let principal = Principal { tenant, who: Who::Sweeper };
                let count = self.0.ledger.void_overdue(shard, &principal, &series, (at, TOGETHER), &operation).await?;
                if count > 0 {
                    tracing::info!(shard, %tenant, %series, count, "voided reservations past their deadline");
                    self.0.metrics.voided(shard, count);
                }
                moved += count;
                if !self.0.finder.lease(shard, Job::Sweep, &self.0.name, crate::LEASE).await? {
                    return Ok(voided + moved);
                }
            }
            voided += moved;
            // What is left is being decided by somebody else.
            if moved == 0 {
                return Ok(voided);
            }
        }
    }
}
