//! A server that does everything right, its clients and their network, played in numbers: what they leave
//! behind is a clean run.
//!
//! First it is decided what clients ask, when, and how each attempt goes; where an attempt reaches the
//! server, the moment of its effect lies between its request and its answer (or after the client gave up).
//! Then the effects are done in the order of their moments, once per key and once per document.

use std::collections::BTreeMap;

use checker::{Answered, Attempt, Counter, Fault, Observed, Outcome, Row, Run, Sent};

use crate::seed::Seed;

/// How large a world is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) tenants: usize,
    pub(crate) series: usize,
    pub(crate) clients: usize,
    /// How many things are asked for, each once or more often.
    pub(crate) wishes: usize,
}

/// Small enough to be made by the hundred, large enough to hold one of everything.
pub(crate) const USUAL: Size = Size { tenants: 2, series: 3, clients: 6, wishes: 150 };

/// An attempt before it is known what it gets.
struct Plan {
    attempt: Attempt,
    /// When it takes effect, unless something else did first; none if it never reaches the server.
    effect: Option<i64>,
}

/// Everything that is asked for one document, or with one key: it has one effect.
struct Wish {
    count: i64,
    plans: Vec<Plan>,
}

impl Wish {
    /// The first attempt that reaches the server takes the numbers for all.
    fn taker(&self) -> Option<(i64, &Attempt)> {
        self.plans.iter().filter_map(|plan| Some((plan.effect?, &plan.attempt))).min_by_key(|(effect, _)| *effect)
    }
}

/// A clean run.
pub(crate) fn clean(seed: &mut Seed, size: Size) -> Observed {
    let mut wishes = wishes(seed, size);
    wishes.sort_by_key(|wish| wish.taker().map(|(effect, _)| effect));
    let mut observed = Observed::default();
    let mut books = BTreeMap::new();
    for wish in wishes {
        serve(seed, wish, &mut books, &mut observed);
    }
    observed.history.sort_by_key(|attempt| attempt.invoked);
    for (id, attempt) in (1..).zip(&mut observed.history) {
        attempt.id = id;
    }
    observed.ledger.counters.extend(books.into_values());
    idle_counters(seed, &mut observed);
    release_some(seed, &mut observed);
    send(seed, &mut observed);
    strike(seed, &mut observed);
    // Where a file happens to have a line must not matter.
    for _ in 0..observed.history.len() {
        let [one, other] = [(); 2].map(|()| seed.place(observed.history.len()));
        observed.history.swap(one, other);
        let [one, other] = [(); 2].map(|()| seed.place(observed.ledger.rows.len()));
        observed.ledger.rows.swap(one, other);
    }
    observed
}

fn wishes(seed: &mut Seed, size: Size) -> Vec<Wish> {
    let mut clocks: Vec<i64> = (0..size.clients).map(|_| seed.within(0, 1000)).collect();
    (0..size.wishes)
        .map(|wish| {
            let (tenant, series) = (format!("tenant{}", seed.place(size.tenants)), format!("series{}", seed.place(size.series)));
            let document = seed.chance(40).then(|| format!("document {wish}"));
            let count = if document.is_none() && seed.chance(20) { seed.within(2, 6) } else { 1 };
            let period = seed.pick(&["2025", "2026"]).to_string();
            let keys = if document.is_some() && seed.chance(30) { 2 } else { 1 };
            // Some are refused every time, some never get through.
            let luck = seed.within(0, 10);
            let home = seed.place(size.clients);
            let mut plans = Vec::new();
            for key in 0..keys {
                for attempt in 1..=u32::try_from(seed.within(1, 5)).expect("small") {
                    // Mostly the same client tries again; a second one may know the key too.
                    let client = if seed.chance(85) { home } else { seed.place(size.clients) };
                    let invoked = clocks[client] + seed.within(1, 200);
                    let (outcome, effect, end) = fate(seed, luck, invoked);
                    clocks[client] = end;
                    let lost_sight = outcome == Outcome::Info && seed.chance(30);
                    let attempt = Attempt {
                        id: 0,
                        client: u64::try_from(client).expect("small"),
                        attempt,
                        tenant: tenant.clone(),
                        series: series.clone(),
                        period: period.clone(),
                        key: format!("key {wish}/{key}"),
                        document_ref: document.clone(),
                        invoked,
                        completed: (!lost_sight).then_some(end),
                        outcome,
                        numbers: Vec::new(),
                        body_hash: None,
                        gateway: format!("gateway{}", seed.place(2)),
                        epoch: 1,
                    };
                    plans.push(Plan { attempt, effect });
                }
            }
            Wish { count, plans }
        })
        .collect()
}

/// How an attempt goes: what the client learns, when it takes effect, and when the client is done with it.
fn fate(seed: &mut Seed, luck: i64, invoked: i64) -> (Outcome, Option<i64>, i64) {
    let end = invoked + seed.within(2, 300);
    match (luck, seed.within(0, 10)) {
        (0, _) | (2.., 0) => (Outcome::Fail, None, end),
        (1, _) | (2.., 1) => (Outcome::Info, None, end),
        // The server may still be at it when the client has given up.
        (_, 2..=3) => (Outcome::Info, Some(invoked + seed.within(1, 600)), end),
        _ => (Outcome::Ok, Some(seed.within(invoked + 1, end)), end),
    }
}

type Books = BTreeMap<(String, String, String), Counter>;

