//! The next value of a period goes up: a run begins there that says who wanted it and when. Values between are not used, and
//! the audit shows why. Only in series that allow it (`gapless: false`).

use domain::{
    id::{OperationId, SeriesName},
    next::Gate,
    period::Period,
    principal::Principal,
    refusal::Refusal,
    series::FieldError,
};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use serde_json::json;
use store::{Authority, Error, Snapshot, Stop, Tx, fault::Point};

use crate::{
    Ledger, PATIENCE, counter,
    event::{self, Noted},
    number, period, series,
};

/// A wish for the next value.
#[derive(Clone, Debug)]
pub struct Raise<'a> {
    /// Of which series.
    pub series: &'a SeriesName,
    /// Of which period.
    pub period: &'a Period,
    /// The value.
    pub next: i64,
    /// Why; it is in the audit trail.
    pub reason: &'a str,
    /// The request's one instant.
    pub at: Timestamp,
    /// Names the call.
    pub operation_id: &'a OperationId,
}

impl Ledger {
    /// Raises the next value of a period. Doing it twice changes nothing the second time.
    ///
    /// [`Refusal::NextUsed`] where the value is used, [`Refusal::Invalid`] where the series is gapless or the value fits
    /// no text, [`Refusal::PeriodClosed`] where nothing comes next.
    #[tracing::instrument(name = "ledger.raise", skip_all, fields(shard), err(level = "debug"))]
    pub async fn raise(&self, shard: &str, principal: &Principal, wish: &Raise<'_>) -> Result<(), Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let series = series::read(&mut tx, principal, wish.series).await?;
            let series = series.ok_or_else(|| Refusal::NotFound(format!("series {}", wish.series)))?;
            if !series.settings.reset.makes(wish.period) {
                return Err(Refusal::NotFound(period::no_such(&series, wish.period, self.clock.instant())).into());
            }
            counter::open(&mut tx, principal, wish.series, wish.period, wish.at).await?;
            let held = counter::lock(&mut tx, principal, wish.series, wish.period).await?.ok_or(Error::Moved)?.seen;
            let last = held.counter.last;
            if held.counter.gate == Gate::Closed {
                return Err(Refusal::PeriodClosed(wish.period.clone()).into());
            }
            if wish.next <= last {
                let place = (wish.period.to_string(), 0, wish.next.max(held.run_first.min(last)));
                let met = number::at_places(&mut tx, principal, wish.series, vec![place]).await;
                let number = met.ok().and_then(|mut met| met.pop()).map(|met| met.number);
                let (next, period, free) = (wish.next, wish.period.clone(), last + 1);
                return Err(Refusal::NextUsed { next, period, number, free }.into());
            }
            if wish.next == last + 1 {
                // It is so already; the period is there from now on.
                return Ok(tx.commit().await?);
            }
            let no = |detail: String| Refusal::Invalid(vec![FieldError::new("/value", detail)]);
            if series.settings.gapless {
                let detail = "values can be skipped only in a series with gapless false; an import takes over another system's last number";
                return Err(no(detail.to_owned()).into());
            }
            if !series.settings.fits(wish.next) {
                return Err(no("does not fit the width or the max_length of this series".to_owned()).into());
            }
            let released = number::released_above(&mut tx, principal, wish.series, wish.period, last).await?;
            if let Some(value) = released.keys().min() {
                return Err(no(format!("value {value} was released and comes first; give it to a document, or void it")).into());
            }
            tx.reach(Point::AfterLock).await?;
            begin_run(&mut tx, principal, wish, last).await?;
            let noted = Noted {
                kind: "period.raised",
                subject: &format!("{}/{}", wish.series, wish.period),
                before: Some(json!({"next": last + 1})),
                after: Some(json!({"next": wish.next, "reason": wish.reason})),
                at: wish.at,
                operation_id: wish.operation_id,
            };
            event::note(&mut tx, principal, &noted).await?;
            tx.reach(Point::AfterWrite).await?;
            Ok(tx.commit().await?)
        })
        .await
    }
}

/// The run, and the counter right before it.
async fn begin_run(tx: &mut Tx<'_>, principal: &Principal, wish: &Raise<'_>, last: i64) -> Result<(), Error> {
    sqlx::query!(
        "insert into run (tenant_id, series, part, period, first, why, principal, at) values ($1, $2, 0, $3, $4, 'raised', $5, $6)
         on conflict (tenant_id, series, part, period, first) do nothing",
        principal.tenant.0,
        wish.series.as_str(),
        wish.period.as_str(),
        wish.next,
        principal.to_string(),
        wish.at.to_sqlx() as _
    )
    .execute(tx.db())
    .await?;
    let moved = sqlx::query!(
        "update counter set last = $5 where tenant_id = $1 and series = $2 and part = 0 and period = $3 and last = $4 and gate <> 'closed'",
        principal.tenant.0,
        wish.series.as_str(),
        wish.period.as_str(),
        last,
        wish.next - 1
    )
    .execute(tx.db())
    .await?;
    if moved.rows_affected() == 1 { Ok(()) } else { Err(Error::Moved) }
}
