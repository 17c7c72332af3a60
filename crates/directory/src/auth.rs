//! From a secret to whoever holds it.

use domain::{id::TenantId, principal::Scope, secret::Mode};
use jiff::Timestamp;
use jiff_sqlx::Timestamp as SqlTimestamp;
use store::{Error, Patience, Stop};
use uuid::Uuid;

use crate::Directory;

/// How long a lost connection is tried again.
const PATIENCE: Patience = Patience::seconds(2, 2);

/// What the directory knows about the holder of a key. Whether it is good now is for the caller to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHolder {
    /// The key's id.
    pub key: Uuid,
    /// Who it vouches for.
    pub holder: Holder,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it stops being good, if ever.
    pub expires_at: Option<Timestamp>,
    /// Whether it was revoked.
    pub revoked: bool,
}

/// Who a key vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Somebody of a tenant.
    Tenant {
        /// Which.
        tenant: TenantId,
        /// Whether the tenant is suspended.
        suspended: bool,
        /// Whether its numbers count.
        mode: Mode,
    },
    /// Somebody who runs the installation.
    Operator,
}

impl Directory {
    /// Who holds the secret with this hash; none if nobody does. A lost connection is tried again for a moment:
    /// a restarted directory leaves dead ones in the pool.
    #[tracing::instrument(name = "directory.authenticate", skip_all, err(level = "debug"))]
    pub async fn authenticate(&self, hash: &[u8; 32]) -> Result<Option<KeyHolder>, Stop> {
        store::read(PATIENCE, || self.authenticate_once(hash)).await
    }

    async fn authenticate_once(&self, hash: &[u8; 32]) -> Result<Option<KeyHolder>, Stop> {
        let row = sqlx::query!(
            r#"select key_id as "key_id!", tenant_id, tenant_status, tenant_mode, scopes as "scopes!",
                      expires_at, revoked_at
                 from authenticate($1)"#,
            hash
        )
        .fetch_optional(&self.pool)
        .await?;
        let holder = row.map(|row| {
            let holder = match row.tenant_id {
                None => Holder::Operator,
                Some(tenant) => Holder::Tenant {
                    tenant: TenantId(tenant),
                    suspended: row.tenant_status.as_deref() != Some("active"),
                    mode: row.tenant_mode.as_deref().and_then(Mode::from_word).ok_or(Error::corrupt("a tenant's mode"))?,
                },
            };
            Ok::<_, Error>(KeyHolder {
                key: row.key_id,
                holder,
                // A scope that this version does not know gives no right in it.
                scopes: row.scopes.iter().filter_map(|word| Scope::from_word(word)).collect(),
                expires_at: row.expires_at.map(SqlTimestamp::to_jiff),
                revoked: row.revoked_at.is_some(),
            })
        });
        Ok(holder.transpose()?)
    }
}
