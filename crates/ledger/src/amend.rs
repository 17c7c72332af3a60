//! What may change of a number beside its state: what the caller wanted kept with it, and that its document is known. The
//! number itself never does.

use domain::{id::OperationId, id::SeriesName, principal::Principal, refusal::Refusal, state::State};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use serde_json::Value;
use store::{Authority, Error, Snapshot, Stop, Tx};

use crate::{Ledger, PATIENCE};

/// A change that somebody wants.
#[derive(Clone, Debug)]
pub struct Amendment<'a> {
    /// In which series.
    pub series: &'a SeriesName,
    /// The text of the number.
    pub number: &'a str,
    /// Which of its lives is meant.
    pub life: i32,
    /// What is to be kept with it from now on, or that nothing is; the outer none leaves it as it is.
    pub metadata: Option<Option<&'a Value>>,
    /// Whether the reference of its document is to be forgotten.
    pub forget_document: bool,
    /// Why.
    pub reason: &'a str,
    /// The request's one instant.
    pub at: Timestamp,
    /// Names the call in the history.
    pub operation_id: &'a OperationId,
    /// The caller's W3C trace id, if it sent one.
    pub trace_id: Option<&'a str>,
}

impl Amendment<'_> {
    /// What the history says of it.
    fn note(&self) -> String {
        let metadata = match self.metadata {
            Some(Some(_)) => Some("metadata replaced"),
            Some(None) => Some("metadata erased"),
            None => None,
        };
        let document = self.forget_document.then_some("document_ref erased");
        let what: Vec<_> = metadata.into_iter().chain(document).collect();
        format!("{}: {}", what.join(", "), self.reason)
    }
}

impl Ledger {
    /// Changes what is kept with a number, and notes it in the history. Doing it twice changes nothing the second time.
    ///
    /// [`Refusal::NotFound`] where the series has no such number; [`Refusal::OtherLife`] where it was given again;
    /// [`Refusal::StillOpen`] where its document is to be
    /// forgotten while the number is open: by the reference it is found again.
    #[tracing::instrument(name = "ledger.amend", skip_all, fields(shard), err(level = "debug"))]
    pub async fn amend(&self, shard: &str, principal: &Principal, wanted: &Amendment<'_>) -> Result<(), Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            if change(&mut tx, principal, wanted).await? {
                tx.commit().await?;
                return Ok(());
            }
            let now = sqlx::query!(
                "select state, life from number where tenant_id = $1 and series = $2 and number = $3",
                principal.tenant.0,
                wanted.series.as_str(),
                wanted.number
            )
            .fetch_optional(tx.db())
            .await?;
            tx.end().await?;
            let missing = || Refusal::NotFound(format!("number {} in series {}", wanted.number, wanted.series));
            let now = now.ok_or_else(missing)?;
            let state = State::from_word(&now.state).ok_or_else(|| Error::corrupt("a number's state"))?;
            if now.life != wanted.life {
                return Err(Refusal::OtherLife { number: wanted.number.to_owned(), state, life: now.life }.into());
            }
            if wanted.forget_document && state.is_open() {
                return Err(Refusal::StillOpen { number: wanted.number.to_owned(), state }.into());
            }
            // It is so already.
            Ok(())
        })
        .await
    }
}

/// True where something was changed.
async fn change(tx: &mut Tx<'_>, principal: &Principal, wanted: &Amendment<'_>) -> Result<bool, Error> {
    let changed = sqlx::query_scalar!(
        r#"with changed as (
             update number
                set metadata = case when $4 then $5 else metadata end, document_ref = case when $6 then null else document_ref end
              where tenant_id = $1 and series = $2 and number = $3 and life = $12
                and ($4 and metadata is distinct from $5 or $6 and document_ref is not null)
                and not ($6 and state in ('reserved', 'sending', 'failed', 'in_doubt'))
             returning part, period, value, state
           ), noted as (
             insert into history (tenant_id, series, part, period, value, at, "from", "to", principal, operation_id, reason, trace_id)
             select $1, $2, part, period, value, $7, state, state, $8, $9, $10, $11 from changed
           )
           select count(*) as "count!" from changed"#,
        principal.tenant.0,
        wanted.series.as_str(),
        wanted.number,
        wanted.metadata.is_some(),
        wanted.metadata.flatten(),
        wanted.forget_document,
        wanted.at.to_sqlx() as _,
        principal.to_string(),
        wanted.operation_id.as_str(),
        wanted.note(),
        wanted.trace_id,
        wanted.life
    );
    Ok(changed.fetch_one(tx.db()).await? == 1)
}
