//! The figures: for each, who is measured, beside whom, and what has to hold.

use std::time::Duration;

use clap::ValueEnum;
use sqlx::Connection;

use crate::{
    Failure,
    gateway::Gateway,
    load::Load,
    proving,
    requests::Visits,
    rivals::{BARE_NAIVE, BARE_SEQUENCE, BOUND, BOUND_ONE_CLAIM, NAIVE, Rival, SEQUENCE, SINGLE, SPREAD},
    say,
    server::{DIRECTORY, SHARD},
    stock::{self, ROWS, TENANT, Tenants},
    table::{Amount, Line, Must},
    turns::{Bench, Contestant, Ours, Shown, What},
    watch,
};

/// The connections of an overload.
const CROWD: usize = 1_000;
/// How long after an overload all must be as before.
const AFTERWARDS: Duration = Duration::from_secs(2);
/// The series of each of the tenants that a gateway meets.
const SERIES_EACH: usize = 10;
/// How long meeting them may take.
const MEETING: Duration = Duration::from_mins(10);

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Figure {
    /// One series, 64 connections
    Hot,
    /// One series, 256 connections
    Wide,
    /// One client, one number at a time
    Single,
    /// 60 series, 64 connections
    Spread,
    /// 1,000 numbers a request
    Batch,
    /// Two gateways on one series
    Gateways,
    /// A shard that holds ten million numbers
    Full,
    /// The proof of a series of ten million numbers
    Audit,
    /// A snapshot that keeps every version of the counter
    Snapshot,
    /// 1,000 connections that never pause
    Overload,
    /// What a gateway holds in memory
    Memory,
}

impl Figure {
    /// What a person calls it.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Measures it.
    pub(crate) async fn measure(self, bench: &mut Bench) -> Result<Vec<Line>, Failure> {
        match self {
            Self::Hot => hot(bench).await,
            Self::Wide => wide(bench).await,
            Self::Single => single(bench).await,
            Self::Spread => spread(bench).await,
            Self::Batch => batch(bench).await,
            Self::Gateways => gateways(bench).await,
            Self::Full => full(bench).await,
            Self::Audit => audit(bench).await,
            Self::Snapshot => snapshot(bench).await,
            Self::Overload => overload(bench).await,
            Self::Memory => memory(bench).await,
        }
    }
}

/// A figure in numbers a second, beside another.
fn speed(figure: &str, ours: &Shown, rival: (&str, f64), must: Must) -> Line {
    Line {
        figure: figure.to_owned(),
        ours: Amount::Speed(ours.speed),
        note: times(ours),
        rival: Some((rival.0.to_owned(), Amount::Speed(rival.1))),
        must,
    }
}

/// A figure with nothing beside it.
fn alone(figure: &str, ours: Amount, must: Must) -> Line {
    Line { figure: figure.to_owned(), ours, note: String::new(), rival: None, must }
}

fn times(shown: &Shown) -> String {
    match (shown.p50, shown.p99) {
        (Some(p50), Some(p99)) => format!("p50 {p50:.1} ms, p99 {p99:.1} ms"),
        _ => String::new(),
    }
}

async fn hot(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    let rivals = [NAIVE, SEQUENCE, BARE_NAIVE, BARE_SEQUENCE];
    let contestants: Vec<_> =
        [Contestant::Ours(Ours::hot("ours", 64))].into_iter().chain(rivals.map(Contestant::Rival)).collect();
    let shown = bench.rounds("hot", &contestants).await?;
    let ours = &shown[0];
    let figure = "one series, 64 connections";
    let mut lines: Vec<Line> = rivals
        .iter()
        .zip(&shown[1..])
        .zip([15.0, 1.0, 12.0, 0.75])
        .map(|((rival, theirs), must)| speed(figure, ours, (rival.name, theirs.speed), Must::Reach(must)))
        .collect();
    let cpu = [("gateway", ours.gateway_cpu), ("PostgreSQL", ours.server_cpu)];
    lines.extend(
        cpu.iter().filter_map(|(who, cpu)| Some(alone(&format!("the same, CPU of {who}"), Amount::Cpu((*cpu)?), Must::Nothing))),
    );
    Ok(lines)
}

async fn wide(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    const WIDE: Rival = SEQUENCE.with_clients("sequence with gaps, 256 clients", 256);
    let contestants = [Contestant::Ours(Ours::hot("ours", 256)), Contestant::Rival(SEQUENCE), Contestant::Rival(WIDE)];
    let [ours, at_64, at_256] = bench.rounds("wide", &contestants).await?[..] else { return Err(lost()) };
    let figure = "one series, 256 connections";
    Ok(vec![
        speed(figure, &ours, ("sequence with gaps, 64 clients", at_64.speed), Must::Reach(1.2)),
        speed(figure, &ours, (WIDE.name, at_256.speed), Must::Nothing),
    ])
}

