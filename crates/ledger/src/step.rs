//! What becomes of a number: the verbs, each one statement that finds the number, decides by its state and notes the step.

use domain::{
    id::{OperationId, SeriesName},
    life::{Step, Verb},
    principal::Principal,
    refusal::Refusal,
    series::FieldError,
    state::State,
};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use store::{Authority, Error, Snapshot, Stop, Tx};

use crate::{Ledger, Number, PATIENCE, number::Row};

/// A step that somebody wants a number to take.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// In which series.
    pub series: &'a SeriesName,
    /// The text of the number.
    pub number: &'a str,
    /// Which step.
    pub verb: Verb,
    /// Which of its lives is meant: whoever comes late must not meet the document of the next one.
    pub life: i32,
    /// Why.
    pub reason: Option<&'a str>,
    /// Whether the caller may decide what nobody knows.
    pub may_override: bool,
    /// The request's one instant.
    pub at: Timestamp,
    /// Names the call in the history.
    pub operation_id: &'a OperationId,
    /// The caller's W3C trace id, if it sent one.
    pub trace_id: Option<&'a str>,
}

impl Ledger {
    /// Takes a step in the life of a number. Taking it twice changes nothing the second time.
    ///
    /// [`Refusal::WrongState`] where its state does not allow it, [`Refusal::NotFound`] where the series has no such number.
    #[tracing::instrument(name = "ledger.step", skip_all, fields(shard, verb = asked.verb.word()), err(level = "debug"))]
    pub async fn step(&self, shard: &str, principal: &Principal, asked: &Asked<'_>) -> Result<Number, Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            if let Some(number) = take(&mut tx, principal, asked).await? {
                tx.commit().await?;
                return Ok(number);
            }
            let number = stands(&mut tx, principal, asked).await?;
            tx.end().await?;
            let number = number.ok_or_else(|| missing(asked))?;
            if asked.life != number.life {
                return Err(other_life(number).into());
            }
            match asked.verb.step(number.state) {
                Step::Same => Ok(number),
                Step::WithReason(_) if asked.reason.is_none() => {
                    let detail = "must say how it is known, since nobody knew what became of this number";
                    Err(Refusal::Invalid(vec![FieldError::new("/reason", detail)]).into())
                }
                Step::Override(_) if !asked.may_override => Err(wrong(number, asked.verb).into()),
                // A release is another transaction: it moves the counter too.
                Step::No | Step::IfLast(_) => Err(wrong(number, asked.verb).into()),
                // It came to that state after the statement had decided.
                Step::To(_) | Step::WithReason(_) | Step::Override(_) => Err(Error::Moved.into()),
            }
        })
        .await
    }
}

pub(crate) fn missing(asked: &Asked<'_>) -> Refusal {
    Refusal::NotFound(format!("number {} in series {}", asked.number, asked.series))
}

pub(crate) fn wrong(number: Number, verb: Verb) -> Refusal {
    Refusal::WrongState { number: number.number, verb, state: number.state }
}

pub(crate) fn other_life(number: Number) -> Refusal {
    Refusal::OtherLife { number: number.number, state: number.state, life: number.life }
}

/// The one statement: the number moves if its state, as it is under its lock, leads where it is asked to go; the step is
/// noted with it.
async fn take(tx: &mut Tx<'_>, principal: &Principal, asked: &Asked<'_>) -> Result<Option<Number>, Error> {
    let from = asked.verb.leads_from(asked.reason.is_some(), asked.may_override);
    let from: Vec<&str> = from.into_iter().map(State::word).collect();
    let target = asked.verb.target();
    let row = sqlx::query_as!(
        Row,
        r#"with old as (
             select part, period, value, state from number where tenant_id = $1 and series = $2 and number = $3
                and life = $11 for no key update
           ), moved as (
             update number n
                set state = $5, issued_at = case when $5 = 'issued' then $6 when old.state = 'issued' then coalesce(n.issued_at, n.at)
                                                 else n.issued_at end
               from old
              where n.tenant_id = $1 and n.series = $2 and n.part = old.part and n.period = old.period and n.value = old.value
                and old.state = any($4)
             returning n.value, n.number, n.period, n.part, n.state, n.document_ref, n.document_date, n.at, n.issued_at,
                       n.life, old.state as before
           ), noted as (
             insert into history (tenant_id, series, part, period, value, at, "from", "to", principal, operation_id, reason, trace_id)
             select $1, $2, part, period, value, $6, before, state, $7, $8, $9, $10 from moved
           )
           select value as "value!", number, period as "period!", part as "part!", state as "state!", document_ref, document_date,
                  at as "at!", issued_at, life as "life!" from moved"#,
        principal.tenant.0,
        asked.series.as_str(),
        asked.number,
        &from as _,
        target.word(),
        asked.at.to_sqlx() as _,
        principal.to_string(),
        asked.operation_id.as_str(),
        asked.reason,
        asked.trace_id,
        asked.life
    )
    .fetch_optional(tx.db())
    .await?;
    row.map(Number::try_from).transpose()
}

/// The number as it is.
pub(crate) async fn stands(tx: &mut Tx<'_>, principal: &Principal, asked: &Asked<'_>) -> Result<Option<Number>, Error> {
    let row = sqlx::query_as!(
        Row,
        "select value, number, period, part, state, document_ref, document_date, at, issued_at, life from number
          where tenant_id = $1 and series = $2 and number = $3",
        principal.tenant.0,
        asked.series.as_str(),
        asked.number
    )
    .fetch_optional(tx.db())
    .await?;
    row.map(Number::try_from).transpose()
}
