//! What there is on this machine, what is missing, and what to type about it.

mod databases;
mod machine;

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use serde::Serialize;

use crate::dev;

/// Say what was found on this machine, and what to do.
#[derive(Args)]
pub(crate) struct Doctor {
    /// The port on 127.0.0.1 that dev would listen on
    #[arg(long, default_value_t = dev::PORT)]
    port: u16,
    /// The data folder that dev would use
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// The directory's address, as seriatim_app
    #[arg(long, env = "SERIATIM_DIRECTORY_URL", hide_env_values = true)]
    directory_url: Option<String>,
    /// A shard's name and address, as seriatim_app; once for each
    #[arg(long = "shard", value_name = "NAME=URL", env = "SERIATIM_SHARD_URLS", value_delimiter = ',', hide_env_values = true)]
    shards: Vec<String>,
    /// One JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// How a finding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing must be done.
    Note,
    /// Not there and needed.
    Missing,
    /// There, and not as it must be.
    Wrong,
}

impl Level {
    /// What a person sees: what must be done stands out.
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Missing => "MISSING",
            Self::Wrong => "WRONG",
        }
    }

    fn must_be_done(self) -> bool {
        matches!(self, Self::Missing | Self::Wrong)
    }
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    /// A short name that stays the same, for programs.
    about: String,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    fn new(level: Level, about: impl Into<String>, says: impl Into<String>) -> Self {
        Self { level, about: about.into(), says: says.into(), advice: None }
    }

    fn ok(about: impl Into<String>, says: impl Into<String>) -> Self {
        Self::new(Level::Ok, about, says)
    }

    fn wrong(about: impl Into<String>, says: impl Into<String>) -> Self {
        Self::new(Level::Wrong, about, says)
    }

    fn advice(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

#[derive(Serialize)]
struct Report {
    ok: bool,
    findings: Vec<Finding>,
}

impl Doctor {
    pub(crate) async fn run(self) -> ExitCode {
        let serves = self.directory_url.is_some() || !self.shards.is_empty();
        let mut findings = machine::look(self.data.as_deref(), self.port).await;
        if serves {
            // Who serves on databases elsewhere needs none of it.
            for finding in findings.iter_mut().filter(|finding| finding.level.must_be_done()) {
                finding.level = Level::Note;
                finding.says.push_str(" (only seriatim dev needs this)");
            }
            findings.extend(databases::look(self.directory_url.as_deref(), &self.shards).await);
        }
        let report = Report { ok: !findings.iter().any(|finding| finding.level.must_be_done()), findings };
        if self.json {
            println!("{}", serde_json::to_string_pretty(&report).unwrap_or_default());
        } else {
            report.print(serves);
        }
        if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl Report {
    fn print(&self, serves: bool) {
        for finding in &self.findings {
            let (first, more) = finding.says.split_once('\n').unwrap_or((&finding.says, ""));
            println!("{:<8} {first}", finding.level.word());
            for line in more.lines().chain(finding.advice.iter().flat_map(|advice| advice.lines())) {
                println!("         {line}");
            }
        }
        let next = if serves { "seriatim serve" } else { "seriatim dev" };
        if self.ok {
            println!("\nEverything that {next} needs is there.");
        } else {
            println!("\n{next} can't do its work yet; what to do stands below each line in capitals.");
        }
    }
}
