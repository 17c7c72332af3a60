//! The one binary: wires gateway and databases together and speaks to people.

mod address;
mod audit;
mod dev;
mod dispatch;
mod doctor;
mod export;
mod issue;
mod migrate;
mod numbers;
mod periods;
mod series;
mod serve;
mod shutdown;
mod telemetry;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Rust's usual one on Linux spends an eighth of a busy gateway's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Legally sequential document numbers as a service: never twice, never lost.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Seriatim {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run everything on this machine with databases of its own, and issue the first numbers
    Dev(dev::Dev),
    /// Say what was found on this machine, and what to do
    Doctor(doctor::Doctor),
    /// Serve HTTP on databases that are there
    Serve(serve::Serve),
    /// Settle what is overdue and audit every series, for ever
    Dispatch(dispatch::Dispatch),
    /// Bring the schemas up to this version and make the shards known
    Migrate(migrate::Migrate),
    /// Make an operator key and print it, once
    OperatorKey(migrate::OperatorKey),
    /// Make, look at and change series
    Series(series::SeriesCommand),
    /// Issue numbers for the documents in a file; run it again and nothing new is issued
    Issue(issue::IssueFile),
    /// Reserve a number for a document
    Reserve(numbers::ReserveNumber),
    /// Say that a reserved number stands on its document
    Confirm(numbers::StepOf),
    /// Say that the outside system refused the document; its number is kept
    Fail(numbers::StepOf),
    /// Give a number up for good, with a reason
    Void(numbers::StepOf),
    /// Give the last number back that never left the house
    Release(numbers::StepOf),
    /// Say what became of a number, used or not
    Number(numbers::ExplainNumber),
    /// Print the proof of a series
    Audit(audit::AuditSeries),
    /// Write the numbers of a series as CSV or JSON lines
    Export(export::Export),
    /// List the periods of a series, or close one for good
    Periods(periods::Periods),
}

/// What ends a command: a sentence for a person, with the causes behind it.
type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Seriatim::parse().verb {
        Verb::Dev(dev) => dev.run().await,
        Verb::Doctor(doctor) => return doctor.run().await,
        Verb::Serve(serve) => serve.run().await,
        Verb::Dispatch(dispatch) => dispatch.run().await,
        Verb::Migrate(migrate) => migrate.run().await,
        Verb::OperatorKey(key) => key.run().await,
        Verb::Series(series) => series.run().await,
        Verb::Issue(issue) => issue.run().await,
        Verb::Reserve(reserve) => reserve.run().await,
        Verb::Confirm(step) => step.run("confirm").await,
        Verb::Fail(step) => step.run("fail").await,
        Verb::Void(step) => step.run("void").await,
        Verb::Release(step) => step.run("release").await,
        Verb::Number(number) => number.run().await,
        Verb::Audit(audit) => audit.run().await,
        Verb::Export(export) => export.run().await,
        Verb::Periods(periods) => periods.run().await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(failure.as_ref());
            ExitCode::FAILURE
        }
    }
}

/// What went wrong, its causes (each once: some repeat their own), and what can be done.
fn complain(failure: &(dyn std::error::Error + 'static)) {
    if std::env::args_os().any(|word| word == "--json") {
        return complain_to_a_program(failure);
    }
    let mut said = failure.to_string();
    eprintln!("seriatim: {said}");
    let mut cause = failure.source();
    while let Some(next) = cause {
        let why = next.to_string();
        if !said.contains(&why) {
            eprintln!("  because: {why}");
            said = why;
        }
        cause = next.source();
    }
    if let Some(advice) = store::advice(failure) {
        eprintln!("  so: {advice}");
    }
}

/// One JSON object on standard error: the gateway's problem where it is one.
fn complain_to_a_program(failure: &(dyn std::error::Error + 'static)) {
    let problem = match failure.downcast_ref::<numbers::Told>() {
        Some(numbers::Told(api::client::Error::Problem(problem))) => serde_json::to_value(problem).ok(),
        _ => None,
    };
    eprintln!("{}", problem.unwrap_or_else(|| serde_json::json!({"title": "not done", "detail": failure.to_string()})));
}
