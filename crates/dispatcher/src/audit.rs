//! The auditor: one series after the other is proved, for ever, a little at a time. What it finds must be nothing; what it
//! found in the last round and in this one is a metric, and each finding a line in the log.

use std::time::{Duration, Instant};

use domain::{
    id::{SeriesName, TenantId},
    principal::{Principal, Who},
    refusal::Refusal,
};
use ledger::Job;
use serde_json::{Value, json};
use store::{Error, Stop};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Dispatcher, LEASE, rest};

/// The longest it rests inside of an audit: the server ends a transaction that does nothing for five seconds.
const REST: Duration = Duration::from_millis(500);
/// How many findings of one series are logged.
const LOGGED: usize = 20;

/// What came of one series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub series: SeriesName,
    /// How many states were found that can't be.
    pub impossible: usize,
}

/// How far a round is, kept with the lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Round {
    /// The last series that was audited; none at the beginning of a round.
    after: Option<(TenantId, SeriesName)>,
    series: i64,
    impossible: i64,
    /// What the round before found.
    before: i64,
}

impl Round {
    fn read(noted: Option<&Value>) -> Self {
        let Some(noted) = noted else { return Self::default() };
        let tenant = noted["tenant"].as_str().and_then(|id| id.parse::<Uuid>().ok());
        let series = noted["series"].as_str().and_then(|name| SeriesName::parse(name).ok());
        let count = |field: &str| noted[field].as_i64().unwrap_or_default();
        Self {
            after: tenant.map(TenantId).zip(series),
            series: count("audited"),
            impossible: count("impossible"),
            before: count("impossible_before"),
        }
    }

    fn write(&self) -> Value {
        json!({
            "tenant": self.after.as_ref().map(|(tenant, _)| tenant.to_string()),
            "series": self.after.as_ref().map(|(_, series)| series.to_string()),
            "audited": self.series,
            "impossible": self.impossible,
            "impossible_before": self.before,
        })
    }
}

impl Dispatcher {
    pub(crate) async fn audit_loop(&self, shard: &str, stop: &CancellationToken) {
        loop {
            let mut pause = self.0.pace.audit;
            if self.lease(shard, Job::Audit).await {
                let audited = tokio::select! {
                    audited = self.audit_next(shard) => audited,
                    // It only reads: there is nothing to end properly.
                    () = stop.cancelled() => return self.leave(shard, Job::Audit).await,
                };
                match audited {
                    Ok(Some(_)) => {}
                    Ok(None) => pause = self.0.pace.round,
                    Err(why) => {
                        tracing::warn!(shard, error = %why, "the auditor was stopped and will try again");
                        pause = self.0.pace.sweep;
                    }
                }
            } else {
                pause = self.0.pace.sweep;
            }
            self.show(shard).await;
            if !rest(pause, stop).await {
                return self.leave(shard, Job::Audit).await;
            }
        }
    }

    /// What is known of the findings, whoever found them.
    async fn show(&self, shard: &str) {
        if let Ok(noted) = self.0.finder.noted(shard, Job::Audit).await {
            let round = Round::read(noted.as_ref());
            self.0.metrics.impossible(shard, round.impossible.max(round.before));
        }
    }

    /// Audits the series that is next, for whoever holds the lease; none at the end of a round.
    pub async fn audit_next(&self, shard: &str) -> Result<Option<Audited>, Stop> {
        let finder = &self.0.finder;
        let mut round = Round::read(finder.noted(shard, Job::Audit).await?.as_ref());
        let Some((tenant, series)) = finder.series_after(shard, round.after.as_ref()).await? else {
            tracing::info!(shard, series = round.series, impossible = round.impossible, "every series was audited");
            let next = Round { before: round.impossible, ..Round::default() };
            finder.note(shard, Job::Audit, &self.0.name, &next.write()).await?;
            return Ok(None);
        };
        let found = match self.keeping_lease(shard, self.audit(shard, tenant, &series)).await {
            Ok(found) => found,
            // One that can't be read must not keep the others from being proved; it is told, and counts.
            Err(Stop::Failure(error @ (Error::Corrupt(_) | Error::Failed(_)))) => vec![format!("it can't be audited: {error}")],
            Err(stop) => return Err(stop),
        };
        for what in found.iter().take(LOGGED) {
            tracing::error!(shard, %tenant, %series, what, "an impossible state");
        }
        round.after = Some((tenant, series.clone()));
        round.series += 1;
        round.impossible += i64::try_from(found.len()).unwrap_or(i64::MAX);
        self.0.metrics.audited(shard);
        // Where the lease was lost, another does the same series once more.
        finder.note(shard, Job::Audit, &self.0.name, &round.write()).await?;
        Ok(Some(Audited { tenant, series, impossible: found.len() }))
    }

    async fn keeping_lease<T>(&self, shard: &str, work: impl Future<Output = Result<T, Stop>>) -> Result<T, Stop> {
        tokio::pin!(work);
        loop {
            match tokio::time::timeout(LEASE / 3, &mut work).await {
                Ok(done) => return done,
                Err(_) => {
                    self.0.finder.lease(shard, Job::Audit, &self.0.name, LEASE).await?;
                }
            }
        }
    }

    /// What can't be in a series, as sentences. It works as long as it rests, so that others come first.
    async fn audit(&self, shard: &str, tenant: TenantId, series: &SeriesName) -> Result<Vec<String>, Stop> {
        let principal = Principal { tenant, who: Who::Auditor };
        let mut since = Instant::now();
        let mut watch = |_| {
            let rest = since.elapsed().min(REST);
            since = Instant::now() + rest;
            rest
        };
        let at = self.0.clock.instant();
        let audit = match self.0.ledger.audit(shard, &principal, series, None, at, &mut watch).await {
            Err(Stop::Refusal(Refusal::NotFound(_))) => return Ok(Vec::new()),
            audit => audit?,
        };
        let mut found = audit.impossible;
        for period in audit.periods {
            let name = period.period;
            let gaps = period.gaps.iter().map(|gap| format!("period {name}: values {} to {} are missing", gap.from, gap.to));
            let twice = period.duplicates.iter().map(|text| format!("period {name}: {text} stands on two documents"));
            let others = period.impossible.iter().map(|what| format!("period {name}: {what}"));
            found.extend(gaps.chain(twice).chain(others));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_read_as_it_was_written() {
        let after = Some((TenantId(Uuid::from_u128(7)), SeriesName::parse("invoices").unwrap()));
        for round in [Round::default(), Round { after, series: 3, impossible: 2, before: 1 }] {
            assert_eq!(Round::read(Some(&round.write())), round);
        }
        assert_eq!(Round::read(None), Round::default());
        assert_eq!(Round::read(Some(&json!({"tenant": "nobody", "series": 3}))), Round::default());
    }
}
