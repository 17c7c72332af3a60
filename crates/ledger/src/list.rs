//! The numbers of a series in their order, a page at a time.
//!
//! The order is part, period, value: that of the primary key. A page begins after the last number of the page before, so
//! what is issued meanwhile changes nothing that was listed and comes at the end of its period.

use domain::{id::SeriesName, period::Period, principal::Principal, state::State};
use jiff::{Timestamp, civil::Date};
use jiff_sqlx::{Date as SqlDate, Timestamp as SqlTimestamp};
use serde_json::Value;
use store::{Authority, Error, Snapshot, Stop, Tx};

use crate::{Ledger, READING};

/// Which numbers are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those of this period.
    pub period: Option<Period>,
    /// Only that of this document.
    pub document_ref: Option<String>,
}

/// A place in the order of a series' numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which part.
    pub part: i16,
    /// Which period.
    pub period: Period,
    /// The integer.
    pub value: i64,
}

/// A number in a list. One that is missing in imported history has neither text nor date.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Where it is.
    pub place: Place,
    /// The text on the document.
    pub number: Option<String>,
    /// What has become of it.
    pub state: State,
    /// The caller's reference of the document.
    pub document_ref: Option<String>,
    /// The document's date.
    pub document_date: Option<Date>,
    /// When it was issued.
    pub issued_at: Option<Timestamp>,
    /// Which life it is in.
    pub life: i32,
    /// What the caller wanted kept with it.
    pub metadata: Option<Value>,
}

impl Ledger {
    /// The numbers after `after`, at most `limit`. None of a series that is not here.
    #[tracing::instrument(name = "ledger.list", skip_all, fields(shard), err(level = "debug"))]
    pub async fn list(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
        filter: &Filter,
        (after, limit): (Option<&Place>, i64),
    ) -> Result<Vec<Listed>, Stop> {
        store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let rows = match &filter.document_ref {
                Some(reference) => of_document(&mut tx, principal, name, reference).await?,
                None => in_order(&mut tx, principal, name, filter, (after, limit)).await?,
            };
            tx.end().await?;
            let mut listed = rows.into_iter().map(Listed::try_from).collect::<Result<Vec<_>, Error>>()?;
            if !listed.is_sorted_by(|a, b| a.place < b.place) && filter.document_ref.is_none() {
                return Err(Error::corrupt("the list came out of order").into());
            }
            if filter.document_ref.is_some() {
                let wanted = |number: &Listed| {
                    filter.state.is_none_or(|state| state == number.state)
                        && filter.period.as_ref().is_none_or(|period| *period == number.place.period)
                        && after.is_none_or(|after| *after < number.place)
                };
                listed.retain(wanted);
            }
            Ok(listed)
        })
        .await
    }
}

/// Period by period. Row-level security keeps a comparison of periods out of an index's conditions (that of texts is not
/// leakproof), so that one comparison of the whole place would walk all that was listed before.
async fn in_order(
    tx: &mut Tx<'_>,
    principal: &Principal,
    name: &SeriesName,
    filter: &Filter,
    (after, limit): (Option<&Place>, i64),
) -> Result<Vec<Row>, Error> {
    let period = filter.period.as_ref().map(Period::as_str);
    let (part, of, value) = after.map_or((0, "", -1), |after| (after.part, after.period.as_str(), after.value));
    // Whatever is not simply issued has an index of its own; the planner takes it only if the statement says so.
    let rare = filter.state.filter(|state| *state != State::Issued);
    if let Some(state) = rare {
        return Ok(sqlx::query_as!(
            Row,
            r#"select n.part as "part!", n.period as "period!", n.value as "value!", n.number, n.state as "state!", n.document_ref,
                      n.document_date, n.at as "at!", n.issued_at, n.life as "life!", n.metadata
                 from (select part, period from counter
                        where tenant_id = $1 and series = $2 and ($3::text is null or period = $3)
                          and (part > $4 or part = $4 and period >= $5 collate "C") order by part, period collate "C" offset 0) c
                cross join lateral (select * from number
                  where tenant_id = $1 and series = $2 and part = c.part and period = c.period
                    and value > case when c.part = $4 and c.period = $5 then $6::bigint else -1 end
                    and state <> 'issued' and state = $8 order by value limit $7) n
                limit $7"#,
            principal.tenant.0,
            name.as_str(),
            period,
            part,
            of,
            value,
            limit,
            state.word()
        )
        .fetch_all(tx.db())
        .await?);
    }
    Ok(sqlx::query_as!(
        Row,
        r#"select n.part as "part!", n.period as "period!", n.value as "value!", n.number, n.state as "state!", n.document_ref,
                  n.document_date, n.at as "at!", n.issued_at, n.life as "life!", n.metadata
             from (select part, period from counter
                    where tenant_id = $1 and series = $2 and ($3::text is null or period = $3)
                      and (part > $4 or part = $4 and period >= $5 collate "C") order by part, period collate "C" offset 0) c
            cross join lateral (select * from number
              where tenant_id = $1 and series = $2 and part = c.part and period = c.period
                and value > case when c.part = $4 and c.period = $5 then $6::bigint else -1 end
                and ($8::text is null or state = $8) order by value limit $7) n
            limit $7"#,
        principal.tenant.0,
        name.as_str(),
        period,
        part,
        of,
        value,
        limit,
        filter.state.map(State::word)
    )
    .fetch_all(tx.db())
    .await?)
}

async fn of_document(tx: &mut Tx<'_>, principal: &Principal, name: &SeriesName, reference: &str) -> Result<Vec<Row>, Error> {
    Ok(sqlx::query_as!(
        Row,
        "select part, period, value, number, state, document_ref, document_date, at, issued_at, life, metadata from number
          where tenant_id = $1 and series = $2 and document_ref = $3",
        principal.tenant.0,
        name.as_str(),
        reference
    )
    .fetch_all(tx.db())
    .await?)
}

struct Row {
    part: i16,
    period: String,
    value: i64,
    number: Option<String>,
    state: String,
    document_ref: Option<String>,
    document_date: Option<SqlDate>,
    at: SqlTimestamp,
    issued_at: Option<SqlTimestamp>,
    life: i32,
    metadata: Option<Value>,
}

impl TryFrom<Row> for Listed {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let state = State::from_word(&row.state).ok_or_else(|| Error::corrupt("a number's state"))?;
        let at = row.at.to_jiff();
        Ok(Self {
            place: Place { part: row.part, period: Period::named(row.period), value: row.value },
            number: row.number,
            state,
            document_ref: row.document_ref,
            document_date: row.document_date.map(SqlDate::to_jiff),
            issued_at: row.issued_at.map(SqlTimestamp::to_jiff).or_else(|| (state == State::Issued).then_some(at)),
            life: row.life,
            metadata: row.metadata,
        })
    }
}
