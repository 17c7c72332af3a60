//! The one write: counter, claims and numbers in one statement.

use domain::refusal::Refusal;
use jiff::{Timestamp, civil::Date};
use jiff_sqlx::ToSqlx;
use serde_json::{Value, json};
use store::{Error, Tx};

use super::{Batch, Kind, Trouble};
use crate::{
    Number, Operation, Order,
    counter::{Place, Seen},
    plan::{Deed, Fate, Planned},
};

/// What was written.
pub(super) enum Wrote {
    Nothing,
    /// Only keys, whose documents all had numbers.
    Claims,
    /// The counter moved.
    Moved(Moved),
}

/// A counter's step.
pub(super) struct Moved {
    /// Where its row is now.
    pub(super) place: Place,
    /// Its last value now.
    pub(super) last: i64,
    /// The latest date of those that it moved for.
    pub(super) last_date: Option<Date>,
    /// The shard's clock.
    pub(super) shard_time: Timestamp,
}

/// Statement 5, if there is anything to write.
pub(super) async fn write(
    tx: &mut Tx<'_>,
    batch: &Batch<'_>,
    fates: &[Fate],
    at: Option<(&Place, &Seen)>,
) -> Result<Wrote, Trouble> {
    let mut claims = Claims::default();
    let (mut numbers, mut again, mut confirmed) = (Vec::new(), Vec::new(), Vec::new());
    let mut orders: Vec<_> = batch.orders.iter().zip(fates).collect();
    orders.sort_by_key(|((_, order), _)| order.key.as_str());
    for ((principal, order), fate) in orders {
        let Fate::Numbered(planned) = fate else { continue };
        claims.push(order, planned).map_err(Trouble::new(Kind::OneOfThem))?;
        let by = principal.to_string();
        confirmed.extend(planned.iter().filter(|it| it.deed == Deed::Confirm).map(|it| (&it.number, by.clone(), *order)));
        for (planned, member) in planned.iter().zip(&order.members).filter(|(planned, _)| planned.is_new()) {
            let taken = if planned.is_again() { &mut again } else { &mut numbers };
            taken.push((&planned.number, member.metadata.as_ref(), by.clone(), *order));
        }
    }
    if numbers.is_empty() && again.is_empty() {
        if claims.keys.is_empty() {
            return Ok(Wrote::Nothing);
        }
        claims.write_alone(tx, batch).await.map_err(Trouble::new(Kind::OneOfThem))?;
        confirm(tx, batch, confirmed).await?;
        return Ok(Wrote::Claims);
    }
    let (place, seen) = at.ok_or_else(|| Trouble::new(Kind::Moved)(Error::Moved))?;
    // Bytes, so the same order in every gateway whatever the locale.
    numbers.sort_by(|a, b| (&a.0.document_ref, a.0.value).cmp(&(&b.0.document_ref, b.0.value)));
    again.sort_by_key(|(number, ..)| number.value);
    let due = |order: &Order| batch.series.settings.due(order.at).filter(|_| order.operation == Operation::Reserve);
    let [columns, columns_again] = [&numbers, &again].map(|numbers| {
        let mut columns = Columns::default();
        for (number, metadata, by, order) in numbers {
            columns.push(number, *metadata, by, order, due(order));
        }
        columns
    });
    let last = columns.values.iter().chain(&columns_again.values).max().copied().unwrap_or(seen.counter.last);
    let dates = columns.dates.iter().chain(&columns_again.dates).map(|date| date.to_jiff());
    let wrote = async {
        let moved = write_numbers(tx, batch, (place, seen), &claims, &columns, (last, dates.max())).await?;
        take_over(tx, batch, &columns_again).await?;
        Ok(moved)
    };
    let moved = wrote.await.map_err(|error| match error {
        // Unlocked, it is mostly the counter's row that was waited for.
        Error::Busy(_) if !batch.lock => Trouble::new(Kind::Moved)(error),
        // Nobody looked whether a key or a document is there already, and one is, or something else is in the way.
        Error::Conflict { .. } | Error::Failed(_) if batch.straight => Trouble::new(Kind::Unlooked)(error),
        // A text that stands on a document already is a business no, once it is known whose it would be: alone.
        Error::Conflict { .. } if error.is_conflict("number_text") => {
            let text = numbers.iter().chain(&again).next().map(|(number, ..)| number.number.clone()).unwrap_or_default();
            Trouble { kind: Kind::OneOfThem, stop: Refusal::NumberExists(text).into() }
        }
        Error::Moved => Trouble::new(Kind::Moved)(error),
        error => Trouble::new(Kind::OneOfThem)(error),
    })?;
    confirm(tx, batch, confirmed).await?;
    Ok(Wrote::Moved(moved))
}

