//! Changing a series: the difference is shown, and what it would do, before anything is.

use std::io::{IsTerminal, Write};

use api::{PatchSeries, Series, client::Error};
use clap::Args;
use serde_json::{Map, Value};

use super::{Wanted, file, look, obstacles, show_status};
use crate::{
    Failure,
    address::Server,
    numbers::{Told, patiently},
};

/// What every series says of itself that nobody can set.
const SAID: [&str; 2] = ["version", "warnings"];
/// What stays as it was made.
const FIXED: [&str; 6] = ["series", "issuer", "parts", "authorisations", "rule_pack", "integrator"];

/// Change a series.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct Set {
    #[command(flatten)]
    server: Server,
    /// Its code
    series: String,
    #[command(flatten)]
    wanted: Wanted,
    /// Apply without asking
    #[arg(long)]
    yes: bool,
    /// Only show what it would do
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Where others changed other fields since the file was written, change these beside them
    #[arg(long)]
    merge: bool,
    /// For programs: the series as it is afterwards (asks nothing, so give --yes)
    #[arg(long)]
    json: bool,
}

/// What is to be changed, and since which version.
pub(super) struct Differences {
    pub(super) yours: Map<String, Value>,
    version: i64,
}

impl Set {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let client = self.server.client()?;
        let now = patiently(|| client.series(&self.series)).await?;
        let differences = differences(&now, self.wanted.read()?)?;
        if differences.yours.is_empty() {
            if !self.json {
                eprintln!("nothing differs; nothing was changed");
            }
            return show_status(&now, self.json);
        }
        let body: PatchSeries = file::typed(differences.yours.clone())?;
        if !self.json {
            print!("{}", shown(&now, &differences.yours)?);
            let next = |seen: &api::Previewed| seen.numbers.first().map_or("none".to_owned(), |next| next.number.clone());
            // A series that takes no number now has no next one.
            let before = look(&client, &self.series, None, None, 1).await.map_or("none".to_owned(), |seen| next(&seen));
            match look(&client, &self.series, Some(body.clone()), None, 1).await {
                Ok(after) => print!("the next number: {before} -> {}\n{}", next(&after), obstacles(&after)),
                // Whether the change is right is for the change to say.
                Err(why) => println!("the next number can't be shown: {why}"),
            }
        }
        if self.dry_run {
            return Ok(());
        }
        if !self.yes && !agreed()? {
            return Err("nothing was changed".into());
        }
        let applied = apply(&client, &self.series, differences.version, self.merge, &body).await;
        show_status(&applied.map_err(Told)?, self.json)
    }
}

/// One change; where no answer came, the same again, which changes nothing twice: the version is in it.
async fn apply(
    client: &api::client::Client,
    series: &str,
    version: i64,
    merge: bool,
    body: &PatchSeries,
) -> Result<Series, Error> {
    let mut tries = 0;
    loop {
        match client.change_series(series, version, merge, body).await {
            Err(error) if error.is_passing() && tries < 5 => {
                tries += 1;
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            }
            // The answer to an earlier try was lost, and it held: the series is the next version, with these very fields.
            Err(Error::Problem(problem)) if tries > 0 && problem.slug() == "version-conflict" => {
                let now = client.series(series).await?;
                let fields = serde_json::to_value(body).unwrap_or_default();
                let held = differences(&now, fields.as_object().cloned().unwrap_or_default()).is_ok_and(|it| it.yours.is_empty());
                return if held { Ok(now) } else { Err(Error::Problem(problem)) };
            }
            other => return other,
        }
    }
}

/// What of the wanted differs from what is. A file that says its version is a change to that one: what others changed since
/// is not taken for yours, and is found by the gateway.
pub(super) fn differences(now: &Series, mut wanted: Map<String, Value>) -> Result<Differences, Failure> {
    let version = match wanted.get("version") {
        None => now.version,
        Some(version) => {
            version.as_i64().ok_or("version is the whole number that the file was written with; leave it as it was")?
        }
    };
    wanted.retain(|name, _| !SAID.contains(&name.as_str()));
    let is = match serde_json::to_value(now)? {
        Value::Object(is) => is,
        _ => Map::new(),
    };
    let differs = |name: &str, value: &Value| is.get(name).unwrap_or(&Value::Null) != value;
    wanted.retain(|name, value| differs(name, value));
    match wanted.keys().find(|name| FIXED.contains(&name.as_str())) {
        Some(name) => Err(format!("{name} can't be changed; it is {}", is.get(name).unwrap_or(&Value::Null)).into()),
        None => Ok(Differences { yours: wanted, version }),
    }
}

/// Lines that are no more, and lines that come.
fn shown(now: &Series, yours: &Map<String, Value>) -> Result<String, Failure> {
    let is = serde_json::to_value(now)?;
    let mut out = format!("series {}, version {}\n", now.settings.series, now.version);
    for (name, value) in yours {
        out.push_str(&format!("- {name}: {}\n+ {name}: {value}\n", is.get(name).unwrap_or(&Value::Null)));
    }
    Ok(out)
}

/// Whether the person at the terminal says yes.
fn agreed() -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err("nobody is there to ask: say --yes to apply it, or --dry-run to only look".into());
    }
    print!("apply? [y/N] ");
    std::io::stdout().flush()?;
    let mut said = String::new();
    std::io::stdin().read_line(&mut said)?;
    Ok(matches!(said.trim(), "y" | "Y" | "yes"))
}
