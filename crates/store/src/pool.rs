//! Pools with their guards on.

use std::{str::FromStr, time::Duration};

use sqlx::{
    Connection, Executor, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::Error;

/// How long a caller waits for a free connection.
const ACQUIRE: Duration = Duration::from_secs(2);

/// How long a connection that lay idle is trusted to be alive.
const TRUSTED: Duration = Duration::from_secs(1);

/// How long a connection that comes back may take to be clean; then it is closed, and its place is free.
const CLEAN: Duration = Duration::from_secs(2);

/// A pool of at most `size` connections, made when first needed. The address is checked at once.
pub fn pool(url: &str, size: u32) -> Result<PgPool, Error> {
    let options = PgPoolOptions::new()
        .max_connections(size)
        .acquire_timeout(ACQUIRE)
        // Every connection that comes back is tried (by sqlx); one that was there a moment ago is not tried again.
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for < TRUSTED {
                    return Ok(true);
                }
                connection.ping().await.map(|()| true)
            })
        })
        // A `begin` whose future was dropped hands its connection back inside an open transaction (sqlx
        // issue 4385). BEGIN only warns there and is silent otherwise, so this pair ends whatever was open
        // in one round trip and leaves no warning in the server's log for each release, as a bare ROLLBACK would.
        .after_release(|connection, _| {
            Box::pin(async move {
                match tokio::time::timeout(CLEAN, connection.execute("BEGIN; ROLLBACK")).await {
                    Ok(done) => done.map(|_| true),
                    // Gone without a word, or busy with a statement that nobody waits for.
                    Err(_) => Err(sqlx::Error::PoolTimedOut),
                }
            })
        });
    Ok(options.connect_lazy_with(session(url)?))
}

/// One connection outside any pool, for migrations: what it holds ends with it.
pub async fn connect_once(url: &str) -> Result<PgConnection, Error> {
    Ok(PgConnection::connect_with(&session(url)?).await?)
}

/// What every session is told. Time-outs are the server's, since dropping a future stops nothing there.
fn session(url: &str) -> Result<PgConnectOptions, Error> {
    Ok(PgConnectOptions::from_str(url)?.application_name("seriatim").options([
        ("statement_timeout", "10s"),
        ("lock_timeout", "250ms"),
        // A transaction never waits for anything but the database: its owner is gone.
        ("idle_in_transaction_session_timeout", "5s"),
        ("default_transaction_isolation", "read committed"),
    ]))
}