async fn single(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    let contestants = [Contestant::Ours(Ours::hot("ours", 1)), Contestant::Rival(SINGLE)];
    let [ours, rival] = bench.rounds("single", &contestants).await?[..] else { return Err(lost()) };
    let (Some(p50), Some(theirs)) = (ours.p50, rival.p50) else { return Err("no times".into()) };
    Ok(vec![Line {
        figure: "one client, one at a time: p50".to_owned(),
        ours: Amount::Millis(p50),
        note: times(&ours),
        rival: Some((format!("{}, p50", SINGLE.name), Amount::Millis(theirs))),
        must: Must::StayWithin(3.0),
    }])
}

async fn spread(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    let ours = Ours { what: What::Spread(ROWS), ..Ours::hot("ours", 64) };
    let contestants = [Contestant::Ours(ours), Contestant::Rival(SPREAD)];
    let [ours, rival] = bench.rounds("spread", &contestants).await?[..] else { return Err(lost()) };
    Ok(vec![speed("60 series, 64 connections", &ours, (SPREAD.name, rival.speed), Must::Reach(0.5))])
}

async fn batch(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    let ours = Ours { what: What::Batch(1_000), ..Ours::hot("ours", 4) };
    let contestants = [Contestant::Ours(ours), Contestant::Rival(BOUND), Contestant::Rival(BOUND_ONE_CLAIM)];
    let [ours, bound, one_claim] = bench.rounds("batch", &contestants).await?[..] else { return Err(lost()) };
    let figure = "1,000 numbers a request, 4 connections";
    Ok(vec![
        speed(figure, &ours, (BOUND.name, bound.speed), Must::Reach(0.6)),
        speed(figure, &ours, (BOUND_ONE_CLAIM.name, one_claim.speed), Must::Nothing),
    ])
}

async fn gateways(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    let two = Ours { gateways: 2, ..Ours::hot("two gateways", 64) };
    let contestants = [Contestant::Ours(two), Contestant::Ours(Ours::hot("one gateway", 64))];
    let [two, one] = bench.rounds("gateways", &contestants).await?[..] else { return Err(lost()) };
    Ok(vec![speed("two gateways with 32 connections each", &two, ("one gateway with 64", one.speed), Must::Reach(0.8))])
}

async fn full(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    let rows = bench.plan.rows;
    say(&format!("full: writing {rows} numbers (some minutes for ten million)"));
    let shard = bench.server.clone_of(SHARD).await?;
    let (mut numbers, mut claims) = (bench.server.connect(&shard).await?, bench.server.connect(&shard).await?);
    stock::fill(&mut numbers, &mut claims, rows).await?;
    numbers.close().await?;
    claims.close().await?;
    let warm = Some(bench.plan.steady);
    let full = Ours { shard: Some(shard.clone()), warm, ..Ours::hot("full shard", 64) };
    let empty = Ours { warm, ..Ours::hot("empty shard", 64) };
    let contestants = [Contestant::Ours(full), Contestant::Ours(empty)];
    let measured = bench.rounds("full", &contestants).await;
    bench.server.drop(&shard).await?;
    let [full, empty] = measured?[..] else { return Err(lost()) };
    Ok(vec![speed(&format!("with {rows} numbers in the shard"), &full, ("empty shard", empty.speed), Must::Reach(0.9))])
}

async fn audit(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    let rows = bench.plan.rows;
    say(&format!("audit: writing {rows} numbers (some minutes for ten million)"));
    let (directory, shard) = (bench.server.clone_of(DIRECTORY).await?, bench.server.clone_of(SHARD).await?);
    let (mut numbers, mut claims) = (bench.server.connect(&shard).await?, bench.server.connect(&shard).await?);
    stock::fill(&mut numbers, &mut claims, rows).await?;
    numbers.close().await?;
    claims.close().await?;
    let gateway = Gateway::start(&bench.program, &bench.server, &directory, &shard).await?;
    let took = proving::follow(gateway.address, rows).await;
    let memory = watch::peak_memory(gateway.pid)?;
    gateway.stop().await?;
    for database in [directory, shard] {
        bench.server.drop(&database).await?;
    }
    let took = took?;
    let millis = |took: Duration| Amount::Millis(took.as_secs_f64() * 1_000.0);
    let figure = format!("audit of {rows} numbers");
    Ok(vec![
        alone(&format!("{figure}: counts, gaps, counter"), millis(took.counted), Must::StayBelow(Amount::Millis(20_000.0))),
        alone(&format!("{figure}: all cross-checks"), millis(took.proved), Must::StayBelow(Amount::Millis(60_000.0))),
        alone(&format!("{figure}: memory of the gateway"), Amount::Memory(memory), Must::StayBelow(Amount::Memory(64.0))),
    ])
}