/// What was reserved for a document is confirmed, in the order of the values; if it is still as it was seen.
async fn confirm(tx: &mut Tx<'_>, batch: &Batch<'_>, mut confirmed: Vec<(&Number, String, &Order)>) -> Result<(), Trouble> {
    if confirmed.is_empty() {
        return Ok(());
    }
    let (principal, _) = batch.orders[0];
    confirmed.sort_by_key(|(number, ..)| (&number.period, number.part, number.value));
    let wanted = confirmed.len();
    let (mut periods, mut parts, mut values, mut at) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut principals, mut operations, mut traces, mut lives) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, by, order) in &confirmed {
        lives.push(number.life);
        periods.push(number.period.as_str());
        parts.push(number.part);
        values.push(number.value);
        at.push(order.at.to_sqlx());
        principals.push(by.as_str());
        operations.push(order.operation_id.as_str());
        traces.push(order.trace_id.as_deref());
    }
    let done = sqlx::query_scalar!(
        r#"with asked as (
             select * from unnest($3::text[], $4::smallint[], $5::bigint[], $6::timestamptz[], $7::text[], $8::text[], $9::text[],
                                  $10::integer[])
               a (period, part, value, at, principal, operation_id, trace_id, life)
           ), old as (
             select a.*, n.state from asked a
              cross join lateral (select state from number where tenant_id = $1 and series = $2 and part = a.part
                and period = a.period and value = a.value and life = a.life for no key update) n
           ), moved as (
             update number n set state = 'issued', issued_at = old.at from old
              where n.tenant_id = $1 and n.series = $2 and n.part = old.part and n.period = old.period and n.value = old.value
                and old.state in ('reserved', 'failed')
             returning n.part, n.period, n.value, old.at, old.state, old.principal, old.operation_id, old.trace_id
           ), noted as (
             insert into history (tenant_id, series, part, period, value, at, "from", "to", principal, operation_id, trace_id)
             select $1, $2, part, period, value, at, state, 'issued', principal, operation_id, trace_id from moved
           )
           select count(*) as "count!" from moved"#,
        principal.tenant.0,
        batch.series.name.as_str(),
        &periods as _,
        &parts,
        &values,
        &at as _,
        &principals as _,
        &operations as _,
        &traces as _,
        &lives
    )
    .fetch_one(tx.db())
    .await;
    let done = done.map_err(Error::from).map_err(Trouble::new(Kind::OneOfThem))?;
    if usize::try_from(done) == Ok(wanted) { Ok(()) } else { Err(Trouble::new(Kind::Unlooked)(Error::Moved)) }
}

