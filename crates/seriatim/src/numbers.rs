//! One number at a time: reserve, confirm, fail, void, release, and what became of it.

use std::time::Duration;

use api::{Conflict, Entry, Explained, Number, Reserve, Sighting, Step, client::Error};
use clap::Args;
use gateway::{Entropy, SystemClock, SystemEntropy};
use serde_json::json;

use crate::{Failure, address::Server};

/// How often something that may pass is tried again.
const TRIES: u64 = 20;

/// Reserve a number for a document.
#[derive(Args)]
pub(crate) struct ReserveNumber {
    #[command(flatten)]
    server: Server,
    /// The series
    #[arg(long)]
    series: String,
    /// The document's reference: asked again, it has the same number
    #[arg(long = "ref", value_name = "REFERENCE")]
    reference: String,
    /// The document's date (YYYY-MM-DD); without it today
    #[arg(long)]
    date: Option<String>,
    /// The Idempotency-Key; without it a new one
    #[arg(long)]
    key: Option<String>,
    /// For programs
    #[arg(long)]
    json: bool,
}

impl ReserveNumber {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let client = self.server.client()?;
        let key = self.key.unwrap_or_else(new_key);
        let body = Reserve { document_ref: self.reference, document_date: self.date, metadata: None };
        let reserved = patiently(|| client.reserve(&self.series, &key, &body)).await?;
        show(&reserved.body, self.json)
    }
}

/// Which number, and why.
#[derive(Args)]
pub(crate) struct StepOf {
    #[command(flatten)]
    server: Server,
    /// The number, as it stands on the document
    number: String,
    /// The series
    #[arg(long)]
    series: String,
    /// Why; it is kept in the number's history
    #[arg(long)]
    reason: Option<String>,
    /// Which life of the number is meant, where it was released and given again; without it the first
    #[arg(long)]
    life: Option<i32>,
    /// For programs
    #[arg(long)]
    json: bool,
}

impl StepOf {
    pub(crate) async fn run(self, verb: &str) -> Result<(), Failure> {
        let client = self.server.client()?;
        let body = Step { reason: self.reason, life: self.life };
        let number = patiently(|| client.step(&self.series, &self.number, verb, &body)).await?;
        show(&number, self.json)
    }
}

/// Say what became of a number, used or not.
#[derive(Args)]
pub(crate) struct ExplainNumber {
    #[command(flatten)]
    server: Server,
    /// The number, as it stands on the document
    number: String,
    /// The series; without it every series is asked
    #[arg(long)]
    series: Option<String>,
    /// For programs
    #[arg(long)]
    json: bool,
}

impl ExplainNumber {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let client = self.server.client()?;
        if let Some(series) = &self.series {
            let explained = patiently(|| client.number(series, &self.number)).await?;
            if self.json {
                println!("{}", serde_json::to_string(&explained)?);
            } else {
                print!("{}", story(&explained));
            }
            return Ok(());
        }
        let found = patiently(|| client.find(&self.number)).await?;
        if self.json {
            println!("{}", serde_json::to_string(&found)?);
            return Ok(());
        }
        if found.items.is_empty() {
            println!("no series could make {}", self.number);
        }
        for sighting in &found.items {
            match sighting {
                Sighting::Here(explained) => print!("{}", story(explained)),
                Sighting::Away { series, .. } => println!("series {series} can't be asked just now"),
            }
        }
        Ok(())
    }
}

/// What the gateway, or the way to it, said, in words for a person and whole for a program.
#[derive(Debug)]
pub(crate) struct Told(pub(crate) Error);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&tell(&self.0))
    }
}

impl std::error::Error for Told {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0)
    }
}

/// Tries again what may pass, and says after a while that it does; whatever is called is safe to repeat.
pub(crate) async fn patiently<T, Call>(mut call: impl FnMut() -> Call) -> Result<T, Failure>
where
    Call: Future<Output = Result<T, Error>>,
{
    let mut tries = 0;
    loop {
        match call().await {
            Err(error) if error.is_passing() && tries < TRIES => {
                tries += 1;
                if tries == 5 {
                    eprintln!("seriatim: {}; trying again for some seconds", tell(&error));
                }
                tokio::time::sleep(Duration::from_millis(100 * tries)).await;
            }
            Err(error) => return Err(Told(error).into()),
            Ok(done) => return Ok(done),
        }
    }
}

