//! The audit trail of what lies on a shard. Append-only, in the transaction that did it.

use domain::{id::OperationId, principal::Principal};
use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx};
use serde_json::Value;
use store::{Authority, Error, Event, Reached, Snapshot, Stop, Tx};

use crate::{Ledger, PATIENCE, READING};

/// Something for the trail.
#[derive(Clone, Debug)]
pub struct Noted<'a> {
    /// What happened.
    pub kind: &'a str,
    /// To what.
    pub subject: &'a str,
    /// What it was.
    pub before: Option<Value>,
    /// What it is, or was to be.
    pub after: Option<Value>,
    /// The request's one instant.
    pub at: Timestamp,
    /// Names the call.
    pub operation_id: &'a OperationId,
}

pub(crate) async fn note(tx: &mut Tx<'_>, principal: &Principal, noted: &Noted<'_>) -> Result<(), Error> {
    sqlx::query!(
        "insert into event (tenant_id, at, principal, operation_id, kind, subject, before, after)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        principal.tenant.0,
        noted.at.to_sqlx() as _,
        principal.to_string(),
        noted.operation_id.as_str(),
        noted.kind,
        noted.subject,
        noted.before,
        noted.after
    )
    .execute(tx.db())
    .await?;
    Ok(())
}

impl Ledger {
    /// Notes what changed nothing, such as a conflict.
    pub async fn note(&self, shard: &str, principal: &Principal, noted: &Noted<'_>) -> Result<(), Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            note(&mut tx, principal, noted).await?;
            Ok(tx.commit().await?)
        })
        .await
    }

    /// The tenant's events on this shard after a place, in their order, at most `limit`. An event is shown once no
    /// transaction is running that began before it: so none is passed over that commits late.
    pub async fn events(&self, shard: &str, principal: &Principal, after: Reached, limit: i64) -> Result<Vec<Event>, Stop> {
        store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let rows = sqlx::query!(
                r#"select xid::text::bigint as "xid!", event, at as "at: SqlTimestamp", principal, operation_id, kind, subject,
                          before, after
                     from event
                    where tenant_id = $1 and (xid > $2::text::xid8 or xid = $2::text::xid8 and event > $3)
                      and xid < pg_snapshot_xmin(pg_current_snapshot())
                    order by xid, event limit $4"#,
                principal.tenant.0,
                after.xid.to_string(),
                after.event,
                limit
            )
            .fetch_all(tx.db())
            .await?;
            tx.end().await?;
            let events = rows.into_iter().map(|row| Event {
                place: Reached { xid: row.xid, event: row.event },
                at: row.at.to_jiff(),
                principal: row.principal,
                operation_id: row.operation_id,
                kind: row.kind,
                subject: row.subject,
                before: row.before,
                after: row.after,
            });
            Ok(events.collect())
        })
        .await
    }
}
