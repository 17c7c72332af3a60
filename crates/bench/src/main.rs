//! How fast, beside what: the program as a process, its whole HTTP path, against scripts on the same server that
//! write the same rows. Run it as `cargo xtask bench`; it is in no release.
//!
//! A figure is measured in turns (`turns`), each on a database of its own, and what was acknowledged is counted
//! in that database afterwards (`proof`). `figures` says what is measured beside what; `rivals` holds the scripts.

mod figures;
mod gateway;
mod load;
mod machine;
mod plan;
mod proof;
mod proving;
mod requests;
mod rivals;
mod server;
mod stock;
mod table;
mod turns;
mod watch;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use crate::{figures::Figure, machine::Machine, plan::Plan, server::Server, table::Report, turns::Bench};

/// What ends a figure, or the run: a sentence for a person.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measure how fast numbers are issued, beside what else could issue them.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench", max_term_width = 100)]
struct Arguments {
    /// Tiny sizes, about a minute: whether everything can be measured, not how fast it is
    #[arg(long)]
    quick: bool,
    /// One figure alone
    #[arg(long, value_name = "FIGURE", value_enum)]
    only: Option<Figure>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    /// How long each turn is measured
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: Option<u32>,
    /// Also put the table into this document, between its marks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "only"])]
    write: Option<PathBuf>,
    /// The program to measure; what starts this one says where it is
    #[arg(long, hide = true, default_value = "target/release/seriatim")]
    program: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = tokio::select! {
        done = run(&arguments) => done,
        // What was begun is dropped on the way out: gateways, scripts, the server with its folder.
        () = asked_to_stop() => Err("stopped".into()),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            say(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = if arguments.quick { Plan::quick(arguments.seconds) } else { Plan::full(arguments.seconds) };
    let server = Server::start().await?;
    let mut bench = Bench { server, plan, program: arguments.program.clone(), peak: None, turns: 0 };
    let figures = arguments.only.map_or_else(|| Figure::value_variants().to_vec(), |only| vec![only]);
    let (mut lines, mut failed) = (Vec::new(), Vec::new());
    for figure in figures {
        match figure.measure(&mut bench).await {
            Ok(found) => lines.extend(found),
            Err(why) => {
                say(&format!("{}: {why}", figure.name()));
                failed.push((figure.name(), why.to_string()));
            }
        }
    }
    let machine = Machine::look(&bench.server.version().await?, &bench.program, command());
    let manner = format!(
        "Medians of {} rounds of turns of {} s, {} turns in all; each on a fresh database of one PostgreSQL server, whose \
         numbers were counted afterwards. Clients, gateways and server share the machine.",
        plan.rounds, plan.seconds, bench.turns
    );
    let report = Report { lines, failed, machine, manner, quick: plan.quick };
    let said = if arguments.json { format!("{:#}", report.json()) } else { report.markdown() };
    io::stdout().write_all(format!("{said}\n").as_bytes())?;
    if let Some(file) = &arguments.write {
        report.write(file)?;
    }
    if report.missed() > 0 {
        say(&format!("{} of {} figures do not hold", report.missed(), report.lines.len()));
    }
    Ok(if report.failed.is_empty() && report.missed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn asked_to_stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// What to type for the same run.
fn command() -> String {
    let mut words = std::env::args().skip(1);
    let mut text = "cargo xtask bench".to_owned();
    while let Some(word) = words.next() {
        if word == "--program" {
            words.next();
        } else {
            text.push_str(&format!(" {word}"));
        }
    }
    text
}

/// Progress, beside what is found.
fn say(what: &str) {
    eprintln!("== {what}");
}
