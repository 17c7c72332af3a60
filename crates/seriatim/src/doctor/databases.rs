//! What `seriatim serve` needs of its databases: that they answer, hold the role back, have this version's schema,
//! know each other and agree on the time. Nothing here repeats an address: it has a password in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use gateway::SystemClock;

use crate::{
    Failure, address,
    doctor::{Finding, Level},
};

/// How long a database may take to say all that is asked.
const PATIENCE: Duration = Duration::from_secs(8);
/// Clocks that are further apart than this are refused by a gateway.
const APART: i64 = 1_000;
/// How the shards' addresses are given.
const SHARDS: &str = "Set SERIATIM_SHARD_URLS=NAME=postgres://seriatim_app:PASSWORD@HOST/DATABASE,NAME=…";

/// What is known of either kind of database.
struct Seen {
    database: String,
    role: String,
    server: String,
    passes: Option<&'static str>,
    serves: bool,
    differs: Option<String>,
    apart_ms: i64,
}

impl From<directory::Inspection> for Seen {
    fn from(it: directory::Inspection) -> Self {
        let directory::Inspection { database, role, server, passes, serves, differs, apart_ms, .. } = it;
        Self { database, role, server, passes, serves, differs, apart_ms }
    }
}

impl From<ledger::Inspection> for Seen {
    fn from(it: ledger::Inspection) -> Self {
        let ledger::Inspection { database, role, server, passes, serves, differs, apart_ms } = it;
        Self { database, role, server, passes, serves, differs, apart_ms }
    }
}

pub(super) async fn look(directory: Option<&str>, shards: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known = None;
    match directory {
        Some(url) => match within(directory::inspect(url, &SystemClock)).await {
            Ok(it) => {
                known.clone_from(&it.shards);
                findings.extend(Seen::from(it).findings("directory"));
            }
            Err(failure) => findings.push(away("directory", failure.as_ref())),
        },
        None => findings.push(
            Finding::new(Level::Missing, "directory", "the directory's address is not set")
                .advice("Set SERIATIM_DIRECTORY_URL=postgres://seriatim_app:PASSWORD@HOST/DATABASE"),
        ),
    }
    if shards.is_empty() {
        findings.push(Finding::new(Level::Missing, "shards", "no shard's address is set").advice(SHARDS));
        return findings;
    }
    let urls = match address::by_name(shards) {
        Ok(urls) => urls,
        Err(failure) => {
            findings.push(Finding::wrong("shards", failure.to_string()).advice(SHARDS));
            return findings;
        }
    };
    for (name, url) in &urls {
        let about = format!("shard {name}");
        match within(ledger::inspect(url, &SystemClock)).await {
            Ok(it) => findings.extend(Seen::from(it).findings(&about)),
            Err(failure) => findings.push(away(&about, failure.as_ref())),
        }
    }
    if let Some(known) = known {
        findings.extend(acquainted(&known.into_iter().collect(), &urls));
    }
    findings
}

async fn within<T>(work: impl Future<Output = Result<T, store::Error>>) -> Result<T, Failure> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(format!("no answer within {} seconds", PATIENCE.as_secs()).into()),
    }
}

fn away(about: &str, failure: &(dyn std::error::Error + 'static)) -> Finding {
    let mut said = failure.to_string();
    let mut cause = failure.source();
    while let Some(next) = cause {
        let why = next.to_string();
        if !said.contains(&why) {
            said = format!("{said}: {why}");
        }
        cause = next.source();
    }
    let advice = store::advice(failure).unwrap_or("check the address's host and port, and that PostgreSQL runs there");
    Finding::wrong(about, format!("{about}: {said}")).advice(format!("To do: {advice}"))
}

impl Seen {
    fn findings(&self, about: &str) -> Vec<Finding> {
        let role = &self.role;
        let mut findings = vec![Finding::ok(
            about,
            format!("{about}: database {} answers, PostgreSQL {}, as {role}", self.database, self.server),
        )];
        findings.push(match self.passes {
            None if !self.serves => Finding::wrong(
                format!("{about} role"),
                format!("{about}: {role} may not serve: it is not seriatim_app and has not its rights"),
            )
            .advice("Give the address of seriatim_app, which migrations/roles.sql makes"),
            None => Finding::ok(format!("{about} role"), format!("{about}: row-level security holds {role}")),
            Some(why) => Finding::wrong(
                format!("{about} role"),
                format!("{about}: row-level security would not keep tenants apart: {role} {why}"),
            )
            .advice("Give the address of seriatim_app, which migrations/roles.sql makes"),
        });
        findings.push(match &self.differs {
            None => Finding::ok(format!("{about} schema"), format!("{about}: its schema is the one of this program")),
            Some(how) => {
                Finding::wrong(format!("{about} schema"), format!("{about}: its schema is not the one of this program: {how}"))
                    .advice("Type: seriatim migrate (as seriatim_owner, with the newest seriatim that serves here)")
            }
        });
        let apart = format!("{about}: its clock and this machine's are {} ms apart", self.apart_ms);
        findings.push(if self.apart_ms > APART {
            Finding::wrong(format!("{about} clock"), apart)
                .advice("Set both machines' clocks by NTP; a gateway refuses more than a second")
        } else {
            Finding::ok(format!("{about} clock"), apart)
        });
        findings
    }
}

/// Whether the directory's shards and the configured ones are the same.
fn acquainted(known: &BTreeSet<String>, urls: &BTreeMap<String, String>) -> Vec<Finding> {
    let about = |name: &str| format!("shard {name} in the directory");
    let mut findings: Vec<_> = urls
        .keys()
        .map(|name| {
            if known.contains(name) {
                return Finding::ok(about(name), format!("shard {name}: the directory knows it"));
            }
            let advice = format!("Type: seriatim migrate --directory-owner-url … --shard-owner {name}=…");
            Finding::wrong(about(name), format!("shard {name}: the directory does not know it")).advice(advice)
        })
        .collect();
    findings.extend(known.iter().filter(|name| !urls.contains_key(*name)).map(|name| {
        let says = format!("shard {name}: the directory knows it, and its address is not set; its series can't be served");
        Finding::new(Level::Missing, about(name), says)
            .advice(format!("Add {name}=… to SERIATIM_SHARD_URLS, or --shard {name}=…"))
    }));
    findings
}
