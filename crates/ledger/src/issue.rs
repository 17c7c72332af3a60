//! Issuing numbers: the one transaction that everything else is built around.
//!
//! | # | statement | why there |
//! |---|---|---|
//! | 1 | BEGIN and the tenant | one round trip; no statement runs without a tenant |
//! | 2 | read series, the key's claim, the references' numbers | a known replay, or documents that all have numbers, are answered here and lock nothing |
//! | 3 | lock the counter's row (make it where the period has none) | from here on nobody else moves this counter, and no key of it is in flight |
//! | 4 | read the claim and the references again, and the run | a younger snapshot than the lock: whoever held it before is visible now |
//! | 5 | in Rust: gate, range, width; render | a refusal ends here: nothing was written, so nothing was used |
//! | 6 | one write: counter, claim, numbers | conditional on what was read (`last`, version, epoch); its row counts are checked |
//! | 7 | COMMIT | the first moment at which the numbers exist for anybody |
//!
//! What can't be excluded by this counter's lock is caught by unique indexes: the same key or reference under
//! another period's counter makes statement 6 fail; the transaction is run again and then finds it in 2.
//! A connection lost during 7 leaves the outcome unknown; running it again with the same key finds out.

use std::collections::HashMap;

use domain::{
    id::{DocumentRef, IdempotencyKey, OperationId, SeriesName},
    next::{Counter, Next, next},
    period::Period,
    principal::Principal,
    refusal::Refusal,
    series::{FieldError, Series},
    state::State,
};
use jiff::{Timestamp, civil::Date};
use jiff_sqlx::ToSqlx;
use serde_json::{Value, json};
use store::{Authority, Error, Snapshot, Stop, Tx, fault::Point};

use crate::{
    Ledger, Number, PATIENCE, claim,
    counter::{self, CurrentRun, Locked},
    number, series,
};

/// A document that wants a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// The caller's reference; a document has one number however often it asks.
    pub document_ref: Option<DocumentRef>,
    /// Its date; none is today in the series' zone.
    pub document_date: Option<Date>,
    /// What the caller wants kept with the number; a JSON object.
    pub metadata: Option<Value>,
}

/// A request for numbers.
#[derive(Clone, Debug)]
pub struct Order {
    /// In which series.
    pub series: SeriesName,
    /// Whoever repeats this key gets the same numbers.
    pub key: IdempotencyKey,
    /// What was meant by it.
    pub fingerprint: [u8; 32],
    /// The documents, 1 to 1,000. All get their numbers, or none does.
    pub members: Vec<Member>,
    /// The request's one instant: it decides dates and periods, and is what the numbers carry.
    pub at: Timestamp,
    /// Names the call in the history.
    pub operation_id: OperationId,
    /// The caller's W3C trace id, if it sent one.
    pub trace_id: Option<String>,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The numbers, in the order of the members.
    pub numbers: Vec<Number>,
    /// Whether this key took a number that did not exist before it.
    pub fresh: bool,
    /// Whether an earlier call with this key did it.
    pub replayed: bool,
}

impl Ledger {
    /// Issues numbers, once per idempotency key and once per document.
    ///
    /// [`Refusal::NotFound`] where the series is not on this shard.
    #[tracing::instrument(name = "ledger.issue", skip_all, fields(shard), err(level = "debug"))]
    pub async fn issue(&self, shard: &str, principal: &Principal, order: &Order) -> Result<Answer, Stop> {
        store::repeat(PATIENCE, || self.issue_once(shard, principal, order)).await
    }

    async fn issue_once(&self, shard: &str, principal: &Principal, order: &Order) -> Result<Answer, Stop> {
        let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
        let decided = self.decide(&mut tx, principal, order).await;
        match decided {
            Ok(answer) if answer.replayed => {
                // Only read so far: how this ends changes nothing.
                let _ = tx.end().await;
                Ok(answer)
            }
            Ok(answer) => {
                tx.reach(Point::AfterWrite).await?;
                tx.commit().await?;
                Ok(answer)
            }
            Err(stop) => {
                let _ = tx.end().await;
                Err(stop)
            }
        }
    }

