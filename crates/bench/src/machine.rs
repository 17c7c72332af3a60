//! On what it was measured.

use std::{fs, path::Path, process::Command, thread};

use serde_json::{Value, json};

use crate::server::SETTINGS;

/// Machine and versions, each as its own line says it.
#[derive(Debug)]
pub(crate) struct Machine(Vec<(&'static str, String)>);

impl Machine {
    /// This one.
    pub(crate) fn look(postgresql: &str, program: &Path, command: String) -> Self {
        let cores = thread::available_parallelism().map_or(0, usize::from);
        let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".to_owned());
        let memory = field("/proc/meminfo", "MemTotal").and_then(|said| said.strip_suffix(" kB")?.parse::<u64>().ok());
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
        Self(vec![
            ("cores", format!("{cores} × {cpu}")),
            ("memory", format!("{} MiB", memory.unwrap_or_default() / 1024)),
            ("kernel", kernel),
            ("PostgreSQL", format!("{postgresql}, fsync on, {}, the rest as it comes", SETTINGS.join(", "))),
            ("rustc", said(Command::new("rustc").arg("--version"))),
            ("seriatim", format!("{}, commit {}", said(Command::new(program).arg("--version")), commit())),
            ("command", command),
        ])
    }

    /// As a list.
    pub(crate) fn markdown(&self) -> String {
        self.0.iter().map(|(name, value)| format!("- {name}: {value}\n")).collect()
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    }
}

/// The commit that was built, and whether the sources are another by now.
fn commit() -> String {
    let commit = said(Command::new("git").args(["rev-parse", "--short", "HEAD"]));
    let clean = said(Command::new("git").args(["status", "--porcelain", "--untracked-files=no"])).is_empty();
    if clean { commit } else { format!("{commit} with changes") }
}

fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    output.unwrap_or_else(|_| "unknown".to_owned())
}

/// The value of the first `name: value` of a file.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
