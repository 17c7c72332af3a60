//! Bringing a shard's schema up to this version, as its owner.

use sqlx::Connection;
use store::Error;

/// Migrates the shard at the owner's address, over a connection of its own: what a failed migration holds
/// ends with it.
pub async fn migrate(owner_url: &str) -> Result<(), Error> {
    let mut connection = store::connect_once(owner_url).await?;
    let migrations = sqlx::migrate!("../../migrations/shard");
    migrations.run(&mut connection).await.map_err(|e| Error::Failed(e.into()))?;
    Ok(connection.close().await?)
}
