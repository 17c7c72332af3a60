//! What a directory looks like to the role that serves with it; for `seriatim doctor`.

use domain::clock::Clock;
use jiff::SignedDuration;
use sqlx::Connection;
use store::Error;

use crate::migrate;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The database's name.
    pub database: String,
    /// The role that the address names.
    pub role: String,
    /// PostgreSQL's version.
    pub server: String,
    /// Why row-level security would not hold the role, as a predicate ("is a superuser"); none: it holds it.
    pub passes: Option<&'static str>,
    /// Whether the role is the one that serves, or has its rights.
    pub serves: bool,
    /// How the schema differs from this program's, as a sentence; none: they are the same.
    pub differs: Option<String>,
    /// How far apart the clocks of server and program are, in milliseconds.
    pub apart_ms: i64,
    /// The shards that it knows; none where it has no schema, or does not show them to the role.
    pub shards: Option<Vec<String>>,
}

/// Looks at the directory at this address.
pub async fn inspect(url: &str, clock: &dyn Clock) -> Result<Inspection, Error> {
    let mut db = store::connect_once(url).await?;
    let asked = clock.instant();
    let found = sqlx::query!(
        r#"select current_database()::text as "database!", r.rolname::text as "role!", r.rolsuper as "superuser!",
                  r.rolbypassrls as "bypasses!", current_setting('server_version') as "server!", clock_timestamp() as "now!",
                  obj_description(to_regclass('public._sqlx_migrations'), 'pg_class') as migrations,
                  exists (select from pg_roles a where a.rolname = 'seriatim_app' and pg_has_role(r.oid, a.oid, 'usage')) as "serves!",
                  exists (select from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
                             and pg_has_role(r.oid, c.relowner, 'member')) as "owns!"
             from pg_roles r where r.rolname = current_user"#
    )
    .fetch_one(&mut db)
    .await?;
    let apart = {
        let (now, answered) = (found.now.to_jiff(), clock.instant());
        asked.duration_since(now).max(now.duration_since(answered)).max(SignedDuration::ZERO)
    };
    let shards = sqlx::query_scalar!("select shard from shard order by shard").fetch_all(&mut db).await.ok();
    db.close().await?;
    Ok(Inspection {
        database: found.database,
        role: found.role,
        server: found.server,
        passes: match (found.superuser, found.bypasses, found.owns) {
            (true, ..) => Some("is a superuser"),
            (_, true, _) => Some("has BYPASSRLS"),
            (_, _, true) => Some("owns the tables, or may act as their owner"),
            _ => None,
        },
        serves: found.serves,
        differs: migrate::difference(found.migrations.as_deref()),
        apart_ms: i64::try_from(apart.as_millis()).unwrap_or(i64::MAX),
        shards,
    })
}