    async fn decide(&self, tx: &mut Tx, principal: &Principal, order: &Order) -> Result<Answer, Stop> {
        let not_found = || Refusal::NotFound(format!("series {}", order.series));
        let series = series::read(tx, principal, &order.series).await?.ok_or_else(not_found)?;
        tx.reach(Point::BeforeClaim).await?;
        if let Some(claim) = claim::find(tx, principal, &order.series, &order.key).await? {
            return claim.replay(tx, principal, order).await;
        }
        let mut plan = Plan::make(tx, principal, order, &series).await?;
        let Some(period) = plan.period.clone() else {
            // Every document has its number already: only the key is new.
            return write(tx, principal, order, &plan, None).await;
        };
        let asked = self.clock.instant();
        let locked = counter::lock(tx, principal, &order.series, &period, order.at).await?;
        tx.reach(Point::AfterLock).await?;
        self.agree(asked, locked.shard_time)?;
        if locked.config_version != series.version {
            return Err(Error::Moved.into());
        }
        if let Some(claim) = claim::find(tx, principal, &order.series, &order.key).await? {
            return claim.replay(tx, principal, order).await;
        }
        plan = Plan::make(tx, principal, order, &series).await?;
        if plan.period.is_none() {
            // Whoever held the counter before numbered the last of these documents.
            return write(tx, principal, order, &plan, None).await;
        }
        let run = counter::current_run(tx, principal, &order.series, &period, locked.last).await?;
        let counter = Counter { period, last: locked.last, gate: locked.gate, limit: run.limit };
        let dates: Vec<Date> = plan.new_members().map(|(_, date)| date).collect();
        let numbers = next(&series.settings, series.status, &counter, &dates)?;
        write(tx, principal, order, &plan, Some(&Taking { locked, run, counter, numbers })).await
    }
}

/// Which members have a number already, and in which period the others are to get one.
struct Plan {
    /// In the order of the members: their number, or the date of the number they are to get.
    members: Vec<Result<Number, Date>>,
    /// The period of the new ones; none if there are none.
    period: Option<Period>,
}

impl Plan {
    async fn make(tx: &mut Tx, principal: &Principal, order: &Order, series: &Series) -> Result<Self, Stop> {
        let references: Vec<String> =
            order.members.iter().filter_map(|member| member.document_ref.as_ref()).map(ToString::to_string).collect();
        let known = number::known(tx, principal, &order.series, &references).await?;
        let mut known: HashMap<String, Number> =
            known.into_iter().filter_map(|number| Some((number.document_ref.clone()?, number))).collect();
        let today = series.settings.today(order.at);
        let mut plan = Self { members: Vec::with_capacity(order.members.len()), period: None };
        for (place, member) in order.members.iter().enumerate() {
            let reference = member.document_ref.as_ref().map(DocumentRef::as_str);
            if let Some(number) = reference.and_then(|reference| known.remove(reference)) {
                plan.members.push(Ok(same_document(member, number)?));
                continue;
            }
            let date = member.document_date.unwrap_or(today);
            if let Err(detail) = series.settings.check_date(date) {
                let pointer =
                    if order.members.len() == 1 { "/document_date".to_owned() } else { format!("/items/{place}/document_date") };
                return Err(Refusal::Invalid(vec![FieldError::new(pointer, detail)]).into());
            }
            let period = series.settings.period(date);
            if let Some(other) = plan.period.as_ref().filter(|other| **other != period) {
                let detail =
                    format!("falls into period {period}, an earlier item into {other}; send one request for each period");
                return Err(Refusal::Invalid(vec![FieldError::new(format!("/items/{place}/document_date"), detail)]).into());
            }
            plan.period = Some(period);
            plan.members.push(Err(date));
        }
        Ok(plan)
    }

    /// The members that are to get a number, with their place in the order.
    fn new_members(&self) -> impl Iterator<Item = (usize, Date)> {
        self.members.iter().enumerate().filter_map(|(place, member)| Some((place, *member.as_ref().err()?)))
    }
}

/// A document that asks again gets its number, unless it has become another document.
fn same_document(member: &Member, number: Number) -> Result<Number, Refusal> {
    let reference = number.document_ref.clone().unwrap_or_default();
    if number.state == State::Voided {
        return Err(Refusal::DocumentVoided { reference, number: number.number });
    }
    if member.document_date.is_some_and(|date| date != number.document_date) {
        return Err(Refusal::DocumentConflict { reference, number: number.number, date: number.document_date });
    }
    Ok(number)
}

/// New numbers, decided under the counter's lock and not yet written.
struct Taking {
    locked: Locked,
    run: CurrentRun,
    counter: Counter,
    numbers: Vec<Next>,
}

/// Statement 6, and the answer it makes true.
async fn write(tx: &mut Tx, principal: &Principal, order: &Order, plan: &Plan, taking: Option<&Taking>) -> Result<Answer, Stop> {
    let mut fresh = taking.map(|taking| taking.numbers.iter()).into_iter().flatten();
    let period = taking.map(|taking| taking.counter.period.clone());
    let numbers: Vec<Number> = plan
        .members
        .iter()
        .zip(&order.members)
        .map(|(planned, member)| match (planned, &period) {
            (Ok(known), _) => Ok(known.clone()),
            (Err(date), Some(period)) => {
                let next = fresh.next().ok_or_else(|| Error::corrupt("fewer numbers than documents"))?;
                Ok(Number {
                    value: next.value,
                    number: next.number.clone(),
                    period: period.clone(),
                    part: 0,
                    state: State::Issued,
                    document_ref: member.document_ref.as_ref().map(ToString::to_string),
                    document_date: *date,
                    at: order.at,
                })
            }
            (Err(_), None) => Err(Error::corrupt("a document without a period")),
        })
        .collect::<Result<_, Error>>()?;
    let some_known = plan.members.iter().any(Result::is_ok);
    let answer = some_known.then(|| json!(numbers.iter().map(|n| (n.period.as_str(), n.part, n.value)).collect::<Vec<_>>()));
    match taking {
        Some(taking) => write_taking(tx, principal, order, plan, taking, answer).await?,
        None => write_claim(tx, principal, order, &numbers, answer).await?,
    }
    Ok(Answer { numbers, fresh: taking.is_some(), replayed: false })
}

