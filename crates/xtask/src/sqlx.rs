//! Checks the queries against the migrations and writes the answers that builds rely on (`.sqlx`).
//! Needs PostgreSQL's `psql`, beside the server; only somebody who changes SQL needs this.

use std::{env, fs, path::Path, process::Command};

use cluster::{Cluster, Options, Tools};

use crate::{cargo_program, say, succeed};

/// Each crate with SQL, the database it is for, its migrations, and the variable in its `sqlx.toml`.
const CRATES: [(&str, &str, &str, &str); 2] = [
    ("directory", "directory", "migrations/directory", "SERIATIM_DIRECTORY_URL"),
    ("ledger", "shard_1", "migrations/shard", "SERIATIM_SHARD_URL"),
];

pub(crate) fn renew() -> Result<(), String> {
    let tools = cluster::find().map_err(|e| e.to_string())?;
    let options = Options { folder: None, durable: false, max_connections: 20, settings: &[] };
    let cluster = Cluster::start(&options, &|what| say(what)).map_err(|e| e.to_string())?;
    for (name, database, migrations, variable) in CRATES {
        let url = cluster.url("seriatim_owner", database);
        migrate(&tools, &url, Path::new(migrations))?;
        say(&format!("checking the queries of {name}"));
        let folder = env::current_dir().map_err(|e| e.to_string())?.join("crates").join(name);
        let answers = folder.join(".sqlx");
        let _ = fs::remove_dir_all(&answers);
        fs::create_dir(&answers).map_err(|e| e.to_string())?;
        touch(&folder.join("src/lib.rs"))?;
        let mut check = Command::new(cargo_program());
        check.args(["check", "--quiet", "--package", name]);
        succeed(check.env("SQLX_OFFLINE", "false").env("SQLX_OFFLINE_DIR", &answers).env(variable, &url))?;
    }
    Ok(())
}

pub(crate) fn migrate(tools: &Tools, url: &str, folder: &Path) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| e.to_string())?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let mut psql = Command::new(tools.program("psql"));
        succeed(psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-1", "-d", url, "-f"]).arg(file))?;
    }
    Ok(())
}

/// The macros only run where the crate is compiled anew.
fn touch(file: &Path) -> Result<(), String> {
    let text = fs::read(file).map_err(|e| e.to_string())?;
    fs::write(file, text).map_err(|e| e.to_string())
}