/// An error in words, with each field that is wrong or that others changed.
pub(crate) fn tell(error: &Error) -> String {
    match error {
        Error::Problem(problem) if !problem.errors.is_empty() => {
            problem.errors.iter().map(|e| format!("{} {}", e.pointer, e.detail)).collect::<Vec<_>>().join("; ")
        }
        Error::Problem(problem) if !problem.conflicts.is_empty() => {
            let field = |it: &Conflict| format!("\n  {}: was {}, you want {}, it is {}", it.field, it.base, it.yours, it.theirs);
            format!("{}{}", problem.detail, problem.conflicts.iter().map(field).collect::<String>())
        }
        other => other.to_string(),
    }
}

/// A key that nobody had.
pub(crate) fn new_key() -> String {
    let entropy: &dyn Entropy = &SystemEntropy;
    gateway::uuid(domain::clock::Clock::instant(&SystemClock), entropy).to_string()
}

fn show(number: &Number, as_json: bool) -> Result<(), Failure> {
    if as_json {
        println!("{}", serde_json::to_string(number)?);
    } else {
        let document = number.document_ref.as_deref().unwrap_or("no document");
        let life = number.life.map(|life| format!("  life {life}")).unwrap_or_default();
        println!("{}  {}  {document}  {}{life}", number.number, number.state, number.document_date);
    }
    Ok(())
}

fn story(explained: &Explained) -> String {
    let mut out = format!(
        "{} in series {}: {}\n  value {} of period {}",
        explained.number, explained.series, explained.state, explained.value, explained.period
    );
    if let Some(date) = &explained.document_date {
        let document = explained.document_ref.as_deref().unwrap_or("without a reference");
        out.push_str(&format!(", document {document} of {date}"));
    }
    if let Some(life) = explained.life {
        out.push_str(&format!(", life {life}"));
    }
    out.push('\n');
    if let Some(metadata) = &explained.metadata {
        out.push_str(&format!("  kept with it: {}\n", json!(metadata)));
    }
    out.extend(explained.history.iter().map(line));
    out
}

fn line(entry: &Entry) -> String {
    let step = match &entry.from {
        Some(from) if *from == entry.to => entry.to.clone(),
        Some(from) => format!("{from} -> {}", entry.to),
        None => entry.to.clone(),
    };
    let at = entry.at.as_deref().unwrap_or("");
    let by = entry.principal.as_deref().map(|by| format!("  by {by}")).unwrap_or_default();
    let call = entry.operation_id.as_deref().map(|id| format!("  in {id}")).unwrap_or_default();
    let why = entry.reason.as_deref().map(|why| format!("  ({why})")).unwrap_or_default();
    format!("  {at:<28}{step:<22}{by}{call}{why}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_told_line_by_line() {
        let entry = |from: Option<&str>, to: &str, reason: Option<&str>| Entry {
            at: Some("2026-01-02T03:04:05.000000Z".into()),
            from: from.map(Into::into),
            to: to.into(),
            principal: Some("key:1".into()),
            operation_id: Some("op".into()),
            reason: reason.map(Into::into),
            trace_id: None,
        };
        let explained = Explained {
            number: "A-1454".into(),
            value: 1454,
            period: "2026".into(),
            part: 0,
            series: "invoices".into(),
            state: "voided".into(),
            life: None,
            document_ref: Some("order-9".into()),
            document_date: Some("2026-01-02".into()),
            issued_at: None,
            metadata: None,
            history: vec![entry(None, "reserved", None), entry(Some("reserved"), "voided", Some("cancelled"))],
        };
        assert_eq!(
            story(&explained),
            "A-1454 in series invoices: voided\n  value 1454 of period 2026, document order-9 of 2026-01-02\n  \
             2026-01-02T03:04:05.000000Z reserved                by key:1  in op\n  \
             2026-01-02T03:04:05.000000Z reserved -> voided      by key:1  in op  (cancelled)\n"
        );
    }
}
