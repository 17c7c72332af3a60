//! The shards that there are.

use store::Error;

use crate::Directory;

impl Directory {
    /// The names of all shards, in order.
    pub async fn shards(&self) -> Result<Vec<String>, Error> {
        Ok(sqlx::query_scalar!("select shard from shard order by shard").fetch_all(&self.pool).await?)
    }
}
