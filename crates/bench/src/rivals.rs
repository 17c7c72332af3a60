//! What others do, and what can't be beaten: pgbench scripts that write the rows of an issue, without a program
//! between client and database.
//!
//! They write into the same tables with the same indexes, in clones of the same shard, on the same server. They
//! are spared what the program alone has: row-level security (they are the superuser), the key from each number
//! to the one before it, and the reads that make a repeated call harmless.

use std::{fs, path::Path};

use sqlx::Connection;
use tokio::process::Command;

use crate::{
    Failure,
    plan::Plan,
    proof::Held,
    server::{BARE, RIVAL, Server},
    stock::{TENANT, tenant_id},
};

/// What the rivals' shard lacks and has. The sequence keeps no values back: a cache would only make more gaps.
pub(crate) const HANDICAP: &str = "
alter table number drop constraint number_follows;
create sequence hot_value";

/// A counter, a number and a key, and no more than the keys that they can't be without.
pub(crate) const BARE_TABLES: &str = "
create table counter (id integer primary key, last bigint not null) with (fillfactor = 50);
create table numbers (value bigint primary key, number text not null, document_ref text not null);
create table claims (key text primary key, value bigint not null);
create sequence hot_value;
insert into counter values (1, 0)";

/// How the names of pgbench's logs begin.
const LOG: &str = "transactions";

/// A contestant that is a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rival {
    /// What a person calls it.
    pub(crate) name: &'static str,
    script: &'static str,
    template: &'static str,
    clients: u16,
    /// What one transaction writes.
    numbers: u32,
    claims: u32,
    /// Whether its numbers have no gap.
    gapless: bool,
}

/// The row is locked, moved on, and held until the commit.
pub(crate) const NAIVE: Rival = Rival {
    name: "naive counter row",
    script: concat!(
        "\\set key random(1, 9000000000000000000)\n\\set document random(1, 9000000000000000000)\n\\set row 0\n",
        include_str!("rivals/naive.sql")
    ),
    template: RIVAL,
    clients: 64,
    numbers: 1,
    claims: 1,
    gapless: true,
};

/// The same on any of 60 rows.
pub(crate) const SPREAD: Rival = Rival {
    name: "60 naive counter rows",
    script: concat!(
        "\\set key random(1, 9000000000000000000)\n\\set document random(1, 9000000000000000000)\n\\set row random(1, 60)\n",
        include_str!("rivals/naive.sql")
    ),
    ..NAIVE
};

/// The database's own sequence, which leaves gaps. The value comes back from the insert, in as few round trips
/// as it can be had.
pub(crate) const SEQUENCE: Rival =
    Rival { name: "sequence with gaps", script: include_str!("rivals/sequence.sql"), gapless: false, ..NAIVE };

/// 256 issues in each statement, over one connection: what the tables and the disk can do at most.
pub(crate) const BOUND: Rival = Rival {
    name: "256 issues a statement",
    script: include_str!("rivals/bound.sql"),
    clients: 1,
    numbers: 256,
    claims: 256,
    ..NAIVE
};

/// The same as one issue of 256 numbers.
pub(crate) const BOUND_ONE_CLAIM: Rival =
    Rival { name: "256 numbers a statement, one claim", script: include_str!("rivals/bound_one_claim.sql"), claims: 1, ..BOUND };

/// An issue as one statement, which is its own transaction.
pub(crate) const SINGLE: Rival = Rival { name: "one statement", script: include_str!("rivals/single.sql"), clients: 1, ..NAIVE };

/// The naive counter on tables with nothing but keys.
pub(crate) const BARE_NAIVE: Rival =
    Rival { name: "naive counter row, bare tables", script: include_str!("rivals/bare_naive.sql"), template: BARE, ..NAIVE };

/// The sequence on tables with nothing but keys.
pub(crate) const BARE_SEQUENCE: Rival = Rival {
    name: "sequence with gaps, bare tables",
    script: include_str!("rivals/bare_sequence.sql"),
    template: BARE,
    ..SEQUENCE
};

