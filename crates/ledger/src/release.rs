//! Giving a number back: the last one of its period, that never left the house, in a series that allows it.
//!
//! | # | statement | why there |
//! |---|---|---|
//! | 1 | read series and number | what can't be released is refused without a lock |
//! | 2 | lock the counter | nobody takes the next value meanwhile |
//! | 3 | one write: the number is released, the counter steps back, the history notes it | only if the number is still reserved, in that life, and the last |
//!
//! The row stays: the next order takes it over (`batch/write.rs`), in its next life. Claims that answered with it say in
//! which life, so that a replay finds out. A caller who repeats a release late must not give back what another document
//! has by then, hence the life is part of what is asked.

use domain::{
    life::{Step, Verb},
    principal::Principal,
    refusal::Refusal,
    series::{Chronology, Release, Series},
};
use jiff_sqlx::ToSqlx;
use store::{Authority, Error, Snapshot, Stop, Tx, fault::Point};

use crate::{
    Asked, Ledger, Number, PATIENCE, counter,
    number::Row,
    series,
    step::{missing, other_life, stands, wrong},
};

impl Ledger {
    /// Releases a number. Doing it twice changes nothing the second time.
    ///
    /// [`Refusal::NotReleasable`] where the series does not allow it or the number is not the last one,
    /// [`Refusal::WrongState`] where it is not merely reserved, [`Refusal::OtherLife`] where it was given again.
    #[tracing::instrument(name = "ledger.release", skip_all, fields(shard), err(level = "debug"))]
    pub async fn release(&self, shard: &str, principal: &Principal, asked: &Asked<'_>) -> Result<Number, Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let series = series::read(&mut tx, principal, asked.series).await?.ok_or_else(|| missing(asked))?;
            let number = stands(&mut tx, principal, asked).await?.ok_or_else(|| missing(asked))?;
            if asked.life != number.life {
                return Err(other_life(number).into());
            }
            match Verb::Release.step(number.state) {
                Step::Same => return Ok(number),
                Step::IfLast(_) => {}
                _ => return Err(wrong(number, Verb::Release).into()),
            }
            let no = |why: String| Refusal::NotReleasable { number: number.number.clone(), state: number.state, why };
            if series.settings.release == Release::Never {
                return Err(no("this series does not allow it (release: never); void it instead".to_owned()).into());
            }
            let locked = counter::lock(&mut tx, principal, asked.series, &number.period).await?;
            let last = locked.ok_or_else(|| Error::corrupt("a number without its counter"))?.seen.counter.last;
            if last != number.value {
                let why = format!(
                    "only the last number of a period can be, and period {} is at {last}; void it instead",
                    number.period
                );
                return Err(no(why).into());
            }
            tx.reach(Point::AfterLock).await?;
            let released = give_back(&mut tx, principal, asked, &series, &number).await?.ok_or(Error::Moved)?;
            tx.reach(Point::AfterWrite).await?;
            tx.commit().await?;
            Ok(released)
        })
        .await
    }
}

/// Number, counter and history move together or not at all. In a strict series the latest date is that of the number
/// before, since it may not stay at one that nobody has; or the one that the period had when the series became strict.
async fn give_back(
    tx: &mut Tx<'_>,
    principal: &Principal,
    asked: &Asked<'_>,
    series: &Series,
    number: &Number,
) -> Result<Option<Number>, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"with gone as (
             update number set state = 'released', document_ref = null, metadata = null, due = null
              where tenant_id = $1 and series = $2 and part = $3 and period = $4 and value = $5 and life = $6 and state = 'reserved'
             returning value, number, period, part, state, document_ref, document_date, at, issued_at, life
           ), back as (
             update counter set last = $5 - 1, last_date = case when $7 then greatest(floor_date,
                 (select document_date from number where tenant_id = $1 and series = $2 and part = $3 and period = $4 and value < $5
                     and document_date is not null order by value desc limit 1)) else last_date end
              where tenant_id = $1 and series = $2 and part = $3 and period = $4 and last = $5 and exists (select from gone)
             returning 1
           ), noted as (
             insert into history (tenant_id, series, part, period, value, at, "from", "to", principal, operation_id, reason, trace_id)
             select $1, $2, part, period, value, $8, 'reserved', state, $9, $10, $11, $12 from gone, back
           )
           select value as "value!", number, period as "period!", part as "part!", state as "state!", document_ref, document_date,
                  at as "at!", issued_at, life as "life!" from gone, back"#,
        principal.tenant.0,
        asked.series.as_str(),
        number.part,
        number.period.as_str(),
        number.value,
        number.life,
        series.settings.chronology == Chronology::Strict,
        asked.at.to_sqlx() as _,
        principal.to_string(),
        asked.operation_id.as_str(),
        asked.reason,
        asked.trace_id
    )
    .fetch_optional(tx.db())
    .await?;
    row.map(Number::try_from).transpose()
}
