//! Bringing a shard's schema up to this version, as its owner.

use sqlx::{Connection, migrate::Migrator};
use store::Error;

/// Migrates the shard at the owner's address, over a connection of its own: what a failed migration holds
/// ends with it.
pub async fn migrate(owner_url: &str) -> Result<(), Error> {
    let mut connection = store::connect_once(owner_url).await?;
    MIGRATIONS.run(&mut connection).await.map_err(|e| Error::Failed(e.into()))?;
    store::note_migrations(&mut connection, &MIGRATIONS).await?;
    Ok(connection.close().await?)
}

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/shard");

/// How a schema with this note differs from this program's.
pub(crate) fn difference(noted: Option<&str>) -> Option<String> {
    store::schema_difference(&MIGRATIONS, noted)
}
