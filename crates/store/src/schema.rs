//! Whether a schema is the one that a program brings: what was migrated is noted where every role can read it.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, PgConnection, migrate::Migrator};

use crate::Error;

/// Which migrations were run, beside their table: its rows are the owner's alone, its comment can be read by the
/// role that serves.
pub async fn note_migrations(db: &mut PgConnection, migrations: &Migrator) -> Result<(), Error> {
    // Numbers and hexadecimal digits; a comment takes no parameters.
    let comment = format!("comment on table public._sqlx_migrations is '{}'", words(migrations).join(" "));
    sqlx::query(AssertSqlSafe(comment)).execute(db).await?;
    Ok(())
}

/// Version and begin of the checksum of each migration of this program.
fn words(migrations: &Migrator) -> Vec<String> {
    let begin = |sum: &[u8]| sum.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<String>();
    migrations.iter().map(|migration| format!("{}:{}", migration.version, begin(&migration.checksum))).collect()
}

/// How a schema with this note, none where nothing was ever noted, differs from these migrations; none where it does not.
pub fn schema_difference(migrations: &Migrator, noted: Option<&str>) -> Option<String> {
    let Some(noted) = noted else { return Some("it was never migrated".to_owned()) };
    let ours: BTreeMap<String, String> = words(migrations).iter().filter_map(|word| pair(word)).collect();
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
        let migrations: Migrator = sqlx::migrate!("../../migrations/shard");
        let (same, first) = (words(&migrations).join(" "), words(&migrations)[0].clone());
        let difference = |noted: Option<&str>| schema_difference(&migrations, noted);
        assert_eq!(difference(Some(&same)), None);
        assert!(difference(Some("")).unwrap().contains("lacks migration 1"));
        assert!(difference(Some(&format!("{same} 9999:00"))).unwrap().contains("has migration 9999"));
        assert!(difference(Some(&same.replacen(&first, "1:00", 1))).unwrap().contains("migration 1 is not the one"));
        assert!(difference(None).is_some());
    }
}
