//! A tenant's API keys. Only hashes are stored.

use domain::{
    id::{Label, OperationId, TenantId},
    principal::{Principal, Scope},
    refusal::Refusal,
};
use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx};
use serde_json::json;
use store::{Authority, Error, Snapshot, Stop, Tx};
use uuid::Uuid;

use crate::{Directory, KeyUse, Made, PATIENCE, event};

/// A key to be made. The secret itself never comes here.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its id, drawn by the caller.
    pub id: Uuid,
    /// What people call it.
    pub name: Label,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it stops being good, if ever.
    pub expires_at: Option<Timestamp>,
}

/// A key as its tenant sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its id.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
    /// What it may do, as words.
    pub scopes: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops being good, if ever.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

impl Directory {
    /// Makes a key, once per idempotency key.
    #[tracing::instrument(name = "directory.create_key", skip_all, err(level = "debug"))]
    pub async fn create_key(
        &self,
        principal: &Principal,
        new: &NewKey,
        at: Timestamp,
        by: KeyUse<'_>,
    ) -> Result<Made<Key>, Stop> {
        store::repeat(PATIENCE, || self.create_key_once(principal, new, at, by)).await
    }

    async fn create_key_once(
        &self,
        principal: &Principal,
        new: &NewKey,
        at: Timestamp,
        by: KeyUse<'_>,
    ) -> Result<Made<Key>, Stop> {
        let mut tx = Tx::begin(&self.pool, Authority::Tenant(principal), Snapshot::PerStatement).await?;
        let tenant = principal.tenant;
        if let Some(subject) = claimed(&mut tx, tenant, by, "create_key").await? {
            let id = subject.parse().map_err(|_| Error::corrupt("a claim's subject"))?;
            let made = read(&mut tx, tenant, id).await?.ok_or(Error::corrupt("a claim without its key"))?;
            return Ok(Made { made, replayed: true });
        }
        insert(&mut tx, tenant, new, &principal.to_string(), at).await?;
        let (subject, scopes) = (new.id.to_string(), new.scopes.iter().map(|scope| scope.word()).collect::<Vec<_>>());
        let after = json!({"name": new.name.as_str(), "scopes": scopes, "expires_at": new.expires_at.map(|at| at.to_string())});
        let entry = event::Entry { kind: "key.created", subject: &subject, before: None, after: Some(after) };
        event::note(&mut tx, tenant, by.operation_id, &principal.to_string(), at, entry).await?;
        claim(&mut tx, tenant, by, "create_key", &new.id.to_string(), at).await?;
        let made = read(&mut tx, tenant, new.id).await?.ok_or(Error::Moved)?;
        tx.commit().await?;
        Ok(Made { made, replayed: false })
    }

    /// The tenant's keys in the order of their ids, after `after`, at most `limit`.
    pub async fn keys(&self, principal: &Principal, after: Option<Uuid>, limit: i64) -> Result<Vec<Key>, Stop> {
        store::read(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let rows = sqlx::query_as!(
                Row,
                "select key_id, name, scopes, created_at, expires_at, revoked_at from api_key
                  where tenant_id = $1 and key_id > $2 order by key_id limit $3",
                principal.tenant.0,
                after.unwrap_or(Uuid::nil()),
                limit
            )
            .fetch_all(tx.db())
            .await?;
            tx.end().await?;
            Ok(rows.into_iter().map(Key::from).collect())
        })
        .await
    }

    /// Revokes a key for good. Revoking it again changes nothing; false if the tenant has no such key.
    #[tracing::instrument(name = "directory.revoke_key", skip_all, err(level = "debug"))]
    pub async fn revoke_key(
        &self,
        principal: &Principal,
        id: Uuid,
        at: Timestamp,
        operation_id: &OperationId,
    ) -> Result<bool, Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let revoked = sqlx::query!(
                "update api_key set revoked_at = $3 where tenant_id = $1 and key_id = $2 and revoked_at is null",
                principal.tenant.0,
                id,
                at.to_sqlx() as _
            )
            .execute(tx.db())
            .await?;
            if revoked.rows_affected() == 1 {
                let subject = id.to_string();
                let entry = event::Entry { kind: "key.revoked", subject: &subject, before: None, after: None };
                event::note(&mut tx, principal.tenant, operation_id, &principal.to_string(), at, entry).await?;
                tx.commit().await?;
                return Ok(true);
            }
            let there = read(&mut tx, principal.tenant, id).await?.is_some();
            tx.end().await?;
            Ok(there)
        })
        .await
    }
}

struct Row {
    key_id: Uuid,
    name: String,
    scopes: Vec<String>,
    created_at: SqlTimestamp,
    expires_at: Option<SqlTimestamp>,
    revoked_at: Option<SqlTimestamp>,
}

impl From<Row> for Key {
    fn from(row: Row) -> Self {
        Self {
            id: row.key_id,
            name: row.name,
            scopes: row.scopes,
            created_at: row.created_at.to_jiff(),
            expires_at: row.expires_at.map(SqlTimestamp::to_jiff),
            revoked_at: row.revoked_at.map(SqlTimestamp::to_jiff),
        }
    }
}

async fn read(tx: &mut Tx<'_>, tenant: TenantId, id: Uuid) -> Result<Option<Key>, Error> {
    let row = sqlx::query_as!(
        Row,
        "select key_id, name, scopes, created_at, expires_at, revoked_at from api_key where tenant_id = $1 and key_id = $2",
        tenant.0,
        id
    )
    .fetch_optional(tx.db())
    .await?;
    Ok(row.map(Key::from))
}

pub(crate) async fn insert(tx: &mut Tx<'_>, tenant: TenantId, new: &NewKey, by: &str, at: Timestamp) -> Result<(), Error> {
    let scopes: Vec<String> = new.scopes.iter().map(|scope| scope.word().to_owned()).collect();
    sqlx::query!(
        "insert into api_key (tenant_id, key_id, name, secret_hash, scopes, created_at, created_by, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        tenant.0,
        new.id,
        new.name.as_str(),
        &new.secret_hash,
        &scopes,
        at.to_sqlx() as _,
        by,
        new.expires_at.map(ToSqlx::to_sqlx) as _
    )
    .execute(tx.db())
    .await?;
    Ok(())
}

/// What this key made before, or a refusal if it was used for something else.
pub(crate) async fn claimed(tx: &mut Tx<'_>, tenant: TenantId, by: KeyUse<'_>, operation: &str) -> Result<Option<String>, Stop> {
    let claim = sqlx::query!(
        "select fingerprint, operation, subject from claim where tenant_id = $1 and key = $2",
        tenant.0,
        by.key.as_str()
    )
    .fetch_optional(tx.db())
    .await?;
    match claim {
        None => Ok(None),
        Some(claim) if claim.fingerprint == by.fingerprint && claim.operation == operation => Ok(Some(claim.subject)),
        Some(_) => Err(Refusal::KeyReused.into()),
    }
}

pub(crate) async fn claim(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    by: KeyUse<'_>,
    operation: &str,
    subject: &str,
    at: Timestamp,
) -> Result<(), Error> {
    sqlx::query!(
        "insert into claim (tenant_id, key, fingerprint, operation, subject, at) values ($1, $2, $3, $4, $5, $6)",
        tenant.0,
        by.key.as_str(),
        by.fingerprint,
        operation,
        subject,
        at.to_sqlx() as _
    )
    .execute(tx.db())
    .await?;
    Ok(())
}
