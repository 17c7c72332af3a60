//! Failures of the database, sorted by what the caller can do about them.

use std::{error::Error as StdError, fmt, ops::Deref, sync::Arc};

use domain::refusal::Refusal;

/// What was underneath a failure. Shared, since one failed transaction may have carried the work of many callers.
#[derive(Clone)]
pub struct Cause(Arc<dyn StdError + Send + Sync>);

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Cause {
    fn from(cause: E) -> Self {
        Self(Arc::from(cause.into()))
    }
}

impl Deref for Cause {
    type Target = dyn StdError + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What went wrong with the database. A business no is never in here.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else was in the way (lock time-out, deadlock, serialization, all connections taken).
    #[error("the database is busy")]
    Busy(#[source] Cause),
    /// The database can't be reached. Nothing was committed.
    #[error("the database can't be reached")]
    Unavailable(#[source] Cause),
    /// The connection was lost while COMMIT was on its way: it happened or it did not. Running the same
    /// transaction again with the same key finds out.
    #[error("the outcome of the commit is unknown")]
    Unknown(#[source] Cause),
    /// A unique index refused a row; the name says which.
    #[error("the constraint {constraint} refused a row")]
    Conflict {
        /// The constraint's or index's name.
        constraint: String,
    },
    /// The rows moved under us between a read and the write that was conditional on it.
    #[error("the rows changed meanwhile")]
    Moved,
    /// Stored data that this program would never write.
    #[error("stored data is not as it must be: {0}")]
    Corrupt(String),
    /// Anything else; a bug or a broken installation.
    #[error("the database refused a statement")]
    Failed(#[source] Cause),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(said) => match said.code().as_deref() {
                // 55P03 lock_not_available, 40001 serialization_failure, 40P01 deadlock_detected,
                // 57014 query_canceled (statement_timeout), 53300 too_many_connections.
                Some("55P03" | "40001" | "40P01" | "57014" | "53300") => Self::Busy(error.into()),
                Some("23505") => Self::Conflict { constraint: said.constraint().unwrap_or_default().to_owned() },
                // 57P01–57P05: the server is going down or coming up; 25P03: it ended an idle session; 55000, 3D000:
                // the database takes no connections or is not there; 08xxx, 28xxx: connecting and logging in.
                Some("57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "55000" | "3D000") => Self::Unavailable(error.into()),
                Some(code) if code.starts_with("08") || code.starts_with("28") => Self::Unavailable(error.into()),
                _ => Self::Failed(error.into()),
            },
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
                Self::Unavailable(error.into())
            }
            // Exhausted pool or nobody answering: the pool tells them apart where it has the connections to see.
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::BeginFailed => Self::Unavailable(error.into()),
            _ => Self::Failed(error.into()),
        }
    }
}

impl Error {
    /// A stored word that no part of this program writes.
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt(what.into())
    }

    /// Whether a unique index of this name refused the row.
    pub fn is_conflict(&self, name: &str) -> bool {
        matches!(self, Self::Conflict { constraint } if constraint == name)
    }
}

/// What an operator can do about a failure that comes from the installation: roles, owners, passwords, addresses.
/// Looks through the causes.
pub fn advice(failure: &(dyn StdError + 'static)) -> Option<&'static str> {
    let mut cause = Some(failure);
    while let Some(this) = cause {
        match this.downcast_ref::<sqlx::Error>() {
            Some(sqlx::Error::Database(said)) => return advice_on(said.code().as_deref()?),
            Some(sqlx::Error::Io(_)) => return Some("check the address's host and port, and that PostgreSQL runs there"),
            _ => cause = this.source(),
        }
    }
    None
}

/// By SQLSTATE, PostgreSQL documentation, appendix A.
fn advice_on(code: &str) -> Option<&'static str> {
    Some(match code {
        "28000" => "make the roles first, once per PostgreSQL cluster: psql -f migrations/roles.sql, as a superuser",
        "28P01" => "give the address the role's password, or the role a new one: ALTER ROLE … PASSWORD …",
        "3D000" => "make the database first: CREATE DATABASE … OWNER seriatim_owner",
        "42501" => {
            "the database must belong to seriatim_owner, and the address must name that role: ALTER DATABASE … OWNER TO seriatim_owner"
        }
        "42P01" => "bring the schemas up to this version first: seriatim migrate",
        _ => return None,
    })
}

/// Why an operation did not do what was asked: a business no, or a failure.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Stop {
    /// Understood and declined; nothing was used.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// The database failed.
    #[error(transparent)]
    Failure(#[from] Error),
    /// This process and the shard disagree on what time it is, so neither can be trusted with a period.
    #[error("the clocks of gateway and shard are {apart_ms} ms apart")]
    ClocksApart {
        /// How far, in milliseconds.
        apart_ms: i64,
    },
}

impl From<sqlx::Error> for Stop {
    fn from(error: sqlx::Error) -> Self {
        Self::Failure(error.into())
    }
}
