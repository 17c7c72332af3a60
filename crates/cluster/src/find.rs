//! Where PostgreSQL is on this machine.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Error,
    system::{Manager, POSTGRESQL},
};

/// The oldest major version that will do.
const OLDEST: u32 = 15;

/// A PostgreSQL installation that has everything needed.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The folder of its programs.
    pub bin: PathBuf,
    /// Its major version.
    pub version: u32,
}

impl Tools {
    /// The path of one of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

/// The newest PostgreSQL ≥ 15 on the machine: in `SERIATIM_PG_BIN` alone if that is set, otherwise on the
/// PATH and in the usual folders of Debian, Fedora, Homebrew and of an installation from source.
pub fn find() -> Result<Tools, Error> {
    let named = env::var_os("SERIATIM_PG_BIN").map(PathBuf::from);
    let folders = named.as_ref().map_or_else(usual_folders, |folder| vec![folder.clone()]);
    let found: Vec<Tools> = folders.iter().filter_map(|folder| look(folder)).collect();
    let newest = found.iter().max_by_key(|tools| tools.version);
    let what = match newest {
        Some(tools) if tools.version >= OLDEST => return Ok(tools.clone()),
        Some(old) => {
            format!("PostgreSQL {} in {} is too old; version {OLDEST} or later is needed", old.version, old.bin.display())
        }
        None => {
            let only = named.map(|folder| format!(" in {}, the only place that SERIATIM_PG_BIN leaves", folder.display()));
            format!("PostgreSQL (version {OLDEST} or later) was not found{}", only.unwrap_or_default())
        }
    };
    Err(Error::NotFound { what, advice: advice() })
}

fn usual_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    folders.push("/usr/local/pgsql/bin".into());
    for (parent, prefix, rest) in [
        ("/usr/lib/postgresql", "", "bin"),
        ("/usr", "pgsql-", "bin"),
        ("/opt/homebrew/opt", "postgresql", "bin"),
        ("/usr/local/opt", "postgresql", "bin"),
    ] {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        folders.extend(named.map(|entry| entry.path().join(rest)));
    }
    folders
}

fn look(folder: &Path) -> Option<Tools> {
    // A link in a folder of the PATH leads to where the rest of the installation is.
    let server = fs::canonicalize(folder.join("postgres")).ok()?;
    let bin = server.parent()?.to_owned();
    if !["initdb", "pg_ctl"].iter().all(|name| bin.join(name).exists()) {
        return None;
    }
    let said = Command::new(&server).arg("--version").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let version = said.split_whitespace().nth(2)?.split('.').next()?;
    let version = version.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()?;
    Some(Tools { bin, version })
}

/// The one command to type on this system.
fn advice() -> String {
    let unusual = "set SERIATIM_PG_BIN to the folder that holds initdb and postgres";
    match Manager::of_machine() {
        Some(manager) => format!("Type: {}\nIf it is somewhere unusual, {unusual}.", manager.line(&POSTGRESQL)),
        None => format!("Install it with the system's package manager, or {unusual}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_holds_no_installation() {
        assert!(look(Path::new("/nonexistent")).is_none());
    }

    #[test]
    fn advice_is_a_command_or_a_way() {
        assert!(advice().contains("SERIATIM_PG_BIN"));
    }
}
