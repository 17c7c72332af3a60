//! Bringing a shard's schema up to this version, as its owner.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Connection, PgConnection, migrate::Migrator};
use store::Error;

/// Migrates the shard at the owner's address, over a connection of its own: what a failed migration holds
/// ends with it.
pub async fn migrate(owner_url: &str) -> Result<(), Error> {
    let mut connection = store::connect_once(owner_url).await?;
    MIGRATIONS.run(&mut connection).await.map_err(|e| Error::Failed(e.into()))?;
    note(&mut connection).await?;
    Ok(connection.close().await?)
}

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/shard");

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
