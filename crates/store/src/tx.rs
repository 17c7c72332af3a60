//! The one transaction wrapper. Nothing else begins a transaction (a lint holds that).
//!
//! | step | what | why there |
//! |---|---|---|
//! | begin | BEGIN and the authority's setting in one message | no statement can run before the setting; it ends with the transaction, so a pooled connection carries nothing over |
//! | work | statements on [`Tx::db`] | row-level security compares each row with the setting |
//! | commit | COMMIT; a lost connection is `Unknown` | the server may have done it; only the same transaction, run again with its key, can tell |
//! | drop | ROLLBACK | a half-done piece of work owns nothing |

use domain::{
    id::TenantId,
    principal::{Operator, Principal},
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Postgres, pool::PoolConnection};

use crate::{
    Error,
    fault::{self, Point},
};

/// In whose name a transaction acts; there is none without.
#[derive(Clone, Copy, Debug)]
pub enum Authority<'a> {
    /// On one tenant's rows.
    Tenant(&'a Principal),
    /// On the table of tenants, and on no tenant's rows.
    Operator(&'a Operator),
    /// On what belongs to no tenant: the shards, and `authenticate()`.
    Nobody,
    /// On what the worker role may see across tenants, and on its leases; only over that role's connections.
    Worker,
}

impl Authority<'_> {
    fn tenant(self) -> Option<TenantId> {
        match self {
            Authority::Tenant(principal) => Some(principal.tenant),
            Authority::Operator(_) | Authority::Nobody | Authority::Worker => None,
        }
    }
}

/// What a transaction sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// Each statement sees what was committed before it began (READ COMMITTED): for everything that writes.
    PerStatement,
    /// All statements see one moment, and none writes (REPEATABLE READ, READ ONLY): for audits.
    OneMoment,
}

/// An open transaction. Dropping it rolls back.
#[derive(Debug)]
pub struct Tx<'c> {
    inner: sqlx::Transaction<'c, Postgres>,
    tenant: Option<TenantId>,
}

/// A connection that is held from one transaction to the next. Whoever had trouble with it drops it: only on the way
/// back into the pool is it made clean, or closed.
#[derive(Debug)]
pub struct Seat(PoolConnection<Postgres>);

impl Seat {
    /// Takes a connection.
    pub async fn take(pool: &PgPool) -> Result<Self, Error> {
        Ok(Self(pool.acquire().await.map_err(|error| exhausted(pool, error))?))
    }

    /// Whether somebody may be waiting for it.
    pub fn is_wanted(pool: &PgPool) -> bool {
        pool.num_idle() == 0 && pool.size() >= pool.options().get_max_connections()
    }
}

impl Tx<'static> {
    /// Takes a connection and begins, in the name of `authority`.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub async fn begin(pool: &PgPool, authority: Authority<'_>, snapshot: Snapshot) -> Result<Self, Error> {
        let begun = pool.begin_with(opening(authority, snapshot)).await;
        begun.map(|inner| Self { inner, tenant: authority.tenant() }).map_err(|error| exhausted(pool, error))
    }
}

/// BEGIN, and in whose name.
fn opening(authority: Authority<'_>, snapshot: Snapshot) -> AssertSqlSafe<String> {
    let begin = match snapshot {
        // Whatever is looked up here has an index. A plan made while a table was nearly empty would read all of it, and
        // a prepared statement keeps its plan while the table grows.
        Snapshot::PerStatement => "BEGIN; SET LOCAL enable_seqscan = off",
        Snapshot::OneMoment => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    };
    // A UUID prints as hex digits and dashes: nothing in it can end the literal.
    AssertSqlSafe(match authority {
        Authority::Tenant(principal) => format!("{begin}; SET LOCAL seriatim.tenant = '{}'", principal.tenant),
        Authority::Operator(_) => format!("{begin}; SET LOCAL seriatim.operator = 'on'"),
        Authority::Nobody | Authority::Worker => begin.to_owned(),
    })
}

impl<'c> Tx<'c> {
    /// Begins on a connection that is held already.
    pub async fn begin_on(seat: &'c mut Seat, authority: Authority<'_>, snapshot: Snapshot) -> Result<Self, Error> {
        let inner = seat.0.begin_with(opening(authority, snapshot)).await?;
        Ok(Self { inner, tenant: authority.tenant() })
    }

    /// Comes by a point at which a test may make something go wrong.
    pub async fn reach(&self, point: Point) -> Result<(), Error> {
        fault::reach(point, self.tenant).await
    }

    /// The connection to run statements on.
    pub fn db(&mut self) -> &mut PgConnection {
        &mut self.inner
    }

    /// Commits. [`Error::Unknown`] where the connection was lost on the way.
    pub async fn commit(self) -> Result<(), Error> {
        let unknown = |error| match error {
            Error::Unavailable(source) => Error::Unknown(source),
            other => other,
        };
        self.reach(Point::BeforeCommit).await?;
        self.inner.commit().await.map_err(|error| unknown(error.into()))?;
        fault::reach(Point::AfterCommit, self.tenant).await.map_err(unknown)
    }

    /// Ends a transaction that wrote nothing; the connection is clean when this returns.
    pub async fn end(self) -> Result<(), Error> {
        Ok(self.inner.rollback().await?)
    }
}

/// A pool that timed out with all its connections taken is busy; with connections to spare, nobody answered.
fn exhausted(pool: &PgPool, error: sqlx::Error) -> Error {
    if matches!(error, sqlx::Error::PoolTimedOut) && pool.size() >= pool.options().get_max_connections() {
        return Error::Busy(error.into());
    }
    error.into()
}

/// Whether the database answers at all; for readiness.
pub async fn ping(pool: &PgPool) -> Result<(), Error> {
    let mut connection: PoolConnection<Postgres> = pool.acquire().await.map_err(|error| exhausted(pool, error))?;
    Ok(connection.ping().await?)
}
