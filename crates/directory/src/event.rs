//! The audit trail of what is decided in the directory: who made, changed or revoked what. Append-only, in the transaction
//! that did it.

use domain::{
    id::{OperationId, TenantId},
    principal::Principal,
};
use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx};
use serde_json::Value;
use store::{Authority, Error, Event, Reached, Snapshot, Stop, Tx};

use crate::{Directory, PATIENCE};

/// What is noted.
pub(crate) struct Entry<'a> {
    pub(crate) kind: &'a str,
    pub(crate) subject: &'a str,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
}

pub(crate) async fn note(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    operation_id: &OperationId,
    by: &str,
    at: Timestamp,
    entry: Entry<'_>,
) -> Result<(), Error> {
    sqlx::query!(
        "insert into event (tenant_id, at, principal, operation_id, kind, subject, before, after)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        tenant.0,
        at.to_sqlx() as _,
        by,
        operation_id.as_str(),
        entry.kind,
        entry.subject,
        entry.before,
        entry.after
    )
    .execute(tx.db())
    .await?;
    Ok(())
}

impl Directory {
    /// The tenant's events here after a place, in their order, at most `limit`. An event is shown once no transaction is
    /// running that began before it: so none is passed over that commits late.
    pub async fn events(&self, principal: &Principal, after: Reached, limit: i64) -> Result<Vec<Event>, Stop> {
        store::read(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Tenant(principal), Snapshot::PerStatement).await?;
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
            Ok(rows
                .into_iter()
                .map(|row| Event {
                    place: Reached { xid: row.xid, event: row.event },
                    at: row.at.to_jiff(),
                    principal: row.principal,
                    operation_id: row.operation_id,
                    kind: row.kind,
                    subject: row.subject,
                    before: row.before,
                    after: row.after,
                })
                .collect())
        })
        .await
    }
}
