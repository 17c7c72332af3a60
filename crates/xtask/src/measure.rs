//! Measures what a part of the schema costs, so that a decision about it stands on figures.
//!
//! A measurement compares two forms of the schema. They take turns, each time on a shard made anew, and the
//! rounds change who goes first: what else the machine does meets both. Read the ratios; the figures
//! themselves say as much about the machine. Needs PostgreSQL's `psql` and `pgbench`, beside the server.

use std::{fmt, fs, path::Path, process::Command, thread};

use cluster::{Cluster, Options, Tools};

use crate::{say, sqlx::migrate, succeed};

/// Numbers in a batch.
const SIZES: [u32; 3] = [1, 64, 256];
/// Many short turns: a disk that is slow for some seconds then spoils a few rounds, not the median.
const ROUNDS: usize = 6;
const SECONDS: u32 = 4;
/// The lock and the write alone, where the key's share is largest; and all that the program does for an order.
const BATCHES: [(&str, &[&str]); 2] = [("lock and write", &[LOCK, WRITE]), ("whole", &[BEFORE, KNOWN, LOCK, KNOWN, RUN, WRITE])];
const SHARD: &str = "shard_1";

/// The schema as it is, and without the key.
const FORMS: [(&str, Option<&str>); 2] = [("with", None), ("without", Some("alter table number drop constraint number_follows"))];

const TENANT: &str = "set local seriatim.tenant = '018f0000-0000-7000-8000-000000000001';\n";

/// A series whose next value is 1.
const SERIES: &str = "
insert into series (tenant_id, series, issuer, pattern, reset, time_zone, first, gapless, overflow, max_length, epoch,
                    created_at, created_by)
values (current_tenant(), 'invoices', 'default', 'RE-{seq:8}', 'never', 'UTC', 1, true, 'refuse', 20, 1, now(), 'measure');
insert into counter (tenant_id, series, part, period, last, config_version, epoch)
values (current_tenant(), 'invoices', 0, 'all', 0, 1, 1);
insert into run (tenant_id, series, part, period, first, why, principal, at)
values (current_tenant(), 'invoices', 0, 'all', 1, 'start', 'measure', now());
";

/// What a batch reads before it locks the counter; no key and no document is known yet.
const BEFORE: &str = "
\\set r random(1, 1000000000000)
select issuer, pattern, reset, time_zone, first, gapless, overflow, max_length, status, version from series
 where tenant_id = current_tenant() and series = 'invoices';
";

/// What it reads both before and under the lock.
const KNOWN: &str = "
select fingerprint, operation, part, period, first, count, answer from claim
 where tenant_id = current_tenant() and series = 'invoices' and key = 'try-' || :r::bigint;
select n.* from unnest(array(select 'try-' || :r::bigint || '-' || i from generate_series(1, :size::int) i)) asked (reference)
 cross join lateral (select value, number, period, part, state, document_ref, document_date, at from number
   where tenant_id = current_tenant() and series = 'invoices' and document_ref = asked.reference offset 0) n;
";

const LOCK: &str = "
select last, gate, config_version, epoch, clock_timestamp() from counter
 where tenant_id = current_tenant() and series = 'invoices' and part = 0 and period = 'all' for no key update \\gset
";

/// What it reads under the lock alone.
const RUN: &str = "
select first as head, \"limit\" from run where tenant_id = current_tenant() and series = 'invoices' and part = 0 and period = 'all'
   and first <= :last::bigint + 1 order by first desc limit 1;
";

/// Counter, claim and numbers in one statement, as the ledger writes them.
const WRITE: &str = "
with moved as (
  update counter set last = :last::bigint + :size::int, last_date = greatest(last_date, current_date)
   where tenant_id = current_tenant() and series = 'invoices' and part = 0 and period = 'all'
     and last = :last::bigint and config_version = 1 and epoch = 1 and gate = 'open'
  returning 1
), claimed as (
  insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, at)
  select current_tenant(), 'invoices', 'key-' || :last::bigint, decode(repeat('ab', 32), 'hex'), 'issue', 0, 'all',
         :last::bigint + 1, :size::int, now()
    from moved
  returning 1
), written as (
  insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                      config_version, at, principal, operation_id)
  select current_tenant(), 'invoices', 0, 'all', n.value, nullif(n.value, 1) - 1, n.text, 'issued', n.document,
         current_date, 1, now(), 'key:018f0000-0000-7000-8000-000000000002', 'op-' || :last::bigint
    from moved, (select v, 'RE-' || to_char(v, 'FM00000000'), 'order-' || to_char(v, 'FM00000000')
                   from generate_series(:last::bigint + 1, :last::bigint + :size::int) v) n (value, text, document)
   order by n.document, n.value
  returning 1
)
select (select count(*) from moved), (select count(*) from claimed), (select count(*) from written);
";

