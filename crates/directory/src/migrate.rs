//! What the owner does: migrations, shards, the first operator key. Never part of serving.

use domain::{id::Label, principal::Scope};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use sqlx::{Connection, PgConnection, migrate::Migrator};
use store::Error;
use uuid::Uuid;

/// A connection as the owner, outside any pool: what a failed migration holds ends with it.
#[derive(Debug)]
pub struct Owner {
    connection: PgConnection,
}

/// An operator key to be made.
#[derive(Clone, Debug)]
pub struct NewOperatorKey {
    /// Its id, drawn by the caller.
    pub id: Uuid,
    /// What people call it.
    pub name: Label,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// The present instant.
    pub at: Timestamp,
}

impl Owner {
    /// Connects with the owner's address.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Ok(Self { connection: store::connect_once(url).await? })
    }

    /// Brings the schema up to this version.
    pub async fn migrate(&mut self) -> Result<(), Error> {
        MIGRATIONS.run(&mut self.connection).await.map_err(|e| Error::Failed(e.into()))?;
        store::note_migrations(&mut self.connection, &MIGRATIONS).await
    }

    /// Makes shards known. A known one stays as it is.
    pub async fn register_shards(&mut self, shards: &[String]) -> Result<(), Error> {
        sqlx::query!("insert into shard (shard) select unnest($1::text[]) on conflict (shard) do nothing", shards)
            .execute(&mut self.connection)
            .await?;
        Ok(())
    }

    /// Makes an operator key with every operator scope.
    pub async fn create_operator_key(&mut self, new: &NewOperatorKey) -> Result<(), Error> {
        let scopes = Scope::OPERATOR.map(|scope| scope.word().to_owned());
        sqlx::query!(
            "insert into operator_key (key_id, name, secret_hash, scopes, created_at) values ($1, $2, $3, $4, $5)",
            new.id,
            new.name.as_str(),
            &new.secret_hash,
            &scopes,
            new.at.to_sqlx() as _
        )
        .execute(&mut self.connection)
        .await?;
        Ok(())
    }

    /// Says goodbye.
    pub async fn close(self) -> Result<(), Error> {
        Ok(self.connection.close().await?)
    }
}

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/directory");

/// How a schema with this note differs from this program's.
pub(crate) fn difference(noted: Option<&str>) -> Option<String> {
    store::schema_difference(&MIGRATIONS, noted)
}
