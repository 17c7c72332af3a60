//! Tenants, as an operator sees them.

use domain::{
    id::{Label, OperationId, TenantId},
    principal::Operator,
    refusal::Refusal,
    secret::Mode,
};
use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx};
use serde_json::json;
use store::{Authority, Error, Snapshot, Stop, Tx};
use uuid::Uuid;

use crate::{Directory, KeyUse, Made, NewKey, PATIENCE, event, key};

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// What people call it.
    pub name: String,
    /// Whether its numbers count.
    pub mode: Mode,
    /// `active` or `suspended`.
    pub status: String,
    /// Counts its changes.
    pub version: i64,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A change of a tenant.
#[derive(Clone, Debug)]
pub struct TenantChange<'a> {
    /// Whose.
    pub id: TenantId,
    /// The version that the change is made to.
    pub version: i64,
    /// What people call it from now on; none leaves it.
    pub name: Option<Label>,
    /// `active` or `suspended`; none leaves it.
    pub status: Option<&'a str>,
    /// The request's instant.
    pub at: Timestamp,
    /// Names the call in the audit trail.
    pub operation_id: &'a OperationId,
}

/// A tenant to be made, with the first key of its administrator.
#[derive(Clone, Debug)]
pub struct NewTenant {
    /// Its id, drawn by the caller.
    pub id: TenantId,
    /// What people call it.
    pub name: Label,
    /// Whether its numbers count.
    pub mode: Mode,
    /// The key of its administrator.
    pub admin_key: NewKey,
    /// The request's instant.
    pub at: Timestamp,
}

impl Directory {
    /// Makes a tenant and its first key, once per idempotency key.
    #[tracing::instrument(name = "directory.create_tenant", skip_all, err(level = "debug"))]
    pub async fn create_tenant(&self, operator: &Operator, new: &NewTenant, by: KeyUse<'_>) -> Result<Made<Tenant>, Stop> {
        store::repeat(PATIENCE, || self.create_tenant_once(operator, new, by)).await
    }

    async fn create_tenant_once(&self, operator: &Operator, new: &NewTenant, by: KeyUse<'_>) -> Result<Made<Tenant>, Stop> {
        let mut tx = Tx::begin(&self.pool, Authority::Operator(operator), Snapshot::PerStatement).await?;
        let claim = sqlx::query!("select fingerprint, subject from operator_claim where key = $1", by.key.as_str())
            .fetch_optional(tx.db())
            .await?;
        if let Some(claim) = claim {
            if claim.fingerprint != by.fingerprint {
                return Err(Refusal::KeyReused.into());
            }
            let made = read(&mut tx, claim.subject).await?.ok_or(Error::corrupt("a claim without its tenant"))?;
            return Ok(Made { made, replayed: true });
        }
        sqlx::query!(
            "insert into tenant (tenant_id, name, mode, created_at, created_by) values ($1, $2, $3, $4, $5)",
            new.id.0,
            new.name.as_str(),
            new.mode.word(),
            new.at.to_sqlx() as _,
            operator.to_string()
        )
        .execute(tx.db())
        .await?;
        key::insert(&mut tx, new.id, &new.admin_key, &operator.to_string(), new.at).await?;
        sqlx::query!(
            "insert into operator_claim (key, fingerprint, operation, subject, at) values ($1, $2, 'create_tenant', $3, $4)",
            by.key.as_str(),
            by.fingerprint,
            new.id.0,
            new.at.to_sqlx() as _
        )
        .execute(tx.db())
        .await?;
        let made = read(&mut tx, new.id.0).await?.ok_or(Error::Moved)?;
        tx.commit().await?;
        Ok(Made { made, replayed: false })
    }

    /// Changes a tenant, if it is still in the version that the change is made to; otherwise it is answered as it is, and the
    /// conflict noted. None if there is no such tenant.
    #[tracing::instrument(name = "directory.change_tenant", skip_all, err(level = "debug"))]
    pub async fn change_tenant(
        &self,
        operator: &Operator,
        change: &TenantChange<'_>,
    ) -> Result<Option<Result<Tenant, Tenant>>, Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Operator(operator), Snapshot::PerStatement).await?;
            let Some(before) = read(&mut tx, change.id.0).await? else { return Ok(None) };
            let done = sqlx::query!(
                "update tenant set name = coalesce($3, name), status = coalesce($4, status), version = version + 1
                  where tenant_id = $1 and version = $2",
                change.id.0,
                change.version,
                change.name.as_ref().map(Label::as_str),
                change.status
            )
            .execute(tx.db())
            .await?;
            let changed = done.rows_affected() == 1;
            let after = read(&mut tx, change.id.0).await?.ok_or(Error::Moved)?;
            if changed && before.version != change.version {
                // It came to that version only after it was read.
                return Err(Error::Moved.into());
            }
            let told = |tenant: &Tenant| json!({"name": tenant.name, "status": tenant.status});
            let wanted = json!({"name": change.name.as_ref().map(Label::as_str), "status": change.status});
            let subject = change.id.to_string();
            let entry = event::Entry {
                kind: if changed { "tenant.changed" } else { "tenant.conflict" },
                subject: &subject,
                before: Some(told(&before)),
                after: Some(if changed { told(&after) } else { wanted }),
            };
            event::note(&mut tx, change.id, change.operation_id, &operator.to_string(), change.at, entry).await?;
            tx.commit().await?;
            Ok(Some(if changed { Ok(after) } else { Err(after) }))
        })
        .await
    }

    /// One tenant.
    pub async fn tenant(&self, operator: &Operator, id: TenantId) -> Result<Option<Tenant>, Stop> {
        store::read(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Operator(operator), Snapshot::PerStatement).await?;
            let tenant = read(&mut tx, id.0).await?;
            tx.end().await?;
            Ok(tenant)
        })
        .await
    }

    /// Tenants in the order of their ids, after `after`, at most `limit`.
    pub async fn tenants(&self, operator: &Operator, after: Option<TenantId>, limit: i64) -> Result<Vec<Tenant>, Stop> {
        store::read(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Operator(operator), Snapshot::PerStatement).await?;
            let rows = sqlx::query_as!(
                Row,
                "select tenant_id, name, mode, status, version, created_at from tenant
                  where tenant_id > $1 order by tenant_id limit $2",
                after.map_or(Uuid::nil(), |id| id.0),
                limit
            )
            .fetch_all(tx.db())
            .await?;
            tx.end().await?;
            Ok(rows.into_iter().map(Tenant::try_from).collect::<Result<_, _>>()?)
        })
        .await
    }
}

struct Row {
    tenant_id: Uuid,
    name: String,
    mode: String,
    status: String,
    version: i64,
    created_at: SqlTimestamp,
}

impl TryFrom<Row> for Tenant {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            id: TenantId(row.tenant_id),
            name: row.name,
            mode: Mode::from_word(&row.mode).ok_or(Error::corrupt("a tenant's mode"))?,
            status: row.status,
            version: row.version,
            created_at: row.created_at.to_jiff(),
        })
    }
}

async fn read(tx: &mut Tx<'_>, id: Uuid) -> Result<Option<Tenant>, Error> {
    let row =
        sqlx::query_as!(Row, "select tenant_id, name, mode, status, version, created_at from tenant where tenant_id = $1", id)
            .fetch_optional(tx.db())
            .await?;
    row.map(Tenant::try_from).transpose()
}