/// The counter moves only if it is where it was seen; claims and numbers are written only if it moved.
async fn write_numbers(
    tx: &mut Tx<'_>,
    batch: &Batch<'_>,
    (place, seen): (&Place, &Seen),
    claims: &Claims<'_>,
    columns: &Columns<'_>,
    (last, last_date): (i64, Option<Date>),
) -> Result<Moved, Error> {
    let (principal, _) = batch.orders[0];
    let written = sqlx::query!(
        r#"with moved as (
             update counter set last = $6, last_date = greatest(last_date, $7)
              where ctid = $9::text::tid and tenant_id = $1 and series = $2 and part = 0 and period = $3
                and last = $4 and config_version = $5 and epoch = $8 and gate = 'open'
             returning ctid::text as place
           ), claimed as (
             insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, answer, at)
             select $1, $2, c.key, c.fingerprint, c.operation, c.part, c.period, c.first, c.count, c.answer, c.at
               from moved, unnest($10::text[], $11::bytea[], $12::smallint[], $13::text[], $14::bigint[], $15::integer[],
                                  $16::jsonb[], $17::timestamptz[], $28::text[])
                             c (key, fingerprint, part, period, first, count, answer, at, operation)
             returning 1
           ), written as (
             insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                                 metadata, config_version, at, principal, operation_id, trace_id, due)
             select $1, $2, 0, $3, n.value, case when n.value <> $18 then n.value - 1 end, n.number, n.state, n.document_ref,
                    n.document_date, n.metadata, $5, n.at, n.principal, n.operation_id, n.trace_id, n.due
               from moved, unnest($19::bigint[], $20::text[], $21::text[], $22::date[], $23::jsonb[], $24::timestamptz[],
                                  $25::text[], $26::text[], $27::text[], $29::text[], $30::timestamptz[])
                             n (value, number, document_ref, document_date, metadata, at, principal, operation_id, trace_id, state, due)
             returning 1
           )
           select (select place from moved) as place, clock_timestamp() as "now!", (select count(*) from claimed) as "claimed!",
                  (select count(*) from written) as "written!""#,
        principal.tenant.0,
        batch.series.name.as_str(),
        batch.period.as_str(),
        seen.counter.last,
        seen.config_version,
        last,
        last_date.map(ToSqlx::to_sqlx) as _,
        seen.epoch,
        place.0,
        &claims.keys as _,
        &claims.fingerprints as _,
        &claims.parts,
        &claims.periods as _,
        &claims.firsts as _,
        &claims.counts,
        &claims.answers as _,
        &claims.at as _,
        seen.run_first,
        &columns.values,
        &columns.numbers as _,
        &columns.references as _,
        &columns.dates as _,
        &columns.metadata as _,
        &columns.at as _,
        &columns.principals as _,
        &columns.operations as _,
        &columns.traces as _,
        &claims.operations as _,
        &columns.states as _,
        &columns.due as _
    )
    .fetch_one(tx.db())
    .await?;
    let Some(place) = written.place else { return Err(Error::Moved) };
    let count = |rows: i64, wanted: usize| usize::try_from(rows) == Ok(wanted);
    if !count(written.claimed, claims.keys.len()) || !count(written.written, columns.values.len()) {
        let what = format!("{} numbers decided, {} written", columns.values.len(), written.written);
        return Err(Error::corrupt(what));
    }
    Ok(Moved { place: Place(place), last, last_date, shard_time: written.now.to_jiff() })
}

/// Released values, whose rows are there, are given again: each if it is in the life that was seen. That it was taken
/// again is noted, since the row itself is the first entry of its first life.
async fn take_over(tx: &mut Tx<'_>, batch: &Batch<'_>, columns: &Columns<'_>) -> Result<(), Error> {
    if columns.values.is_empty() {
        return Ok(());
    }
    let (principal, _) = batch.orders[0];
    let taken = sqlx::query_scalar!(
        r#"with asked as (
             select * from unnest($5::bigint[], $6::integer[], $7::text[], $8::text[], $9::date[], $10::jsonb[], $11::timestamptz[],
                                  $12::text[], $13::text[], $14::text[], $15::text[], $16::timestamptz[])
               a (value, life, number, document_ref, document_date, metadata, at, principal, operation_id, trace_id, state, due)
           ), taken as (
             update number n
                set state = a.state, number = a.number, document_ref = a.document_ref, document_date = a.document_date,
                    metadata = a.metadata, config_version = $4, life = a.life, due = a.due,
                    issued_at = case when a.state = 'issued' then a.at end
               from asked a
              where n.tenant_id = $1 and n.series = $2 and n.part = 0 and n.period = $3 and n.value = a.value
                and n.state = 'released' and n.life = a.life - 1
             returning a.*
           ), noted as (
             insert into history (tenant_id, series, part, period, value, at, "from", "to", principal, operation_id, trace_id)
             select $1, $2, 0, $3, value, at, 'released', state, principal, operation_id, trace_id from taken
           )
           select count(*) as "count!" from taken"#,
        principal.tenant.0,
        batch.series.name.as_str(),
        batch.period.as_str(),
        batch.series.version,
        &columns.values,
        &columns.lives,
        &columns.numbers as _,
        &columns.references as _,
        &columns.dates as _,
        &columns.metadata as _,
        &columns.at as _,
        &columns.principals as _,
        &columns.operations as _,
        &columns.traces as _,
        &columns.states as _,
        &columns.due as _
    )
    .fetch_one(tx.db())
    .await?;
    if usize::try_from(taken) == Ok(columns.values.len()) { Ok(()) } else { Err(Error::Moved) }
}