/// The key alone: it took nothing, it points at what was there.
async fn write_claim(
    tx: &mut Tx,
    principal: &Principal,
    order: &Order,
    numbers: &[Number],
    answer: Option<Value>,
) -> Result<(), Error> {
    let head = numbers.first().ok_or_else(|| Error::corrupt("an order of no documents"))?;
    sqlx::query!(
        "insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, answer, at)
         values ($1, $2, $3, $4, 'issue', $5, $6, null, 0, $7, $8)",
        principal.tenant.0,
        order.series.as_str(),
        order.key.as_str(),
        &order.fingerprint,
        head.part,
        head.period.as_str(),
        answer,
        order.at.to_sqlx() as _
    )
    .execute(tx.db())
    .await?;
    Ok(())
}

/// Counter, claim and numbers in one statement. The counter moves only if it is where it was read; claim and
/// numbers are written only if it moved. References go in sorted, so that two orders can't deadlock on them.
async fn write_taking(
    tx: &mut Tx,
    principal: &Principal,
    order: &Order,
    plan: &Plan,
    taking: &Taking,
    answer: Option<Value>,
) -> Result<(), Stop> {
    let count = taking.numbers.len();
    let last = taking.locked.last + i64::try_from(count).map_err(|_| Error::corrupt("too many documents"))?;
    let mut rows = Columns::default();
    for ((place, date), next) in plan.new_members().zip(&taking.numbers) {
        let member = &order.members[place];
        rows.values.push(next.value);
        rows.numbers.push(next.number.clone());
        rows.references.push(member.document_ref.as_ref().map(ToString::to_string));
        rows.dates.push(date.to_sqlx());
        rows.metadata.push(member.metadata.clone());
    }
    let latest = plan.new_members().map(|(_, date)| date).max();
    let written = sqlx::query!(
        r#"with moved as (
             update counter set last = $6, last_date = greatest(last_date, $7)
              where tenant_id = $1 and series = $2 and part = 0 and period = $3
                and last = $4 and config_version = $5 and epoch = $8 and gate = 'open'
             returning 1
           ), claimed as (
             insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, answer, at)
             select $1, $2, $9, $10, 'issue', 0, $3, $4 + 1, $11, $12, $13 from moved
             returning 1
           ), written as (
             insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                                 metadata, config_version, at, principal, operation_id, trace_id)
             select $1, $2, 0, $3, n.value, case when n.value <> $14 then n.value - 1 end, n.number, 'issued', n.document_ref,
                    n.document_date, n.metadata, $5, $13, $15, $16, $17
               from moved, unnest($18::bigint[], $19::text[], $20::text[], $21::date[], $22::jsonb[])
                             n (value, number, document_ref, document_date, metadata)
              order by n.document_ref, n.value
             returning 1
           )
           select (select count(*) from moved) as "moved!", (select count(*) from claimed) as "claimed!",
                  (select count(*) from written) as "written!""#,
        principal.tenant.0,
        order.series.as_str(),
        taking.counter.period.as_str(),
        taking.locked.last,
        taking.locked.config_version,
        last,
        latest.map(ToSqlx::to_sqlx) as _,
        taking.locked.epoch,
        order.key.as_str(),
        &order.fingerprint,
        i32::try_from(count).unwrap_or(i32::MAX),
        answer,
        order.at.to_sqlx() as _,
        taking.run.first,
        principal.to_string(),
        order.operation_id.as_str(),
        order.trace_id,
        &rows.values,
        &rows.numbers,
        &rows.references as _,
        &rows.dates as _,
        &rows.metadata as _
    )
    .fetch_one(tx.db())
    .await
    .map_err(Error::from);
    let written = match written {
        Err(error) if error.is_conflict("number_text") => {
            let text = taking.numbers.first().map(|next| next.number.clone()).unwrap_or_default();
            return Err(Refusal::NumberExists(text).into());
        }
        other => other?,
    };
    if written.moved != 1 {
        return Err(Error::Moved.into());
    }
    if written.claimed != 1 || usize::try_from(written.written) != Ok(count) {
        return Err(Error::corrupt(format!("{count} numbers decided, {} written", written.written)).into());
    }
    Ok(())
}

#[derive(Default)]
struct Columns {
    values: Vec<i64>,
    numbers: Vec<String>,
    references: Vec<Option<String>>,
    dates: Vec<jiff_sqlx::Date>,
    metadata: Vec<Option<Value>>,
}
