//! Random operations against a reference series: a few lines that do without a database what the program does with two.
//!
//! `SERIATIM_MODEL_SECONDS` makes it longer than CI's few seconds, `SERIATIM_MODEL_SEED` repeats a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testkit::{Api, Setup, TestClock, prove_with};

use crate::together::all;

/// A generator whose whole state is the seed that is printed (`SplitMix64`, Steele, Lea and Flood, 2014).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(sides).unwrap()).unwrap()
    }
}

/// The largest value of `{seq:3}`.
const MOST: usize = 999;

/// What the answer must be.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    /// Status, whether it is a replay, and the numbers.
    Numbers(u16, bool, Vec<String>),
    Problem(u16, &'static str),
}

/// How long a reservation may stay one, in seconds; then it is voided.
const TTL: i64 = 3_600;

/// A number in the reference.
#[derive(Clone, Debug)]
struct Given {
    state: &'static str,
    life: i64,
    reference: Option<String>,
    /// When its reservation is overdue.
    due: i64,
}

/// A number as an answer showed it: with its state and life.
type Shown = (String, &'static str, i64);

#[derive(Default)]
struct Reference {
    now: i64,
    last: BTreeMap<String, usize>,
    closed: BTreeSet<String>,
    /// By reference: number and date.
    documents: BTreeMap<String, (String, String)>,
    numbers: BTreeMap<String, Given>,
    /// By key: operation, body, status, numbers with state and life as they were.
    claims: BTreeMap<String, (&'static str, Value, u16, Vec<Shown>)>,
}

fn shown(numbers: &[Shown]) -> Vec<String> {
    numbers.iter().map(|(number, state, life)| format!("{number} {state} {life}")).collect()
}

impl Reference {
    /// `issue` or `reserve`.
    fn take(&mut self, operation: &'static str, key: &str, body: &Value) -> Expected {
        if let Some((of, meant, status, numbers)) = self.claims.get(key) {
            let gone = |(number, _, life): &Shown| self.numbers[number].state == "released" || self.numbers[number].life != *life;
            return match () {
                () if meant != body || *of != operation => Expected::Problem(422, "idempotency-key-reused"),
                () if numbers.iter().any(gone) => Expected::Problem(409, "number-released"),
                () => Expected::Numbers(*status, true, shown(numbers)),
            };
        }
        let items: Vec<Value> = match (body["count"].as_u64(), body["items"].as_array()) {
            (Some(count), _) => vec![json!({"document_date": body["document_date"]}); usize::try_from(count).unwrap()],
            (None, Some(items)) => items.clone(),
            (None, None) => vec![body.clone()],
        };
        let mut numbers = Vec::new();
        let mut fresh: Vec<(Option<&str>, &str)> = Vec::new();
        for item in &items {
            let date = item["document_date"].as_str().unwrap();
            let reference = item["document_ref"].as_str();
            match reference.and_then(|reference| self.documents.get(reference)) {
                Some((number, _)) if self.numbers[number].state == "voided" => {
                    return Expected::Problem(409, "document-voided");
                }
                Some((_, of)) if of != date => return Expected::Problem(409, "document-conflict"),
                Some((number, _)) => numbers.push(Some(number.clone())),
                None => {
                    if fresh.iter().any(|(_, other)| other[..4] != date[..4]) {
                        return Expected::Problem(422, "invalid");
                    }
                    fresh.push((reference, date));
                    numbers.push(None);
                }
            }
        }
        if let Some((_, date)) = fresh.first() {
            if self.closed.contains(&date[..4]) {
                return Expected::Problem(409, "period-closed");
            }
            let last = self.last.entry(date[..4].to_owned()).or_default();
            if *last + fresh.len() > MOST {
                return Expected::Problem(409, "series-exhausted");
            }
            for (place, (reference, date)) in numbers.iter_mut().filter(|number| number.is_none()).zip(&fresh) {
                *last += 1;
                let number = format!("M{}-{last:03}", &date[..4]);
                let reference = reference.map(str::to_owned);
                if let Some(reference) = &reference {
                    self.documents.insert(reference.clone(), (number.clone(), (*date).to_owned()));
                }
                let life = self.numbers.get(&number).map_or(1, |ended| ended.life + 1);
                self.numbers.insert(number.clone(), Given { state: "reserved", life, reference, due: self.now + TTL });
                *place = Some(number);
            }
        }
        let status = if fresh.is_empty() { 200 } else { 201 };
        let answer = numbers.into_iter().flatten().map(|number| {
            let it = self.numbers.get_mut(&number).unwrap();
            if operation == "issue" && matches!(it.state, "reserved" | "failed") {
                it.state = "issued";
            }
            (number, it.state, it.life)
        });
        let numbers: Vec<_> = answer.collect();
        self.claims.insert(key.to_owned(), (operation, body.clone(), status, numbers.clone()));
        Expected::Numbers(status, false, shown(&numbers))
    }

    fn step(&mut self, number: &str, verb: &str, life: Option<i64>) -> Expected {
        let wrong = Expected::Problem(409, "wrong-state");
        let Some(it) = self.numbers.get_mut(number) else { return Expected::Problem(404, "not-found") };
        if life.unwrap_or(1) != it.life {
            return wrong;
        }
        let last = self.last.get_mut(&number[1..5]).unwrap();
        it.state = match (it.state, verb) {
            ("released", "release") => "released",
            ("reserved", "release") if format!("{}-{last:03}", &number[..5]) == number => {
                *last -= 1;
                self.documents.remove(&it.reference.take().unwrap());
                "released"
            }
            ("reserved" | "failed" | "issued" | "voided", "void") => "voided",
            ("reserved" | "failed" | "issued", "confirm") => "issued",
            ("reserved" | "failed", "fail") => "failed",
            _ => return wrong,
        };
        Expected::Numbers(200, false, vec![format!("{number} {} {}", it.state, it.life)])
    }

    /// Closes a year.
    fn close(&mut self, year: &str) -> Expected {
        let open = |(number, it): (&String, &Given)| number[1..5] == *year && matches!(it.state, "reserved" | "failed");
        if self.numbers.iter().any(open) {
            return Expected::Problem(409, "period-has-open");
        }
        self.closed.insert(year.to_owned());
        Expected::Numbers(200, false, Vec::new())
    }

    /// Voids what is overdue; how many.
    fn sweep(&mut self) -> i64 {
        let overdue = self.numbers.values_mut().filter(|it| it.state == "reserved" && it.due < self.now);
        overdue.map(|it| it.state = "voided").count().try_into().unwrap()
    }
}

fn body(dice: &mut Dice) -> Value {
    let date = ["2025-12-31", "2026-01-01", "2026-06-30"][dice.roll(3)];
    let reference = |dice: &mut Dice| format!("order-{}", dice.roll(120));
    match dice.roll(6) {
        0 => json!({"document_date": date}),
        1 | 2 => json!({"document_ref": reference(dice), "document_date": date}),
        3 => json!({"count": dice.roll(60) + 1, "document_date": date}),
        _ => {
            let mut items: BTreeMap<String, Value> = BTreeMap::new();
            for _ in 0..=dice.roll(5) {
                let date = if dice.roll(8) == 0 { "2025-12-31" } else { date };
                let reference = reference(dice);
                items.insert(reference.clone(), json!({"document_ref": reference, "document_date": date}));
            }
            json!({"items": items.into_values().collect::<Vec<_>>()})
        }
    }
}

/// An operation: one of the verbs on a number, `close` of a year, or `issue` or `reserve` with a body.
async fn ask(api: &Api, series: &str, operation: &str, key: &str, body: &Value) -> Expected {
    let path = match operation {
        "issue" => "numbers".to_owned(),
        "reserve" => "reservations".to_owned(),
        "close" => format!("periods/{key}/close"),
        verb => format!("numbers/{key}/{verb}"),
    };
    let reply = api.post(&format!("/v1/series/{series}/{path}"), key, body.clone()).await;
    let text = |number: &Value| {
        let life = number["life"].as_i64().unwrap_or(1);
        format!("{} {} {life}", number["number"].as_str().unwrap(), number["state"].as_str().unwrap())
    };
    match (reply.status, reply.body["numbers"].as_array()) {
        (200, _) if operation == "close" => Expected::Numbers(200, false, Vec::new()),
        (200 | 201, Some(numbers)) => Expected::Numbers(reply.status, reply.replayed(), numbers.iter().map(text).collect()),
        (200 | 201, None) => Expected::Numbers(reply.status, reply.replayed(), vec![text(&reply.body)]),
        (status, _) => {
            let kind = reply.body["type"].as_str().unwrap_or_default().trim_start_matches("/problems/").to_owned();
            Expected::Problem(status, kind.leak())
        }
    }
}

/// What is asked next, with its key and body.
fn next(dice: &mut Dice, reference: &Reference, step: usize) -> (&'static str, String, Value) {
    let key = if dice.roll(5) == 0 { format!("k{}", dice.roll(step + 1)) } else { format!("k{step}") };
    if let Some((operation, body, ..)) = reference.claims.get(&key).filter(|_| dice.roll(4) > 0) {
        return (operation, key, body.clone());
    }
    if dice.roll(3) == 0 {
        let verb = ["confirm", "fail", "void", "release", "release"][dice.roll(5)];
        let last = reference.last.get("2026").copied().unwrap_or(0);
        // Mostly at the end, where a number can be released.
        let value = if verb == "release" && dice.roll(3) > 0 { last } else { dice.roll(last + 3) };
        let life = [json!({"reason": "by lot"}), json!({"reason": "by lot", "life": dice.roll(3) + 1})];
        return (verb, format!("M2026-{value:03}"), life[dice.roll(2)].clone());
    }
    if dice.roll(120) == 0 {
        return ("close", ["2025", "2026"][dice.roll(2)].to_owned(), json!({}));
    }
    let body = body(dice);
    let reserves = body["document_ref"].is_string() && dice.roll(3) > 0;
    (if reserves { "reserve" } else { "issue" }, key, body)
}

#[test]
fn random_operations_agree_with_a_reference() {
    let number = |name: &str| env::var(name).ok().and_then(|word| word.parse().ok());
    let seed = number("SERIATIM_MODEL_SEED").unwrap_or_else(|| RandomState::new().hash_one("seed"));
    let time = Duration::from_secs(number("SERIATIM_MODEL_SECONDS").unwrap_or(4));
    println!("SERIATIM_MODEL_SEED={seed}");
    let clock = TestClock::at("2026-07-01T12:00:00Z");
    prove_with(Setup { clock: Some(clock.clone()), ..Setup::default() }, async |app| {
        let begun = Instant::now();
        let sweeper = app.dispatcher();
        let (mut dice, mut asked, mut met) = (Dice(seed), 0, BTreeMap::<String, usize>::new());
        for round in 0.. {
            if begun.elapsed() > time {
                break;
            }
            let series = format!("m{round}");
            let settings = json!({"issuer": series, "release": "last_unsent", "reservation_ttl_seconds": TTL,
                                  "reservation_overdue": "void"});
            app.first.create_series(&series, "M{yyyy}-{seq:3}", settings).await.expect(201);
            let shard = app.shard_of(&series).await;
            let mut reference = Reference::default();
            for step in 0..150 {
                if dice.roll(12) == 0 {
                    // Time passes, and sometimes the sweeper comes by.
                    let seconds = i64::try_from(dice.roll(1_500)).unwrap();
                    clock.advance(seconds);
                    reference.now += seconds;
                    if dice.roll(2) == 0 {
                        let swept = sweeper.sweep(&shard).await.unwrap();
                        assert_eq!(swept, reference.sweep(), "seed {seed}, series {series}, step {step}: sweep");
                        *met.entry("swept".to_owned()).or_default() += usize::try_from(swept).unwrap();
                    }
                }
                let (operation, key, body) = next(&mut dice, &reference, step);
                let expected = match operation {
                    "issue" | "reserve" => reference.take(operation, &key, &body),
                    "close" => reference.close(&key),
                    verb => reference.step(&key, verb, body["life"].as_i64()),
                };
                let answered = ask(&app.first, &series, operation, &key, &body).await;
                assert_eq!(answered, expected, "seed {seed}, series {series}, step {step}: {operation} {key} {body}");
                let what = match expected {
                    Expected::Numbers(status, replayed, _) => format!("{operation} {status} {replayed}"),
                    Expected::Problem(_, slug) => slug.to_owned(),
                };
                *met.entry(what).or_default() += 1;
                asked += 1;
            }
            // Nothing of this series is left to sweep in the next rounds.
            clock.advance(TTL + 1);
            reference.now += TTL + 1;
            assert_eq!(sweeper.sweep(&shard).await.unwrap(), reference.sweep(), "seed {seed}, series {series}: the last sweep");
            // Then many at once, whose order nobody knows; each key repeated says the same as before.
            let burst: Vec<_> = (0..24).map(|n| (format!("b{}", n / 2 + dice.roll(2)), body(&mut dice))).collect();
            let answers = all(burst.iter().cloned().map(|(key, body)| {
                let (api, series) = (app.first.clone(), series.clone());
                async move { ask(&api, &series, "issue", &key, &body).await }
            }))
            .await;
            for ((key, body), answer) in burst.iter().zip(answers) {
                if let Expected::Numbers(status, _, numbers) = answer {
                    let again = ask(&app.first, &series, "issue", key, body).await;
                    assert_eq!(again, Expected::Numbers(status, true, numbers), "seed {seed}, series {series}: {key} {body}");
                }
                asked += 2;
            }
        }
        println!("{asked} operations in {:?}: {met:?}", begun.elapsed());
    });
}
