//! `seriatim doctor`: what is there, what is missing, what to type.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::PathBuf,
};

use serde_json::Value;
use sqlx::Executor;
use testkit::{App, prove, run_program};

/// What it said: whether all is well, its lines, and the same as JSON.
struct Said {
    well: bool,
    lines: String,
    json: Value,
}

impl Said {
    /// Both ways of saying it, which must carry the same facts and the same exit code.
    async fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let plain = run_program(&[&["doctor"], arguments].concat(), environment).await;
        let json = run_program(&[&["doctor", "--json"], arguments].concat(), environment).await;
        let (lines, text) = (String::from_utf8(plain.stdout).unwrap(), String::from_utf8(json.stdout).unwrap());
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let well = plain.status.success();
        assert!(plain.status.code() == Some(i32::from(!well)) && plain.stderr.is_empty(), "{lines}");
        assert_eq!(json["ok"], well);
        let findings = json["findings"].as_array().unwrap();
        let of_level = |level: &str| findings.iter().filter(|finding| finding["level"] == level).count();
        for (word, level) in [("ok  ", "ok"), ("note", "note"), ("MISSING", "missing"), ("WRONG", "wrong")] {
            assert_eq!(lines.lines().filter(|line| line.starts_with(word)).count(), of_level(level), "{lines}\n{text}");
        }
        for finding in findings {
            // Clocks drift and disks fill between the two runs.
            let about = finding["about"].as_str().unwrap();
            let measured = about == "disk" || about.ends_with(" clock");
            let said = measured || lines.contains(finding["says"].as_str().unwrap());
            assert!(said, "{finding} is not in:\n{lines}");
            let bad = finding["level"] == "missing" || finding["level"] == "wrong";
            assert!(!bad || finding["advice"].is_string(), "{finding} says nothing about what to do");
        }
        Self { well, lines, json }
    }

    /// The level of the finding about this.
    fn level(&self, about: &str) -> &str {
        let findings = self.json["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["about"] == about);
        found.unwrap_or_else(|| panic!("nothing about {about} in:\n{}", self.lines))["level"].as_str().unwrap()
    }

    fn expect(&self, about: &str, level: &str, words: &[&str]) {
        assert_eq!(self.level(about), level, "{}", self.lines);
        for word in words {
            assert!(self.lines.contains(word), "no {word} in:\n{}", self.lines);
        }
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("seriatim-test-doctor-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn a_machine_that_has_everything_is_well_and_stays_as_it_is() {
    block_on(async {
        let data = folder("new");
        let said = Said::run(&["--port", "0", "--data", data.to_str().unwrap()], &[]).await;
        assert!(said.well, "{}", said.lines);
        said.expect("postgresql", "ok", &["ok       PostgreSQL ", "/bin"]);
        said.expect("data folder", "ok", &["nothing there yet"]);
        said.expect("account", "ok", &["its server will run as "]);
        said.expect("disk", "ok", &["GB are free"]);
        assert!(!data.exists(), "it only looks");
    });
}

#[test]
fn without_postgresql_it_says_what_to_type() {
    block_on(async {
        let data = folder("without");
        let environment = [("SERIATIM_PG_BIN", "/nonexistent")];
        let said = Said::run(&["--port", "0", "--data", data.to_str().unwrap()], &environment).await;
        assert!(!said.well);
        let words = ["MISSING  PostgreSQL (version 15 or later) was not found in /nonexistent", "SERIATIM_PG_BIN"];
        said.expect("postgresql", "missing", &words);
    });
}

#[test]
fn a_busy_port_is_wrong() {
    block_on(async {
        let (data, busy) = (folder("busy"), TcpListener::bind("127.0.0.1:0").unwrap());
        let port = busy.local_addr().unwrap().port();
        let said = Said::run(&["--port", &port.to_string(), "--data", data.to_str().unwrap()], &[]).await;
        assert!(!said.well);
        said.expect("port", "wrong", &["something is listening on", &format!("--port {}", port.saturating_add(1))]);
    });
}

#[test]
fn a_folder_is_free_in_use_or_somebody_elses() {
    block_on(async {
        let data = folder("place");
        fs::create_dir(&data).unwrap();
        let arguments = ["--port", "0", "--data", data.to_str().unwrap()];
        fs::write(data.join("thesis.txt"), "years of work").unwrap();
        let said = Said::run(&arguments, &[]).await;
        assert!(!said.well);
        said.expect("data folder", "wrong", &["has other files in it", "choose a new or an empty folder"]);

        fs::remove_file(data.join("thesis.txt")).unwrap();
        let lock = File::create(data.join("lock")).unwrap();
        fs::create_dir(data.join("postgres")).unwrap();
        fs::write(data.join("postgres/PG_VERSION"), "15").unwrap();
        let said = Said::run(&arguments, &[]).await;
        assert!(said.well, "{}", said.lines);
        said.expect("data folder", "ok", &["there, and free"]);

        lock.lock().unwrap();
        let said = Said::run(&arguments, &[]).await;
        assert!(!said.well);
        said.expect("data folder", "wrong", &["a running program uses it", "--data FOLDER"]);
        fs::remove_dir_all(&data).unwrap();
    });
}

/// Where the databases are, by the roles of directory and shards.
async fn serving(app: &App, directory: &str, shards: &[(&str, String)]) -> Said {
    let shards: Vec<_> = shards.iter().map(|(name, url)| format!("{name}={url}")).collect();
    let (data, shards) = (folder("serving"), shards.join(","));
    let environment = [("SERIATIM_DIRECTORY_URL", directory), ("SERIATIM_SHARD_URLS", shards.as_str())];
    let said = Said::run(&["--port", "0", "--data", data.to_str().unwrap()], &environment).await;
    for role in ["postgres", "seriatim_owner", "seriatim_app", "seriatim_worker"] {
        let url = app.url(role, "directory");
        let password = url.split(['@', ':']).nth(2).unwrap();
        assert!(password.len() > 20 && !said.lines.contains(password) && !said.json.to_string().contains(password));
    }
    said
}

#[test]
fn databases_that_can_serve_are_well() {
    prove(async |app| {
        let shards = [("shard_1", app.url("seriatim_app", "shard_1")), ("shard_2", app.url("seriatim_app", "shard_2"))];
        let said = serving(app, &app.url("seriatim_app", "directory"), &shards).await;
        assert!(said.well, "{}", said.lines);
        for database in ["directory", "shard shard_1", "shard shard_2"] {
            for about in ["", " role", " schema", " clock"] {
                said.expect(&format!("{database}{about}"), "ok", &[]);
            }
        }
        said.expect("shard shard_2 in the directory", "ok", &["the directory knows it"]);
        // A machine that only serves needs no PostgreSQL of its own.
        let (data, directory) = (folder("elsewhere"), app.url("seriatim_app", "directory"));
        let shards = shards.map(|(name, url)| format!("{name}={url}")).join(",");
        let environment = [
            ("SERIATIM_DIRECTORY_URL", directory.as_str()),
            ("SERIATIM_SHARD_URLS", shards.as_str()),
            ("SERIATIM_PG_BIN", "/nonexistent"),
        ];
        let said = Said::run(&["--port", "0", "--data", data.to_str().unwrap()], &environment).await;
        assert!(said.well, "{}", said.lines);
        said.expect("postgresql", "note", &["only seriatim dev needs this"]);
    });
}

#[test]
fn a_role_that_row_level_security_does_not_hold_is_wrong() {
    prove(async |app| {
        let shards = [("shard_1", app.url("seriatim_owner", "shard_1")), ("shard_2", app.url("seriatim_worker", "shard_2"))];
        let said = serving(app, &app.url("postgres", "directory"), &shards).await;
        assert!(!said.well);
        said.expect("directory role", "wrong", &["postgres is a superuser", "Give the address of seriatim_app"]);
        said.expect("shard shard_1 role", "wrong", &["seriatim_owner owns the tables"]);
        said.expect("shard shard_2 role", "wrong", &["seriatim_worker may not serve"]);
    });
}

#[test]
fn databases_that_are_away_or_of_another_version_are_wrong() {
    prove(async |app| {
        let note = "comment on table _sqlx_migrations is '1:000000000000 2:000000000000'";
        app.superuser("shard_1").await.execute(note).await.unwrap();
        app.superuser("directory").await.execute("comment on table _sqlx_migrations is null").await.unwrap();
        let right = app.url("seriatim_app", "shard_2");
        let wrong_word = right.replacen("seriatim_app:", "seriatim_app:not", 1);
        let away = "postgres://seriatim_app:hidden-word@127.0.0.1:1/shard".to_owned();
        let shards = [("shard_1", app.url("seriatim_app", "shard_1")), ("shard_2", wrong_word), ("shard_3", away)];
        let said = serving(app, &app.url("seriatim_app", "directory"), &shards).await;
        assert!(!said.well && !said.lines.contains("hidden-word"));
        said.expect("directory schema", "wrong", &["it was never migrated", "Type: seriatim migrate"]);
        said.expect("shard shard_1 schema", "wrong", &["migration 1 is not the one of this program"]);
        said.expect("shard shard_2", "wrong", &["give the address the role's password"]);
        said.expect("shard shard_3", "wrong", &["check the address's host and port"]);
        said.expect("shard shard_3 in the directory", "wrong", &["--shard-owner shard_3=…"]);

        let said = serving(app, &app.url("seriatim_app", "directory"), &[("shard_1", right)]).await;
        said.expect("shard shard_2 in the directory", "missing", &["its address is not set"]);
        let said = Said::run(&["--port", "0", "--shard", "shard_1:postgres://seriatim_app:hidden-word@host/shard"], &[]).await;
        assert!(!said.well && !said.lines.contains("hidden-word") && !said.json.to_string().contains("hidden-word"));
        said.expect("directory", "missing", &["SERIATIM_DIRECTORY_URL"]);
        said.expect("shards", "wrong", &["a shard is written NAME=URL"]);
    });
}

/// A slip in an address must not put its password on the screen or into a log.
#[test]
fn an_address_that_can_not_be_read_is_not_repeated() {
    block_on(async {
        let slip = "shard_1:postgres://seriatim_app:hidden-word@host/shard";
        let serve = ["serve", "--directory-url", "postgres://host/directory", "--shard", slip];
        let migrate = ["migrate", "--directory-owner-url", "postgres://host/directory", "--shard-owner", slip];
        for arguments in [serve, migrate] {
            let done = run_program(&arguments, &[]).await;
            let said = String::from_utf8(done.stderr).unwrap();
            assert!(!done.status.success() && said.contains("a shard is written NAME=URL"), "{said}");
            assert!(!said.contains("hidden-word"), "{said}");
        }
    });
}
