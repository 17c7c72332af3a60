//! Counters: the one row per (series, part, period) that an issue locks, and the runs beneath it.

use domain::{
    id::SeriesName,
    next::{Counter, Gate},
    period::Period,
    principal::Principal,
};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use store::{Error, Tx};

/// A counter whose row this transaction holds.
#[derive(Debug)]
pub(crate) struct Locked {
    pub(crate) last: i64,
    pub(crate) gate: Gate,
    pub(crate) config_version: i64,
    pub(crate) epoch: i64,
    /// The shard's clock, read while the row was being locked.
    pub(crate) shard_time: Timestamp,
}

/// The run that a counter is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CurrentRun {
    pub(crate) first: i64,
    pub(crate) limit: Option<i64>,
}

/// Locks the counter's row, making it first where the period has none.
pub(crate) async fn lock(
    tx: &mut Tx,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
    at: Timestamp,
) -> Result<Locked, Error> {
    if let Some(locked) = lock_existing(tx, principal, series, period).await? {
        return Ok(locked);
    }
    open(tx, principal, series, period, at).await?;
    lock_existing(tx, principal, series, period).await?.ok_or(Error::Moved)
}

async fn lock_existing(
    tx: &mut Tx,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
) -> Result<Option<Locked>, Error> {
    let row = sqlx::query!(
        r#"select last, gate, config_version, epoch, clock_timestamp() as "now!" from counter
            where tenant_id = $1 and series = $2 and part = 0 and period = $3 for no key update"#,
        principal.tenant.0,
        series.as_str(),
        period.as_str()
    )
    .fetch_optional(tx.db())
    .await?;
    row.map(|row| {
        Ok(Locked {
            last: row.last,
            gate: Gate::from_word(&row.gate).ok_or_else(|| Error::corrupt("a counter's gate"))?,
            config_version: row.config_version,
            epoch: row.epoch,
            shard_time: row.now.to_jiff(),
        })
    })
    .transpose()
}

/// A period's first counter. The series' row is held FOR SHARE meanwhile, so that a pause, which updates it,
/// can't miss the new counter. Whoever comes second finds it there.
async fn open(tx: &mut Tx, principal: &Principal, series: &SeriesName, period: &Period, at: Timestamp) -> Result<(), Error> {
    let held = sqlx::query!(
        "select first, status, version, epoch from series where tenant_id = $1 and series = $2 for share",
        principal.tenant.0,
        series.as_str()
    )
    .fetch_optional(tx.db())
    .await?
    .ok_or(Error::Moved)?;
    let gate = match held.status.as_str() {
        "active" => Gate::Open,
        "paused" => Gate::Paused,
        _ => Gate::Closed,
    };
    sqlx::query!(
        "insert into counter (tenant_id, series, part, period, last, gate, config_version, epoch)
         values ($1, $2, 0, $3, $4, $5, $6, $7) on conflict (tenant_id, series, part, period) do nothing",
        principal.tenant.0,
        series.as_str(),
        period.as_str(),
        held.first - 1,
        gate.word(),
        held.version,
        held.epoch
    )
    .execute(tx.db())
    .await?;
    sqlx::query!(
        "insert into run (tenant_id, series, part, period, first, why, principal, at)
         values ($1, $2, 0, $3, $4, 'start', $5, $6) on conflict (tenant_id, series, part, period, first) do nothing",
        principal.tenant.0,
        series.as_str(),
        period.as_str(),
        held.first,
        principal.to_string(),
        at.to_sqlx() as _
    )
    .execute(tx.db())
    .await?;
    Ok(())
}

/// The run that the value after `last` belongs to. Read after the lock, in a statement of its own: runs are
/// only added under the counter's lock, and this snapshot is younger than it.
pub(crate) async fn current_run(
    tx: &mut Tx,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
    last: i64,
) -> Result<CurrentRun, Error> {
    let row = sqlx::query!(
        r#"select first, "limit" from run
            where tenant_id = $1 and series = $2 and part = 0 and period = $3 and first <= $4
            order by first desc limit 1"#,
        principal.tenant.0,
        series.as_str(),
        period.as_str(),
        last + 1
    )
    .fetch_optional(tx.db())
    .await?;
    row.map(|row| CurrentRun { first: row.first, limit: row.limit })
        .ok_or_else(|| Error::corrupt(format!("counter {series} {period} has no run")))
}

/// A counter without locking it, with its run's limit; none where the period has not begun.
pub(crate) async fn look(
    tx: &mut Tx,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
) -> Result<Option<Counter>, Error> {
    let row = sqlx::query!(
        r#"select c.last, c.gate, r."limit" as "limit?" from counter c
             left join lateral (select "limit" from run r
               where r.tenant_id = c.tenant_id and r.series = c.series and r.part = c.part and r.period = c.period
                 and r.first <= c.last + 1 order by r.first desc limit 1) r on true
            where c.tenant_id = $1 and c.series = $2 and c.part = 0 and c.period = $3"#,
        principal.tenant.0,
        series.as_str(),
        period.as_str()
    )
    .fetch_optional(tx.db())
    .await?;
    row.map(|row| {
        Ok(Counter {
            period: period.clone(),
            last: row.last,
            gate: Gate::from_word(&row.gate).ok_or_else(|| Error::corrupt("a counter's gate"))?,
            limit: row.limit,
        })
    })
    .transpose()
}