fn serve(seed: &mut Seed, wish: Wish, books: &mut Books, observed: &mut Observed) {
    let mut numbers = Vec::new();
    if let Some((at, taker)) = wish.taker() {
        let book = (taker.tenant.clone(), taker.series.clone(), taker.period.clone());
        let fresh = !books.contains_key(&book);
        let counter = books.entry(book).or_insert_with(|| open(seed, taker));
        if fresh || seed.chance(2) {
            // A run begins: at the start, or where somebody let the values jump. Some take over old numbers.
            counter.last += if fresh { 0 } else { seed.within(1, 50) };
            observed.ledger.runs.push(run(counter, counter.last + 1));
            for _ in 0..if seed.chance(20) { seed.within(1, 4) } else { 0 } {
                counter.last += 1;
                observed.ledger.rows.push(Row { key: None, number: None, state: "missing".into(), ..row(counter, taker, at) });
            }
        }
        for _ in 0..wish.count {
            counter.last += 1;
            let row = Row { state: state(seed), ..row(counter, taker, at) };
            numbers.push(Answered {
                value: row.value,
                number: row.number.clone().expect("a text"),
                period: row.period.clone(),
                part: row.part,
            });
            observed.ledger.rows.push(row);
        }
    }
    let mut acknowledged = false;
    for Plan { mut attempt, .. } in wish.plans {
        if attempt.outcome == Outcome::Ok {
            acknowledged = true;
            attempt.numbers.clone_from(&numbers);
            attempt.body_hash = Some(format!("{} {}", attempt.key, numbers[0].number));
        }
        observed.history.push(attempt);
    }
    if acknowledged && seed.chance(10) {
        // Claims are not kept for ever; then only the clients know whose number it is.
        let taken = observed.ledger.rows.len() - numbers.len();
        observed.ledger.rows[taken..].iter_mut().for_each(|row| row.key = None);
    }
}

fn open(seed: &mut Seed, taker: &Attempt) -> Counter {
    Counter {
        // By the series, so that each is in one shard.
        shard: format!("shard{}", taker.series.bytes().map(u32::from).sum::<u32>() % 2),
        tenant: taker.tenant.clone(),
        series: taker.series.clone(),
        part: 0,
        period: taker.period.clone(),
        last: seed.within(-1, 1000),
    }
}

/// The row of the value that a counter is at.
fn row(counter: &Counter, taker: &Attempt, at: i64) -> Row {
    Row {
        shard: counter.shard.clone(),
        tenant: counter.tenant.clone(),
        series: counter.series.clone(),
        part: counter.part,
        period: counter.period.clone(),
        value: counter.last,
        // Without the tenant: texts of two tenants may be equal.
        number: Some(format!("{}-{}-{}", counter.series, counter.period, counter.last)),
        state: "issued".into(),
        key: Some(taker.key.clone()),
        at,
    }
}

fn run(counter: &Counter, first: i64) -> Run {
    Run {
        tenant: counter.tenant.clone(),
        series: counter.series.clone(),
        part: counter.part,
        period: counter.period.clone(),
        first,
    }
}

fn state(seed: &mut Seed) -> String {
    (*seed.pick(&["issued", "issued", "issued", "voided", "failed", "reserved", "sending", "in_doubt"])).into()
}

/// Periods that were opened or raised, and in which nothing was issued since.
fn idle_counters(seed: &mut Seed, observed: &mut Observed) {
    let ledger = &mut observed.ledger;
    let idle = Counter { period: "2027".into(), last: seed.within(-1, 100), ..seed.pick(&ledger.counters).clone() };
    ledger.runs.push(run(&idle, idle.last + 1));
    let place = seed.place(ledger.counters.len());
    let raised = &mut ledger.counters[place];
    raised.last += seed.within(5, 50);
    ledger.runs.push(run(raised, raised.last + 1));
    ledger.counters.push(idle);
}

/// The last numbers of a series may be given back; nobody asks there again.
fn release_some(seed: &mut Seed, observed: &mut Observed) {
    let ledger = &mut observed.ledger;
    let counter = seed.place(ledger.counters.len());
    let counter = &mut ledger.counters[counter];
    for _ in 0..seed.within(0, 3) {
        let same = |row: &Row| (&row.tenant, &row.series, &row.period) == (&counter.tenant, &counter.series, &counter.period);
        let before = ledger.rows.iter().any(|row| same(row) && row.value == counter.last - 1);
        let last = ledger.rows.iter_mut().find(|row| same(row) && row.value == counter.last && row.number.is_some());
        if let Some(last) = last.filter(|_| before) {
            last.state = "released".into();
            counter.last -= 1;
        }
    }
}

fn send(seed: &mut Seed, observed: &mut Observed) {
    for row in &observed.ledger.rows {
        let Some(number) = row.number.clone().filter(|_| row.state == "issued") else { continue };
        for again in 0..seed.within(0, 4) {
            observed.sent.push(Sent {
                tenant: row.tenant.clone(),
                series: row.series.clone(),
                number: number.clone(),
                document_hash: format!("document of {} {number}", row.tenant),
                at: row.at + again,
            });
        }
    }
    observed.healed_at = observed.ledger.rows.iter().map(|row| row.at).max().expect("rows") + 1000;
    observed.sealed_limit = observed.healed_at;
}

/// Faults, each while somebody was waiting for an answer.
fn strike(seed: &mut Seed, observed: &mut Observed) {
    for name in ["kill the primary", "pause a gateway", "cut before COMMIT"] {
        let met = seed.pick(&observed.history);
        let from = seed.within(met.invoked, met.completed.unwrap_or(met.invoked) + 1);
        observed.faults.push(Fault { name: name.into(), from, until: from + 500 });
    }
}
