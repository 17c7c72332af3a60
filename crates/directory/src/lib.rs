//! All SQL of the directory: tenants, who may act for them, and on which shard a series lives.
//!
//! One file per noun. Every operation is one transaction through [`store::Tx`]; operations that make
//! something write their idempotency key in that transaction, so a repeated call finds what it made.

mod auth;
mod event;
mod inspect;
mod key;
mod migrate;
mod placement;
mod shard;
mod tenant;

use sqlx::PgPool;
use store::Patience;

pub use auth::{Holder, KeyHolder};
pub use inspect::{Inspection, inspect};
pub use key::{Key, NewKey};
pub use migrate::{NewOperatorKey, Owner};
pub use placement::{Meeting, Meetings, NewSeries, Placement};
pub use tenant::{NewTenant, Tenant, TenantChange};

/// How long an operation keeps trying while others are in its way.
const PATIENCE: Patience = Patience::seconds(5, 3);

/// A handle to the directory; cheap to clone.
#[derive(Clone, Debug)]
pub struct Directory {
    pool: PgPool,
}

/// What an idempotent call made, or had made before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made<T> {
    /// The thing.
    pub made: T,
    /// True where an earlier call with this key made it.
    pub replayed: bool,
}

/// An idempotency key and what the request meant by it.
#[derive(Clone, Copy, Debug)]
pub struct KeyUse<'a> {
    /// The key.
    pub key: &'a domain::id::IdempotencyKey,
    /// SHA-256 over operation, path, query and canonical body.
    pub fingerprint: &'a [u8; 32],
    /// Names the call in the audit trail.
    pub operation_id: &'a domain::id::OperationId,
}

impl Directory {
    /// A handle to the database at this address, as the app role, with at most `connections` at once.
    pub fn open(url: &str, connections: u32) -> Result<Self, store::Error> {
        Ok(Self { pool: store::pool(url, connections)? })
    }

    /// Whether it answers.
    pub async fn ping(&self) -> Result<(), store::Error> {
        store::ping(&self.pool).await
    }
}
