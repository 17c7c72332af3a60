//! Counters: the one row per (series, part, period) that an issue locks, and the runs beneath it.

use domain::{
    id::SeriesName,
    next::{Counter, Gate},
    period::Period,
    principal::Principal,
};
use jiff::{Timestamp, civil::Date};
use jiff_sqlx::{Date as SqlDate, ToSqlx};
use store::{Error, Tx};

/// Which version of a counter's row: its place in the table (PostgreSQL, "System Columns", `ctid`). A hint and no more:
/// it finds the row without walking past the versions that a long-open snapshot keeps, and the key is always a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) String);

/// A counter as the last round on it left it: a hint too, since whatever acts on it says in its conditions what it must be.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) place: Place,
    pub(crate) seen: Seen,
}

impl Left {
    /// It took a step.
    pub(crate) fn moved(&mut self, place: Place, last: i64, last_date: Option<Date>) {
        self.place = place;
        self.seen.counter.last = last;
        self.seen.counter.last_date = self.seen.counter.last_date.max(last_date);
    }
}

/// A counter as one statement saw it, with the run that its next value belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) counter: Counter,
    pub(crate) config_version: i64,
    pub(crate) epoch: i64,
    /// The first value of the present run.
    pub(crate) run_first: i64,
}

/// What one statement, so one snapshot, says about a counter and about the keys and documents of a batch.
#[derive(Debug)]
pub(crate) struct Look {
    /// None where the period has no counter, or it is no longer at its place.
    pub(crate) seen: Option<Seen>,
    /// The series' version, where the period has no counter that would say it.
    pub(crate) series_version: Option<i64>,
    /// Which of the keys have a claim, from 0.
    pub(crate) claimed: Vec<usize>,
    /// Which of the references have a number, from 0.
    pub(crate) numbered: Vec<usize>,
    /// The shard's clock.
    pub(crate) shard_time: Timestamp,
}

/// Where the counter of a period is; none where the period has not begun.
pub(crate) async fn find(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
) -> Result<Option<Place>, Error> {
    let place = sqlx::query_scalar!(
        r#"select ctid::text as "place!" from counter where tenant_id = $1 and series = $2 and part = 0 and period = $3"#,
        principal.tenant.0,
        series.as_str(),
        period.as_str()
    );
    Ok(place.fetch_optional(tx.db()).await?.map(Place))
}

/// The counter as it is, and nobody else moves it until this transaction ends.
pub(crate) async fn lock(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
) -> Result<Option<Left>, Error> {
    let row = sqlx::query!(
        r#"select c.ctid::text as "place!", c.last, c.last_date as "last_date: SqlDate", c.gate, c.config_version, c.epoch,
                  r.first as "first?", r."limit" as "limit?"
             from counter c
             left join lateral (select first, "limit" from run
               where tenant_id = $1 and series = $2 and part = 0 and period = $3 and first <= c.last + 1
               order by first desc limit 1) r on true
            where c.tenant_id = $1 and c.series = $2 and c.part = 0 and c.period = $3
              for no key update of c"#,
        principal.tenant.0,
        series.as_str(),
        period.as_str()
    )
    .fetch_optional(tx.db())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let counter = Counter {
        period: period.clone(),
        last: row.last,
        gate: Gate::from_word(&row.gate).ok_or_else(|| Error::corrupt("a counter's gate"))?,
        limit: row.limit,
        last_date: row.last_date.map(SqlDate::to_jiff),
    };
    let run_first = row.first.ok_or_else(|| Error::corrupt(format!("counter {series} {period} has no run")))?;
    let seen = Seen { counter, config_version: row.config_version, epoch: row.epoch, run_first };
    Ok(Some(Left { place: Place(row.place), seen }))
}

/// One look at everything. Each key and each reference is one index look-up: on a table that was never analysed the
/// planner would otherwise walk all claims of the series.
pub(crate) async fn look_at(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
    place: Option<&Place>,
    (keys, references): (&[&str], &[&str]),
) -> Result<Look, Error> {
    let row = sqlx::query!(
        r#"select c.last as "last?", c.last_date as "last_date?: SqlDate", c.gate as "gate?", c.config_version as "config_version?", c.epoch as "epoch?",
                  r.first as "first?", r."limit" as "limit?", clock_timestamp() as "now!",
                  case when c.last is null then (select version from series where tenant_id = $1 and series = $2) end as series_version,
                  array(select k.place from unnest($5::text[]) with ordinality k (key, place)
                         cross join lateral (select from claim where tenant_id = $1 and series = $2 and claim.key = k.key offset 0) c)
                    as "claimed!",
                  array(select d.place from unnest($6::text[]) with ordinality d (reference, place)
                         cross join lateral (select from number
                           where tenant_id = $1 and series = $2 and document_ref = d.reference offset 0) n) as "numbered!"
             from (select) it
             left join lateral (select last, last_date, gate, config_version, epoch from counter
               where ctid = $4::text::tid and tenant_id = $1 and series = $2 and part = 0 and period = $3) c on true
             left join lateral (select first, "limit" from run
               where tenant_id = $1 and series = $2 and part = 0 and period = $3 and first <= c.last + 1
               order by first desc limit 1) r on true"#,
        principal.tenant.0,
        series.as_str(),
        period.as_str(),
        place.map(|place| place.0.as_str()),
        keys as _,
        references as _
    )
    .fetch_one(tx.db())
    .await?;
    let seen = match (row.last, row.gate, row.config_version, row.epoch) {
        (Some(last), Some(gate), Some(config_version), Some(epoch)) => {
            let gate = Gate::from_word(&gate).ok_or_else(|| Error::corrupt("a counter's gate"))?;
            let run_first = row.first.ok_or_else(|| Error::corrupt(format!("counter {series} {period} has no run")))?;
            let counter =
                Counter { period: period.clone(), last, gate, limit: row.limit, last_date: row.last_date.map(SqlDate::to_jiff) };
            Some(Seen { counter, config_version, epoch, run_first })
        }
        _ => None,
    };
    // PostgreSQL counts from 1.
    let from_zero = |places: Vec<i64>| places.into_iter().filter_map(|place| usize::try_from(place - 1).ok()).collect();
    let series_version = row.series_version;
    Ok(Look {
        seen,
        series_version,
        claimed: from_zero(row.claimed),
        numbered: from_zero(row.numbered),
        shard_time: row.now.to_jiff(),
    })
}

/// A period's first counter. The series' row is held FOR SHARE meanwhile, so that a pause, which updates it,
/// can't miss the new counter. Whoever comes second finds it there.
pub(crate) async fn open(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
    at: Timestamp,
) -> Result<(), Error> {
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

/// A counter without locking it, with its run's limit; none where the period has not begun.
pub(crate) async fn look(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
) -> Result<Option<Counter>, Error> {
    let row = sqlx::query!(
        r#"select c.last, c.last_date as "last_date: SqlDate", c.gate, r."limit" as "limit?" from counter c
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
            last_date: row.last_date.map(SqlDate::to_jiff),
        })
    })
    .transpose()
}
