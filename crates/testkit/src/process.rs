//! The program itself, as a process.

use std::{
    collections::BTreeMap,
    env,
    path::PathBuf,
    process::{Output, Stdio},
    sync::OnceLock,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

/// A gateway or a dispatcher that runs as a process of its own. Killed when dropped.
pub struct Process {
    /// Where it listens; nothing for a dispatcher.
    pub base: String,
    child: Child,
    _lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) async fn gateway(directory_url: &str, shard_urls: &BTreeMap<String, String>, fault: Option<&str>) -> Self {
        let mut command = Command::new(program());
        command.args(["serve", "--listen", "127.0.0.1:0", "--log", "warn"]);
        command.env("SERIATIM_DIRECTORY_URL", directory_url).env("SERIATIM_SHARD_URLS", words(shard_urls));
        let (this, said) = Self::start(command, fault).await;
        let base = said.strip_prefix("serving on ").unwrap_or_else(|| panic!("it said {said}")).to_owned();
        Self { base, ..this }
    }

    pub(crate) async fn dispatcher(
        apps: &BTreeMap<String, String>,
        workers: &BTreeMap<String, String>,
        fault: Option<&str>,
    ) -> Self {
        let mut command = Command::new(program());
        command.args(["dispatch", "--log", "warn"]);
        command.env("SERIATIM_SHARD_URLS", words(apps)).env("SERIATIM_WORKER_URLS", words(workers));
        let (this, said) = Self::start(command, fault).await;
        assert!(said.starts_with("dispatching"), "it said {said}");
        this
    }

    /// The process, and the first line that it says.
    async fn start(mut command: Command, fault: Option<&str>) -> (Self, String) {
        command.kill_on_drop(true).stdout(Stdio::piped());
        if let Some(fault) = fault {
            command.env("SERIATIM_FAULT", fault);
        }
        let mut child = command.spawn().expect("seriatim starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let said = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await.expect("it serves soon");
        let said = said.expect("its output").expect("a first line");
        (Self { base: String::new(), child, _lines: lines }, said)
    }

    /// Kills it outright (SIGKILL), if it has not died by itself.
    pub async fn kill(mut self) {
        let _ = self.child.start_kill();
        self.child.wait().await.expect("it is gone");
    }

    /// Waits until it has died by itself; whether it did so soon.
    pub async fn died(mut self) -> bool {
        tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await.is_ok()
    }

    /// Asks it to stop (SIGTERM) and waits; the exit code.
    pub async fn stop(mut self) -> Option<i32> {
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).expect("it runs");
        kill_process(pid, Signal::TERM).expect("it takes a signal");
        self.child.wait().await.expect("it ends").code()
    }
}

/// Addresses by name, as the program reads them.
fn words(urls: &BTreeMap<String, String>) -> String {
    urls.iter().map(|(name, url)| format!("{name}={url}")).collect::<Vec<_>>().join(",")
}

/// The program, built from the sources as they are.
pub fn program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        // The same words as `cargo xtask test` uses, so that nothing is built twice.
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = std::process::Command::new(cargo);
        let built = build.args(["build", "--quiet", "--workspace", "--bins", "--locked"]).status().expect("cargo runs");
        assert!(built.success(), "the program can't be built");
        let test = env::current_exe().expect("this program's path");
        test.parent().and_then(|deps| deps.parent()).expect("target/debug").join("seriatim")
    };
    BUILT.get_or_init(build).clone()
}

/// Runs the program to its end.
pub async fn run_program(args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program());
    command.args(args).envs(environment.iter().copied()).kill_on_drop(true).stdin(Stdio::null());
    let ended = tokio::time::timeout(Duration::from_secs(100), command.output()).await;
    ended.expect("it ends").expect("it runs")
}
