//! Tenants, as an operator sees them.

use domain::{
    id::{Label, TenantId},
    principal::Operator,
    refusal::Refusal,
    secret::Mode,
};
use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx};
use store::{Authority, Error, Snapshot, Stop, Tx};
use uuid::Uuid;

use crate::{Directory, KeyUse, Made, NewKey, PATIENCE, key};

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
    /// When it was made.
    pub created_at: Timestamp,
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
                "select tenant_id, name, mode, status, created_at from tenant
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
            created_at: row.created_at.to_jiff(),
        })
    }
}

async fn read(tx: &mut Tx<'_>, id: Uuid) -> Result<Option<Tenant>, Error> {
    let row = sqlx::query_as!(Row, "select tenant_id, name, mode, status, created_at from tenant where tenant_id = $1", id)
        .fetch_optional(tx.db())
        .await?;
    row.map(Tenant::try_from).transpose()
}
