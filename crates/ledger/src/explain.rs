//! "Where did 1454 go?": one text, what became of it, or why it was never used.

use domain::{id::SeriesName, period::Period, principal::Principal, state::State};
use jiff::Timestamp;
use jiff_sqlx::Timestamp as SqlTimestamp;
use serde_json::Value;
use store::{Authority, Error, Snapshot, Stop, Tx};

use crate::{Ledger, Number, READING, counter, number::Row, series};

/// What there is to say about a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Explained {
    /// It stands on a document.
    Used {
        /// The number as it is now.
        number: Box<Number>,
        /// What the caller wanted kept with it.
        metadata: Option<Value>,
        /// Everything that happened to it, oldest first.
        history: Vec<Entry>,
    },
    /// The series could make it and has not.
    Unused(Unused),
}

/// A value that was never used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// The integer.
    pub value: i64,
    /// The period it would belong to.
    pub period: Period,
    /// Why it was not used.
    pub why: String,
}

/// One step in the life of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// From which state; none for the first entry.
    pub from: Option<String>,
    /// To which.
    pub to: String,
    /// Who.
    pub principal: String,
    /// By which call.
    pub operation_id: String,
    /// Why, where a reason was given.
    pub reason: Option<String>,
}

impl Ledger {
    /// Explains a text of this series; none if the series is not here or can't make such a text.
    #[tracing::instrument(name = "ledger.explain", skip_all, fields(shard), err(level = "debug"))]
    pub async fn explain(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
        text: &str,
    ) -> Result<Option<Explained>, Stop> {
        store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::OneMoment).await?;
            let explained = match used(&mut tx, principal, name, text).await? {
                Some(used) => Some(used),
                None => unused(&mut tx, principal, name, text).await?,
            };
            tx.end().await?;
            Ok(explained)
        })
        .await
    }
}

async fn used(tx: &mut Tx<'_>, principal: &Principal, name: &SeriesName, text: &str) -> Result<Option<Explained>, Error> {
    let row = sqlx::query!(
        "select value, number, period, part, state, document_ref, document_date, metadata, at, issued_at, principal, operation_id
           from number where tenant_id = $1 and series = $2 and number = $3",
        principal.tenant.0,
        name.as_str(),
        text
    )
    .fetch_optional(tx.db())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let steps = sqlx::query!(
        r#"select at, "from", "to", principal, operation_id, reason from history
            where tenant_id = $1 and series = $2 and part = $3 and period = $4 and value = $5 order by entry"#,
        principal.tenant.0,
        name.as_str(),
        row.part,
        row.period,
        row.value
    )
    .fetch_all(tx.db())
    .await?;
    // The row is its own first entry: it began in the state that the first later step left.
    let mut history = vec![Entry {
        at: row.at.to_jiff(),
        from: None,
        to: steps.first().map_or(&row.state, |step| &step.from).clone(),
        principal: row.principal,
        operation_id: row.operation_id,
        reason: None,
    }];
    history.extend(steps.into_iter().map(|step| Entry {
        at: SqlTimestamp::to_jiff(step.at),
        from: Some(step.from),
        to: step.to,
        principal: step.principal,
        operation_id: step.operation_id,
        reason: step.reason,
    }));
    let number = Number::try_from(Row {
        value: row.value,
        number: row.number,
        period: row.period,
        part: row.part,
        state: row.state,
        document_ref: row.document_ref,
        document_date: row.document_date,
        at: row.at,
        issued_at: row.issued_at,
    })?;
    Ok(Some(Explained::Used { number: Box::new(number), metadata: row.metadata, history }))
}

async fn unused(tx: &mut Tx<'_>, principal: &Principal, name: &SeriesName, text: &str) -> Result<Option<Explained>, Error> {
    let Some(series) = series::read(tx, principal, name).await? else { return Ok(None) };
    let settings = &series.settings;
    let Some(reading) = settings.pattern.read(text, settings.reset, settings.overflow) else { return Ok(None) };
    let (value, period) = (reading.value, reading.period);
    let why = match counter::look(tx, principal, name, &period).await? {
        None => format!("no number of period {period} has been issued yet"),
        Some(counter) if value > counter.last => match known_last(counter.last, settings.first) {
            Some(last) => format!("not reached yet: the last value of period {period} is {last}"),
            None => format!("not reached yet: no number of period {period} has been issued"),
        },
        Some(_) if value < settings.first => format!("before the start: period {period} begins with value {}", settings.first),
        // Below the counter and no row: the audit will say the same, as a gap or as a jump between runs.
        Some(counter) => match value_exists(tx, principal, name, &period, value).await? {
            Some(State::Missing) => "missing in the history that was imported".to_owned(),
            Some(_) => format!("value {value} of period {period} was issued under another text"),
            None => format!("below the counter, which stands at {}, but never issued: see the audit's runs", counter.last),
        },
    };
    Ok(Some(Explained::Unused(Unused { value, period, why })))
}

fn known_last(last: i64, first: i64) -> Option<i64> {
    (last >= first).then_some(last)
}

async fn value_exists(
    tx: &mut Tx<'_>,
    principal: &Principal,
    name: &SeriesName,
    period: &Period,
    value: i64,
) -> Result<Option<State>, Error> {
    let state = sqlx::query_scalar!(
        "select state from number where tenant_id = $1 and series = $2 and part = 0 and period = $3 and value = $4",
        principal.tenant.0,
        name.as_str(),
        period.as_str(),
        value
    )
    .fetch_optional(tx.db())
    .await?;
    state.map(|word| State::from_word(&word).ok_or_else(|| Error::corrupt("a number's state"))).transpose()
}