/// What a turn of a rival showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Numbers a second.
    pub(crate) speed: f64,
    /// The median time of a transaction, in milliseconds; only looked at where there is one client.
    pub(crate) p50: Option<f64>,
}

impl Rival {
    /// The same with another number of clients.
    pub(crate) const fn with_clients(self, name: &'static str, clients: u16) -> Self {
        Self { name, clients, ..self }
    }

    /// One turn, on a database of its own.
    pub(crate) async fn turn(&self, server: &mut Server, plan: &Plan) -> Result<Shown, Failure> {
        let database = server.clone_of(self.template).await?;
        let warm = if plan.quick { 0 } else { self.run(server, &database, 1).await?.0 };
        let (transactions, shown) = self.run(server, &database, plan.seconds).await?;
        let done = warm + transactions;
        let mut db = server.connect(&database).await?;
        let mut held = if self.template == BARE { Held::read_bare(&mut db).await? } else { Held::read(&mut db).await? };
        if !self.gapless {
            held.broken = 0;
        }
        let (numbers, claims) = (done * i64::from(self.numbers), done * i64::from(self.claims));
        held.expect(Held::default(), &(numbers..=numbers), &(claims..=claims))?;
        db.close().await?;
        server.drop(&database).await?;
        Ok(shown)
    }

    /// Runs the script for so long; how often it was run, and how fast.
    ///
    /// pgbench's clock starts before its clients have connected, though its speed is of the time after that. Many
    /// clients get longer, and where a busy machine left no time at all, much longer.
    async fn run(&self, server: &Server, database: &str, seconds: u32) -> Result<(i64, Shown), Failure> {
        let clients = u32::from(self.clients);
        for extra in [clients / 100, clients / 16] {
            let said = self.pgbench(server, database, seconds + extra).await?;
            let find = |before: &str| said.lines().find_map(|line| line.strip_prefix(before)?.split_whitespace().next());
            let transactions = find("number of transactions actually processed: ").and_then(|word| word.parse::<i64>().ok());
            let speed = find("tps = ").and_then(|word| word.parse::<f64>().ok());
            match (transactions, speed) {
                (Some(0), _) => {}
                (Some(transactions), Some(speed)) => {
                    let p50 = if self.clients == 1 { Some(median_of_log(server.folder())?) } else { None };
                    return Ok((transactions, Shown { speed: speed * f64::from(self.numbers), p50 }));
                }
                _ => return Err(format!("pgbench said something new:\n{said}").into()),
            }
        }
        Err("pgbench's clients never got to work".into())
    }

    /// What pgbench says after so long.
    async fn pgbench(&self, server: &Server, database: &str, seconds: u32) -> Result<String, Failure> {
        let script = server.folder().join("rival.sql");
        fs::write(&script, self.script)?;
        let mut pgbench = Command::new(server.program("pgbench"));
        pgbench.args(["-n", "-M", "prepared", "-j", "2", "-c", &self.clients.to_string(), "-T", &seconds.to_string()]);
        pgbench.arg("-D").arg(format!("tenant={}", tenant_id(TENANT))).arg("-f").arg(&script).kill_on_drop(true);
        // Writing a line for each transaction costs a little, so only where there is one client, whose times are asked for.
        if self.clients == 1 {
            pgbench.args(["-l", "--log-prefix"]).arg(server.folder().join(LOG));
        }
        let done = pgbench.arg(server.url("postgres", database)).output().await?;
        if !done.status.success() {
            return Err(format!("pgbench: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr)).into());
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

/// The median of the times in the logs of the last run, in milliseconds; the logs go.
fn median_of_log(folder: &Path) -> Result<f64, Failure> {
    let mut micros: Vec<f64> = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(LOG) {
            // client, transaction, time, …
            let text = fs::read_to_string(entry.path())?;
            micros.extend(text.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<f64>().ok()));
            fs::remove_file(entry.path())?;
        }
    }
    micros.sort_by(f64::total_cmp);
    let median = micros.get(micros.len() / 2).ok_or("pgbench logged no transaction")?;
    Ok(median / 1_000.0)
}
