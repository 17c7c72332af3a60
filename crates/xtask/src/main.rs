//! Set-up and tests for people: `cargo xtask dev`, `cargo xtask test`, `cargo xtask sqlx`, `cargo xtask measure`,
//! `cargo xtask bench`.

mod measure;
mod setup;
mod sqlx;

use std::{
    env,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitCode},
};

const HELP: &str = "\
cargo xtask dev [OPTIONS]   build seriatim and run it with databases of its own (OPTIONS: see seriatim dev --help)
cargo xtask test [FILTER]   run every test
cargo xtask sqlx            check the queries against the migrations anew and write the .sqlx folders
cargo xtask measure predecessor
                            what the key from each number to the one before it costs (takes some minutes)
cargo xtask bench [OPTIONS] how fast numbers are issued, beside what else could issue them (some 20 minutes;
                            OPTIONS: --quick, --only FIGURE, --seconds N, --json, --write FILE, --help)
cargo xtask ci              what CI runs: formatting, lints, every test";

fn main() -> ExitCode {
    let mut words = env::args().skip(1);
    let verb = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    let done = match verb.as_str() {
        "dev" => dev(&rest),
        "test" => test(&rest),
        "sqlx" => sqlx::renew(),
        "measure" => match rest.as_slice() {
            [what] if what == "predecessor" => measure::predecessor(),
            _ => Err(format!("measure what?\n{HELP}")),
        },
        "bench" => bench(&rest),
        "ci" => ci(),
        "" | "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(format!("there is no {other}\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn dev(rest: &[String]) -> Result<(), String> {
    setup::services()?;
    say("building (some minutes the first time)");
    build()?;
    // In this one's place, so that whoever ends it ends no messenger.
    let program = target().join("debug/seriatim");
    Err(format!("{}: {}", program.display(), Command::new(&program).arg("dev").args(rest).exec()))
}

/// Both programs as a release has them. The two are built by themselves: with the testkit beside them, the program
/// would have its fault points.
fn bench(rest: &[String]) -> Result<(), String> {
    setup::services()?;
    // What it finds is on standard output, alone.
    eprintln!("\n== building for release (some minutes the first time)");
    cargo(&["build", "--release", "--locked", "-p", "seriatim", "-p", "bench"])?;
    let built = target().join("release");
    let mut command = Command::new(built.join("bench"));
    succeed(command.arg("--program").arg(built.join("seriatim")).args(rest))
}

fn ci() -> Result<(), String> {
    setup::tool("cargo-deny", "0.20.2")?;
    setup::tool("cargo-machete", "0.9.2")?;
    say("formatting");
    cargo(&["fmt", "--all", "--check"])?;
    say("licences, bans, sources, duplicate versions");
    cargo(&["deny", "--all-features", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"])?;
    say("unused dependencies");
    cargo(&["machete", "--with-metadata"])?;
    say("lints");
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    test(&[])?;
    say("whether everything can be measured (about a minute; how fast it is, is not judged)");
    let built = target().join("debug");
    succeed(Command::new(built.join("bench")).arg("--program").arg(built.join("seriatim")).arg("--quick"))
}

/// The programs are built first: some tests run them.
fn test(rest: &[String]) -> Result<(), String> {
    setup::services()?;
    say("building (some minutes the first time)");
    build()?;
    say("testing");
    let mut command = Command::new(cargo_program());
    command.args(["test", "--workspace", "--locked"]).args(rest);
    // Most of a test's time is waiting: for a clock, a lock, a process. Two for each core keep the cores busy.
    if env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        command.env("RUST_TEST_THREADS", (cores * 2).to_string());
    }
    succeed(&mut command)
}

/// All at once, so that dependencies are built with one set of features, the tests' own.
fn build() -> Result<(), String> {
    cargo(&["build", "--workspace", "--bins", "--locked"])
}

fn cargo(words: &[&str]) -> Result<(), String> {
    let mut command = Command::new(cargo_program());
    // A plug-in that sees this believes that it is itself run by `cargo run`, and reads its own name as an argument.
    succeed(command.args(words).env_remove("CARGO_PKG_NAME"))
}

fn cargo_program() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Where cargo builds.
fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    // Without its environment, which may hold a password.
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let shown = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(why) => Err(format!("{shown}: {why}")),
    }
}

fn say(what: &str) {
    println!("\n== {what}");
}
