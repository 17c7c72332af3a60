//! What the owner does: migrations, shards, the first operator key. Never part of serving.

use std::collections::BTreeMap;

use domain::{id::Label, principal::Scope};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use sqlx::{AssertSqlSafe, Connection, PgConnection, migrate::Migrator};
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
        note(&mut self.connection).await
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

/// Which migrations were run, beside their table: its rows are the owner's alone, its comment can be read by the
/// role that serves.
async fn note(db: &mut PgConnection) -> Result<(), Error> {
    // Numbers and hexadecimal digits; a comment takes no parameters.
    let comment = format!("comment on table public._sqlx_migrations is '{}'", words().join(" "));
    sqlx::query(AssertSqlSafe(comment)).execute(db).await?;
    Ok(())
}

/// Version and begin of the checksum of each migration of this program.
fn words() -> Vec<String> {
    let begin = |sum: &[u8]| sum.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<String>();
    MIGRATIONS.iter().map(|migration| format!("{}:{}", migration.version, begin(&migration.checksum))).collect()
}

/// How a schema with this comment differs from this program's.
pub(crate) fn difference(noted: Option<&str>) -> Option<String> {
    let Some(noted) = noted else { return Some("it was never migrated".to_owned()) };
    let ours: BTreeMap<String, String> = words().iter().filter_map(|word| pair(word)).collect();
    let theirs: BTreeMap<String, String> = noted.split(' ').filter_map(pair).collect();
    ours.iter()
        .find_map(|(version, sum)| match theirs.get(version) {
            None => Some(format!("it lacks migration {version}")),
            Some(other) if other != sum => Some(format!("its migration {version} is not the one of this program")),
            Some(_) => None,
        })
        .or_else(|| {
            let unknown = theirs.keys().find(|version| !ours.contains_key(*version))?;
            Some(format!("it has migration {unknown}, which this program does not know"))
        })
}

fn pair(word: &str) -> Option<(String, String)> {
    word.split_once(':').map(|(version, sum)| (version.to_owned(), sum.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_named() {
        let same = words().join(" ");
        assert_eq!(difference(Some(&same)), None);
        assert!(difference(Some("")).unwrap().contains("lacks migration 1"));
        assert!(difference(Some(&format!("{same} 9999:00"))).unwrap().contains("has migration 9999"));
        assert!(difference(Some(&same.replacen(&words()[0], "1:00", 1))).unwrap().contains("migration 1 is not the one"));
        assert!(difference(None).is_some());
    }
}
