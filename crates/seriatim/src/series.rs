//! Series for administrators: make, look at, change with a look at the difference first, pause and resume.

mod file;
mod set;

use std::path::PathBuf;

use api::{CreateSeries, ListedSeries, PatchSeries, Preview, Previewed, Series, client::Client};
use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use crate::{
    Failure,
    address::Server,
    numbers::{Told, new_key, patiently},
};

/// Make, look at and change series.
#[derive(Args)]
pub(crate) struct SeriesCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make a series, from a file or from fields
    Create(Create),
    /// Show a series as it stands; what it prints is a file that create and set read
    Show(Show),
    /// List the series
    List(List),
    /// Change a series: shows the difference and what the next number would be, and asks
    Set(set::Set),
    /// Show the next numbers, as it is or as it would be with changes; uses nothing
    Preview(Look),
    /// Let a series take no numbers for now
    Pause(Switch),
    /// Let a paused series take numbers again
    Resume(Switch),
}

/// What a series is to be: a file, and fields beside it.
#[derive(Args)]
pub(crate) struct Wanted {
    /// A JSON or YAML file with fields of the series; - reads standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Fields, as in pattern=INV{yyyy}-{seq:6}; they win over the file's
    #[arg(value_name = "FIELD=VALUE")]
    fields: Vec<String>,
}

#[derive(Args)]
struct Create {
    #[command(flatten)]
    server: Server,
    /// Its code; it may stand in the file instead
    #[arg(long)]
    series: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// The Idempotency-Key; without it a new one
    #[arg(long)]
    key: Option<String>,
    /// For programs
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Show {
    #[command(flatten)]
    server: Server,
    /// Its code
    series: String,
    /// Write it into this file, as JSON or YAML by its name
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// JSON instead of YAML
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    server: Server,
    /// For programs: one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Look {
    #[command(flatten)]
    server: Server,
    /// Its code
    series: String,
    #[command(flatten)]
    wanted: Wanted,
    /// For documents of this date (YYYY-MM-DD); without it today
    #[arg(long)]
    date: Option<String>,
    /// How many
    #[arg(long, default_value_t = 3)]
    count: i64,
    /// For programs
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Switch {
    #[command(flatten)]
    server: Server,
    /// Its code
    series: String,
    /// For programs
    #[arg(long)]
    json: bool,
}

impl SeriesCommand {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Create(create) => create.run().await,
            Verb::Show(show) => show.run().await,
            Verb::List(list) => list.run().await,
            Verb::Set(set) => set.run().await,
            Verb::Preview(look) => look.run().await,
            Verb::Pause(switch) => switch.run("paused").await,
            Verb::Resume(switch) => switch.run("active").await,
        }
    }
}

impl Wanted {
    /// The fields that are said, the file's and those beside it.
    fn read(&self) -> Result<Map<String, Value>, Failure> {
        let mut wanted = self.file.as_deref().map(file::read).transpose()?.unwrap_or_default();
        wanted.extend(file::fields(&self.fields)?);
        Ok(wanted)
    }
}

impl Create {
    async fn run(self) -> Result<(), Failure> {
        let mut wanted = self.wanted.read()?;
        if let Some(series) = self.series {
            wanted.insert("series".to_owned(), series.into());
        }
        // A file that another series was shown into says what it was, too.
        wanted.remove("version");
        wanted.remove("warnings");
        if wanted.remove("status").is_some_and(|status| status != "active") {
            return Err("a series is made active; make it first, then set its status".into());
        }
        let body: CreateSeries = file::typed(wanted)?;
        let client = self.server.client()?;
        let key = self.key.unwrap_or_else(new_key);
        let made = patiently(|| client.create_series(&key, &body)).await?;
        show(&made, self.json)
    }
}

impl Show {
    async fn run(self) -> Result<(), Failure> {
        let client = self.server.client()?;
        let series = patiently(|| client.series(&self.series)).await?;
        match &self.file {
            Some(path) => file::write(path, &series),
            None => show(&series, self.json),
        }
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let client = self.server.client()?;
        for listed in patiently(|| client.all_series()).await? {
            match (&listed, self.json) {
                (listed, true) => println!("{}", serde_json::to_string(listed)?),
                (ListedSeries::Here(it), false) => println!(
                    "{:<24} {:<32} {:<12} {:<8} version {}",
                    it.settings.series, it.settings.pattern, it.settings.reset, it.status, it.version
                ),
                (ListedSeries::Away { series, .. }, false) => {
                    println!("{series:<24} can't be asked just now: its database is away");
                }
            }
        }
        Ok(())
    }
}

impl Look {
    async fn run(self) -> Result<(), Failure> {
        let client = self.server.client()?;
        let wanted = self.wanted.read()?;
        let proposed = if wanted.is_empty() {
            None
        } else {
            let now = patiently(|| client.series(&self.series)).await?;
            Some(file::typed(set::differences(&now, wanted)?.yours)?)
        };
        let seen = look(&client, &self.series, proposed, self.date, self.count).await?;
        if self.json {
            println!("{}", serde_json::to_string(&seen)?);
            return Ok(());
        }
        println!("period {}", seen.period);
        for next in &seen.numbers {
            println!("{}", next.number);
        }
        print!("{}", obstacles(&seen));
        Ok(())
    }
}

impl Switch {
    async fn run(self, status: &str) -> Result<(), Failure> {
        let client = self.server.client()?;
        loop {
            let now = patiently(|| client.series(&self.series)).await?;
            if now.status == status {
                return show_status(&now, self.json);
            }
            let body = PatchSeries { status: Some(status.to_owned()), ..PatchSeries::default() };
            match client.change_series(&self.series, now.version, false, &body).await {
                Ok(changed) => return show_status(&changed, self.json),
                // Somebody saved something else between: this change goes with any version.
                Err(api::client::Error::Problem(problem)) if problem.slug() == "version-conflict" => {}
                // It may have happened: looking again says so.
                Err(error) if error.is_passing() => tokio::time::sleep(std::time::Duration::from_secs(1)).await,
                Err(error) => return Err(Told(error).into()),
            }
        }
    }
}

/// What the next numbers would be.
async fn look(
    client: &Client,
    series: &str,
    proposed: Option<PatchSeries>,
    document_date: Option<String>,
    count: i64,
) -> Result<Previewed, Failure> {
    let body = Preview { document_date, count: Some(count), proposed: proposed.map(api::Object) };
    patiently(|| client.preview(series, &body)).await
}

/// What a change, or the numbers after it, would meet.
fn obstacles(seen: &Previewed) -> String {
    let refusals = seen.refusals.iter().map(|no| format!("would be refused ({}): {}\n", no.slug, no.detail));
    refusals.chain(seen.warnings.iter().map(|warning| format!("mind: {warning}\n"))).collect()
}

fn show(series: &Series, as_json: bool) -> Result<(), Failure> {
    if as_json {
        println!("{}", serde_json::to_string(series)?);
    } else {
        print!("{}", file::yaml(series)?);
    }
    Ok(())
}

fn show_status(series: &Series, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return show(series, true);
    }
    println!("{} is {} (version {})", series.settings.series, series.status, series.version);
    Ok(())
}
