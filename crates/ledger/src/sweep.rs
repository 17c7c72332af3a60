//! Reservations past their deadline, in series that want them voided: found as the worker, settled as the tenant.

use domain::{
    id::{OperationId, SeriesName},
    principal::Principal,
};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use store::{Authority, Snapshot, Stop, Tx};

use crate::{Ledger, PATIENCE};

impl Ledger {
    /// Voids at most `limit` reservations of a series whose deadline was before `at`, the oldest first, if the series wants
    /// it so; how many. One that somebody else is deciding about at the moment is left to them.
    #[tracing::instrument(name = "ledger.sweep", skip_all, fields(shard), err(level = "debug"))]
    pub async fn void_overdue(
        &self,
        shard: &str,
        principal: &Principal,
        series: &SeriesName,
        (at, limit): (Timestamp, i64),
        operation_id: &OperationId,
    ) -> Result<i64, Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let voided = sqlx::query_scalar!(
                r#"with overdue as (
                     select part, period, value from number
                      where tenant_id = $1 and series = $2 and state = 'reserved' and due is not null and due < $3
                        and exists (select from series where tenant_id = $1 and series = $2 and reservation_overdue = 'void')
                      order by due limit $4 for no key update skip locked
                   ), moved as (
                     update number n set state = 'voided' from overdue o
                      where n.tenant_id = $1 and n.series = $2 and n.part = o.part and n.period = o.period and n.value = o.value
                        and n.state = 'reserved' and n.due < $3
                     returning n.part, n.period, n.value, n.due
                   ), noted as (
                     insert into history (tenant_id, series, part, period, value, at, "from", "to", principal, operation_id, reason)
                     select $1, $2, part, period, value, $3, 'reserved', 'voided', $5, $6,
                            'reserved until ' || to_char(due at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
                              || ' and not settled by then' from moved
                   )
                   select count(*) as "count!" from moved"#,
                principal.tenant.0,
                series.as_str(),
                at.to_sqlx() as _,
                limit,
                principal.to_string(),
                operation_id.as_str()
            )
            .fetch_one(tx.db())
            .await?;
            tx.commit().await?;
            Ok(voided)
        })
        .await
    }
}