/// What the predecessor key costs a batch.
pub(crate) fn predecessor() -> Result<(), String> {
    let tools = cluster::find().map_err(|e| e.to_string())?;
    let options = Options { folder: None, durable: true, max_connections: 20, settings: &[] };
    let cluster = Cluster::start(&options, &|what| say(what)).map_err(|e| e.to_string())?;
    let bench = Bench { tools: &tools, cluster: &cluster };
    let version = bench.ask("show server_version")?;
    let cores = thread::available_parallelism().map_or(0, usize::from);
    say(&format!("{} turns of {SECONDS} s", SIZES.len() * BATCHES.len() * FORMS.len() * ROUNDS));
    let mut lines = Vec::new();
    for (what, statements) in BATCHES {
        for size in SIZES {
            let mut speeds = [Vec::new(), Vec::new()];
            for round in 0..ROUNDS {
                let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
                for form in order {
                    let (name, change) = FORMS[form];
                    let speed = bench.turn(statements, size, change)?;
                    println!("{what}, batch of {size}, round {} of {ROUNDS}, {name} the key: {speed:.0} numbers/s", round + 1);
                    speeds[form].push(speed);
                }
            }
            let ratios = Spread::of(speeds[0].iter().zip(&speeds[1]).map(|(with, without)| with / without).collect());
            let [with, without] = speeds.map(Spread::of);
            lines.push(format!(
                "| {what} | {size} | {with:.0} | {without:.0} | {:.2} | {ratios:.2} |",
                with.median / without.median
            ));
        }
    }
    say(&format!(
        "PostgreSQL {version}, {cores} cores, fsync on, one connection; numbers/s, median (least–most) of {ROUNDS} turns of {SECONDS} s"
    ));
    println!(
        "| batch | numbers | with the key | without | with / without | the same, round by round |\n|---|---|---|---|---|---|"
    );
    println!("{}", lines.join("\n"));
    Ok(())
}

struct Bench<'a> {
    tools: &'a Tools,
    cluster: &'a Cluster,
}

impl Bench<'_> {
    /// Numbers a second on a shard made anew.
    fn turn(&self, statements: &[&str], size: u32, change: Option<&str>) -> Result<f64, String> {
        self.psql(
            "postgres",
            "postgres",
            &[&format!("drop database {SHARD} with (force)"), &format!("create database {SHARD} owner seriatim_owner")],
        )?;
        migrate(self.tools, &self.cluster.url("seriatim_owner", SHARD), Path::new("migrations/shard"))?;
        if let Some(change) = change {
            self.psql("seriatim_owner", SHARD, &[change])?;
        }
        self.psql("seriatim_app", SHARD, &[&format!("begin; {TENANT}{SERIES}commit")])?;
        self.psql("postgres", "postgres", &["checkpoint"])?;

        let script = self.cluster.folder().join("batch.sql");
        fs::write(&script, format!("begin;\n{TENANT}{}commit;\n", statements.concat())).map_err(|e| e.to_string())?;
        let mut pgbench = Command::new(self.tools.program("pgbench"));
        pgbench.args(["-n", "-M", "prepared", "-c", "1", "-T", &SECONDS.to_string(), "-D", &format!("size={size}"), "-f"]);
        let said = output(pgbench.arg(&script).arg(self.cluster.url("seriatim_app", SHARD)))?;
        let find = |before: &str| said.lines().find_map(|line| line.strip_prefix(before)?.split_whitespace().next());
        let batches = find("number of transactions actually processed: ").and_then(|word| word.parse::<u64>().ok());
        let speed = find("tps = ").and_then(|word| word.parse::<f64>().ok());
        let (Some(batches), Some(speed)) = (batches, speed) else {
            return Err(format!("pgbench said something new:\n{said}"));
        };
        // A batch that writes nothing would be the fastest of all.
        let numbers = batches * u64::from(size);
        let written = self.ask("select count(*) || ' ' || max(value) from number")?;
        if written != format!("{numbers} {numbers}") {
            return Err(format!("{numbers} numbers and as high a last one expected, found {written}"));
        }
        Ok(speed * f64::from(size))
    }

    fn psql(&self, role: &str, database: &str, statements: &[&str]) -> Result<(), String> {
        let mut psql = Command::new(self.tools.program("psql"));
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", &self.cluster.url(role, database)]);
        succeed(psql.args(statements.iter().flat_map(|statement| ["-c", statement])))
    }

    /// One value, read from the shard past its row-level security.
    fn ask(&self, query: &str) -> Result<String, String> {
        let mut psql = Command::new(self.tools.program("psql"));
        let said = output(psql.args(["-X", "-At", "-d", &self.cluster.url("postgres", SHARD), "-c", query]))?;
        Ok(said.trim().to_owned())
    }
}

fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|e| format!("{name}: {e}"))?;
    if done.status.success() {
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    } else {
        Err(format!("{name}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr)))
    }
}

struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self { least: values[0], median: f64::midpoint(low, high), most: values[values.len() - 1] }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision().unwrap_or(2);
        write!(f, "{:.places$} ({:.places$}–{:.places$})", self.median, self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        let odd = Spread::of(vec![3.0, 1.0, 2.0]);
        let even = Spread::of(vec![4.0, 1.0, 2.0, 3.0]);
        assert_eq!(format!("{odd:.0}"), "2 (1–3)");
        assert!((even.median - 2.5).abs() < f64::EPSILON);
    }
}
