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
    /// The trace of that call, if it had one.
    pub trace_id: Option<String>,
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

/// One series' answer to a question that all were asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Which series.
    pub series: SeriesName,
    /// What it says.
    pub explained: Explained,
}

/// What is looked for over all series of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sought {
    /// A text, used or not.
    Text(String),
    /// The numbers of a document.
    Document(String),
}

impl Ledger {
    /// What each series of the tenant on this shard says of a text or of a document, in the order of their codes; those
    /// that have nothing to say are left out.
    #[tracing::instrument(name = "ledger.find", skip_all, fields(shard), err(level = "debug"))]
    pub async fn find(&self, shard: &str, principal: &Principal, sought: &Sought) -> Result<Vec<Found>, Stop> {
        store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::OneMoment).await?;
            let mut found = Vec::new();
            match sought {
                Sought::Text(text) => {
                    for name in who_can_make(&mut tx, principal, text).await? {
                        let explained = match used(&mut tx, principal, &name, text).await? {
                            Some(used) => Some(used),
                            None => unused(&mut tx, principal, &name, text).await?,
                        };
                        found.extend(explained.map(|explained| Found { series: name, explained }));
                    }
                }
                Sought::Document(reference) => {
                    for (name, text) in of_document(&mut tx, principal, reference).await? {
                        let explained = used(&mut tx, principal, &name, &text).await?;
                        found.extend(explained.map(|explained| Found { series: name, explained }));
                    }
                }
            }
            tx.end().await?;
            Ok(found)
        })
        .await
    }
}

/// The series that have this text, or whose pattern could make it.
async fn who_can_make(tx: &mut Tx<'_>, principal: &Principal, text: &str) -> Result<Vec<SeriesName>, Error> {
    let have = sqlx::query_scalar!(
        r#"select s.series from series s
            cross join lateral (select from number where tenant_id = $1 and series = s.series and number = $2 offset 0) n
            where s.tenant_id = $1"#,
        principal.tenant.0,
        text
    )
    .fetch_all(tx.db())
    .await?;
    let mut names = Vec::new();
    for series in series::all(tx, principal).await? {
        let settings = &series.settings;
        let makes = || settings.pattern.read(text, settings.reset, settings.overflow).is_some();
        if have.iter().any(|name| name == series.name.as_str()) || makes() {
            names.push(series.name);
        }
    }
    Ok(names)
}

async fn of_document(tx: &mut Tx<'_>, principal: &Principal, reference: &str) -> Result<Vec<(SeriesName, String)>, Error> {
    let rows = sqlx::query!(
        r#"select s.series, n.number as "number!" from series s
            cross join lateral (select number from number
              where tenant_id = $1 and series = s.series and document_ref = $2 offset 0) n
            where s.tenant_id = $1 order by s.series"#,
        principal.tenant.0,
        reference
    )
    .fetch_all(tx.db())
    .await?;
    let name = |raw: &str| SeriesName::parse(raw).map_err(|e| Error::corrupt(e.to_string()));
    rows.into_iter().map(|row| Ok((name(&row.series)?, row.number))).collect()
}

async fn used(tx: &mut Tx<'_>, principal: &Principal, name: &SeriesName, text: &str) -> Result<Option<Explained>, Error> {
    let row = sqlx::query!(
        "select value, number, period, part, state, document_ref, document_date, metadata, at, issued_at, principal, operation_id,
                life, trace_id from number where tenant_id = $1 and series = $2 and number = $3",
        principal.tenant.0,
        name.as_str(),
        text
    )
    .fetch_optional(tx.db())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let steps = sqlx::query!(
        r#"select at, "from", "to", principal, operation_id, reason, trace_id from history
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
        trace_id: row.trace_id,
    }];
    history.extend(steps.into_iter().map(|step| Entry {
        at: SqlTimestamp::to_jiff(step.at),
        from: Some(step.from),
        to: step.to,
        principal: step.principal,
        operation_id: step.operation_id,
        reason: step.reason,
        trace_id: step.trace_id,
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
        life: row.life,
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
            Some((State::Missing, _)) => "missing in the history that was imported".to_owned(),
            Some((_, other)) => {
                let other = other.unwrap_or_default();
                format!("value {value} of period {period} is number {other}: it was dated otherwise, or given again")
            }
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
) -> Result<Option<(State, Option<String>)>, Error> {
    let row = sqlx::query!(
        "select state, number from number where tenant_id = $1 and series = $2 and part = 0 and period = $3 and value = $4",
        principal.tenant.0,
        name.as_str(),
        period.as_str(),
        value
    )
    .fetch_optional(tx.db())
    .await?;
    row.map(|row| Ok((State::from_word(&row.state).ok_or_else(|| Error::corrupt("a number's state"))?, row.number))).transpose()
}