/// The columns of the claims to be written, in the order of their keys.
#[derive(Default)]
struct Claims<'a> {
    keys: Vec<&'a str>,
    fingerprints: Vec<&'a [u8]>,
    parts: Vec<i16>,
    periods: Vec<&'a str>,
    firsts: Vec<Option<i64>>,
    counts: Vec<i32>,
    answers: Vec<Option<Value>>,
    at: Vec<jiff_sqlx::Timestamp>,
    operations: Vec<&'a str>,
}

impl<'a> Claims<'a> {
    fn push(&mut self, order: &'a Order, planned: &'a [Planned]) -> Result<(), Error> {
        let mut new = planned.iter().filter(|planned| planned.is_new()).map(|planned| &planned.number);
        let first = new.clone().next();
        let head = first.or_else(|| Some(&planned.first()?.number)).ok_or_else(|| Error::corrupt("an order of no documents"))?;
        let some_known = planned.iter().any(|planned| !planned.is_new());
        let another_life = planned.iter().any(|planned| planned.number.life > 1);
        let shown = |it: &'a Planned| {
            (it.number.period.as_str(), it.number.part, it.number.value, it.number.state.word(), it.number.life)
        };
        self.keys.push(order.key.as_str());
        self.fingerprints.push(&order.fingerprint);
        self.parts.push(head.part);
        self.periods.push(head.period.as_str());
        self.firsts.push(first.map(|number| number.value));
        self.counts.push(i32::try_from(new.by_ref().count()).unwrap_or(i32::MAX));
        self.answers.push((some_known || another_life).then(|| json!(planned.iter().map(shown).collect::<Vec<_>>())));
        self.at.push(order.at.to_sqlx());
        self.operations.push(order.operation.word());
        Ok(())
    }

    /// The keys alone: they took nothing, they point at what was there.
    async fn write_alone(&self, tx: &mut Tx<'_>, batch: &Batch<'_>) -> Result<(), Error> {
        let (principal, _) = batch.orders[0];
        sqlx::query!(
            "insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, answer, at)
             select $1, $2, c.key, c.fingerprint, c.operation, c.part, c.period, null, 0, c.answer, c.at
               from unnest($3::text[], $4::bytea[], $5::smallint[], $6::text[], $7::jsonb[], $8::timestamptz[], $9::text[])
                      c (key, fingerprint, part, period, answer, at, operation)",
            principal.tenant.0,
            batch.series.name.as_str(),
            &self.keys as _,
            &self.fingerprints as _,
            &self.parts,
            &self.periods as _,
            &self.answers as _,
            &self.at as _,
            &self.operations as _
        )
        .execute(tx.db())
        .await?;
        Ok(())
    }
}

/// The columns of the numbers to be written, in the order of their documents.
#[derive(Default)]
struct Columns<'a> {
    values: Vec<i64>,
    numbers: Vec<&'a str>,
    references: Vec<Option<&'a str>>,
    dates: Vec<jiff_sqlx::Date>,
    metadata: Vec<Option<&'a Value>>,
    at: Vec<jiff_sqlx::Timestamp>,
    principals: Vec<&'a str>,
    operations: Vec<&'a str>,
    traces: Vec<Option<&'a str>>,
    states: Vec<&'a str>,
    due: Vec<Option<jiff_sqlx::Timestamp>>,
    lives: Vec<i32>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, number: &'a Number, metadata: Option<&'a Value>, by: &'a str, order: &'a Order, due: Option<Timestamp>) {
        self.values.push(number.value);
        self.numbers.push(number.number.as_str());
        self.references.push(number.document_ref.as_deref());
        self.dates.push(number.document_date.to_sqlx());
        self.metadata.push(metadata);
        self.at.push(number.at.to_sqlx());
        self.principals.push(by);
        self.operations.push(order.operation_id.as_str());
        self.traces.push(order.trace_id.as_deref());
        self.states.push(number.state.word());
        self.due.push(due.map(ToSqlx::to_sqlx));
        self.lives.push(number.life);
    }
}