async fn snapshot(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    let updates = bench.plan.updates;
    say(&format!("snapshot: {updates} updates of the counter under a held snapshot"));
    let shard = bench.server.clone_of(SHARD).await?;
    let mut holder = bench.server.connect(&shard).await?;
    stock::hold_snapshot(&mut holder).await?;
    let mut other = bench.server.connect(&shard).await?;
    stock::update_counter(&mut other, updates).await?;
    other.close().await?;
    let held = Ours { shard: Some(shard.clone()), ..Ours::hot("held snapshot", 64) };
    let contestants = [Contestant::Ours(held), Contestant::Ours(Ours::hot("no snapshot", 64))];
    let measured = bench.rounds("snapshot", &contestants).await;
    // Only now: what it held back must have been held back all the while.
    holder.close().await?;
    bench.server.drop(&shard).await?;
    let [held, free] = measured?[..] else { return Err(lost()) };
    Ok(vec![speed(
        &format!("after {updates} updates under a held snapshot"),
        &held,
        ("no snapshot", free.speed),
        Must::Reach(0.8),
    )])
}

/// More clients than can be served: what is served must not suffer, what is refused must be refused soon, and
/// when they are gone, all must be as before.
async fn overload(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    if bench.peak.is_none() {
        let contestants = [Ours::hot("64 connections", 64), Ours::hot("256 connections", 256)].map(Contestant::Ours);
        bench.rounds("overload, before it", &contestants).await?;
    }
    let peak = bench.peak.unwrap_or_default();
    let mut stage = bench.stage(None, 1).await?;
    let (turn, long) = (bench.plan.turn(), bench.plan.overload);
    let before = bench.load_for(&mut stage, 1, turn, || What::Single.requests()).await?;
    say(&format!("overload: {CROWD} connections for {} s", long.as_secs()));
    let crowd = bench.load_for(&mut stage, CROWD, long, || What::Single.requests()).await?;
    say(&format!("overload: {}", crowd.counts()));
    tokio::time::sleep(AFTERWARDS).await;
    let after = bench.load_for(&mut stage, 1, turn, || What::Single.requests()).await?;
    bench.leave(stage, 1).await?;

    for alone in [&before, &after] {
        if alone.other_than(201) > 0 {
            return Err(format!("one client alone did not always get its number: {}", alone.counts()).into());
        }
    }
    if crowd.other_than(201) > crowd.all(503) {
        return Err(format!("neither served nor refused: {}", crowd.counts()).into());
    }
    let (Some(usual), Some(again)) = (before.within(201, 99), after.within(201, 99)) else {
        return Err("one client alone got no number".into());
    };
    let served = Shown { speed: crowd.speed(201), p50: crowd.within(201, 50), p99: crowd.within(201, 99), ..Shown::default() };
    let figure = format!("{CROWD} connections without a pause, {} s", long.as_secs());
    let goodput = speed(&format!("{figure}: served"), &served, ("best of this run", peak), Must::Reach(0.9));
    let refused = Line {
        note: match crowd.all(503) {
            0 => "none was refused".to_owned(),
            refused => format!("{refused} refused, {} served", crowd.all(201)),
        },
        ..alone(
            &format!("{figure}: p99 of refusals"),
            Amount::Millis(crowd.within(503, 99).unwrap_or_default()),
            Must::StayBelow(Amount::Millis(250.0)),
        )
    };
    let normal = Line {
        figure: format!("{} s after it: p99 of one client", AFTERWARDS.as_secs()),
        ours: Amount::Millis(again),
        note: String::new(),
        rival: Some(("before it".to_owned(), Amount::Millis(usual))),
        must: Must::StayWithin(2.0),
    };
    Ok(vec![goodput, refused, normal])
}

async fn memory(bench: &mut Bench) -> Result<Vec<Line>, Failure> {
    let shown = bench.ours(&Ours::hot("ours", 256)).await?;
    let busy = shown.memory.ok_or_else(lost)?;
    say(&format!("memory, 256 connections: {busy:.0} MiB"));
    let tenants = Tenants {
        first: TENANT + 1,
        count: bench.plan.tenants,
        series: (0..SERIES_EACH).map(|nth| format!("series-{nth}")).collect(),
    };
    let (directory, shard) = (bench.server.clone_of(DIRECTORY).await?, bench.server.clone_of(SHARD).await?);
    tenants.add(&mut bench.server.connect(&directory).await?, &mut bench.server.connect(&shard).await?).await?;
    let gateway = Gateway::start(&bench.program, &bench.server, &directory, &shard).await?;
    let visits = Visits::new(tenants.api_keys(), tenants.series.clone());
    let total = visits.total();
    say(&format!("memory: the gateway meets {total} series"));
    let outcome = Load::start(&[gateway.address], 32, || visits.clone()).finish(MEETING).await?;
    let known = watch::peak_memory(gateway.pid)?;
    gateway.stop().await?;
    for database in [directory, shard] {
        bench.server.drop(&database).await?;
    }
    if outcome.all(200) != u64::try_from(total)? || outcome.other_than(200) > 0 {
        return Err(format!("{total} series were to be met: {}", outcome.counts()).into());
    }
    let met = format!("memory of a gateway that knows {} tenants and {total} series", tenants.count);
    Ok(vec![
        alone("memory of a gateway, 256 connections", Amount::Memory(busy), Must::StayBelow(Amount::Memory(64.0))),
        alone(&met, Amount::Memory(known), Must::StayBelow(Amount::Memory(200.0))),
    ])
}

fn lost() -> Failure {
    "a contestant was lost".into()
}
