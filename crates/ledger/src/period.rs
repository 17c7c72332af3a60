//! Periods: which there are, and closing one for good.
//!
//! | # | statement of a closing | why there |
//! |---|---|---|
//! | 1 | the counter is made, if the period has none | a period that nobody began must refuse whoever begins it next |
//! | 2 | lock the counter | whoever takes a number needs it: afterwards every number of the period is visible |
//! | 3 | is anything open? | in a statement of its own, so in a snapshot after the lock; nothing becomes open without the counter |
//! | 4 | close the gate | whoever waits for the row finds it closed |

use domain::{
    id::{OperationId, SeriesName},
    next::Gate,
    period::Period,
    principal::Principal,
    refusal::Refusal,
    series::Series,
    state::State,
};
use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx};
use serde_json::json;
use store::{Authority, Error, Snapshot, Stop, Tx, fault::Point};

use crate::{
    Ledger, PATIENCE, READING, counter,
    event::{self, Noted},
    series,
};

/// A period that has begun, or was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodState {
    /// Its name.
    pub period: Period,
    /// Whether it takes numbers.
    pub gate: Gate,
    /// The largest value given; none where there is none.
    pub last: Option<i64>,
    /// The value that comes next; none where none does.
    pub next: Option<i64>,
    /// When it was closed; none also where the series as a whole was.
    pub closed_at: Option<Timestamp>,
    /// By whom.
    pub closed_by: Option<String>,
}

impl Ledger {
    /// The periods of a series after `after` in the order of their names, at most `limit`; none if the series is not here.
    #[tracing::instrument(name = "ledger.periods", skip_all, fields(shard), err(level = "debug"))]
    pub async fn periods(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
        (after, limit): (Option<&str>, i64),
    ) -> Result<Option<Vec<PeriodState>>, Stop> {
        store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::OneMoment).await?;
            let Some(series) = series::read(&mut tx, principal, name).await? else { return Ok(None) };
            let rows = sqlx::query_as!(
                Row,
                r#"select period, gate, last, closed_at, closed_by from counter
                    where tenant_id = $1 and series = $2 and part = 0 and period > $3 order by period limit $4"#,
                principal.tenant.0,
                name.as_str(),
                after.unwrap_or_default(),
                limit
            )
            .fetch_all(tx.db())
            .await?;
            tx.end().await?;
            Ok(Some(rows.into_iter().map(|row| row.understand(&series)).collect::<Result<_, Error>>()?))
        })
        .await
    }

    /// One period; none where the series is not here or the period has not begun.
    pub async fn period(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
        period: &Period,
    ) -> Result<Option<PeriodState>, Stop> {
        store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let Some(series) = series::read(&mut tx, principal, name).await? else { return Ok(None) };
            let row = sqlx::query_as!(
                Row,
                "select period, gate, last, closed_at, closed_by from counter
                  where tenant_id = $1 and series = $2 and part = 0 and period = $3",
                principal.tenant.0,
                name.as_str(),
                period.as_str()
            )
            .fetch_optional(tx.db())
            .await?;
            tx.end().await?;
            Ok(row.map(|row| row.understand(&series)).transpose()?)
        })
        .await
    }

    /// Closes a period for good. Doing it twice changes nothing the second time. None if the series is not here.
    ///
    /// [`Refusal::PeriodHasOpen`] where a number of it is not settled, [`Refusal::NotFound`] where the series can have no
    /// such period.
    #[tracing::instrument(name = "ledger.close_period", skip_all, fields(shard), err(level = "debug"))]
    pub async fn close_period(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
        period: &Period,
        (at, operation_id): (Timestamp, &OperationId),
    ) -> Result<Option<PeriodState>, Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let Some(series) = series::read(&mut tx, principal, name).await? else { return Ok(None) };
            if !series.settings.reset.makes(period) {
                return Err(Refusal::NotFound(no_such(&series, period, self.clock.instant())).into());
            }
            counter::open(&mut tx, principal, name, period, at).await?;
            let held = counter::lock(&mut tx, principal, name, period).await?.ok_or(Error::Moved)?;
            tx.reach(Point::AfterLock).await?;
            if held.seen.counter.gate != Gate::Closed {
                refuse_open(&mut tx, principal, name, period).await?;
            }
            let closed = shut(&mut tx, principal, name, period, at).await?.ok_or(Error::Moved)?;
            if held.seen.counter.gate != Gate::Closed {
                let noted = Noted {
                    kind: "period.closed",
                    subject: &format!("{name}/{period}"),
                    before: Some(json!({"state": held.seen.counter.gate.word()})),
                    after: Some(json!({"state": "closed", "last": held.seen.counter.last})),
                    at,
                    operation_id,
                };
                event::note(&mut tx, principal, &noted).await?;
            }
            tx.reach(Point::AfterWrite).await?;
            tx.commit().await?;
            Ok(Some(closed.understand(&series)?))
        })
        .await
    }
}

/// What to call instead of a period that can't be.
pub(crate) fn no_such(series: &Series, period: &Period, now: Timestamp) -> String {
    format!(
        "period {period} in series {}: with reset {} its periods are named like {}",
        series.name,
        series.settings.reset.word(),
        series.settings.period(series.settings.today(now))
    )
}

async fn refuse_open(tx: &mut Tx<'_>, principal: &Principal, name: &SeriesName, period: &Period) -> Result<(), Stop> {
    let open = sqlx::query!(
        r#"select number as "number!", state, count(*) over () as "count!" from number
            where tenant_id = $1 and series = $2 and period = $3 and state in ('reserved', 'sending', 'failed', 'in_doubt')
            order by part, value limit 1"#,
        principal.tenant.0,
        name.as_str(),
        period.as_str()
    )
    .fetch_optional(tx.db())
    .await?;
    match open {
        None => Ok(()),
        Some(open) => Err(Refusal::PeriodHasOpen {
            period: period.clone(),
            count: open.count,
            example: open.number,
            state: State::from_word(&open.state).ok_or_else(|| Error::corrupt("a number's state"))?,
        }
        .into()),
    }
}

/// The first closing is the one that is on record.
async fn shut(
    tx: &mut Tx<'_>,
    principal: &Principal,
    name: &SeriesName,
    period: &Period,
    at: Timestamp,
) -> Result<Option<Row>, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"update counter
              set gate = 'closed', closed_at = case when gate = 'closed' then closed_at else $4 end,
                  closed_by = case when gate = 'closed' then closed_by else $5 end
            where tenant_id = $1 and series = $2 and part = 0 and period = $3
           returning period, gate, last, closed_at, closed_by"#,
        principal.tenant.0,
        name.as_str(),
        period.as_str(),
        at.to_sqlx() as _,
        principal.to_string()
    );
    Ok(row.fetch_optional(tx.db()).await?)
}

struct Row {
    period: String,
    gate: String,
    last: i64,
    closed_at: Option<SqlTimestamp>,
    closed_by: Option<String>,
}

impl Row {
    fn understand(self, series: &Series) -> Result<PeriodState, Error> {
        let gate = Gate::from_word(&self.gate).ok_or_else(|| Error::corrupt("a counter's gate"))?;
        let next = self.last + 1;
        Ok(PeriodState {
            period: Period::named(self.period),
            gate,
            last: (self.last >= series.settings.first).then_some(self.last),
            next: (gate != Gate::Closed && series.settings.fits(next)).then_some(next),
            closed_at: self.closed_at.map(SqlTimestamp::to_jiff),
            closed_by: self.closed_by,
        })
    }
}
