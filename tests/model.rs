//! Random operations against a reference series: a few lines that do without a database what the program does with two.
//!
//! `SERIATIM_MODEL_SECONDS` makes it longer than CI's few seconds, `SERIATIM_MODEL_SEED` repeats a run.

use std::{
    collections::BTreeMap,
    env,
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testkit::{Api, prove};

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

#[derive(Default)]
struct Reference {
    last: BTreeMap<String, usize>,
    /// By reference: number and date.
    documents: BTreeMap<String, (String, String)>,
    /// By number.
    states: BTreeMap<String, &'static str>,
    /// By key: operation, body, status, numbers with their states.
    claims: BTreeMap<String, (&'static str, Value, u16, Vec<String>)>,
}

impl Reference {
    /// `issue` or `reserve`.
    fn take(&mut self, operation: &'static str, key: &str, body: &Value) -> Expected {
        if let Some((of, meant, status, numbers)) = self.claims.get(key) {
            return if meant == body && *of == operation {
                Expected::Numbers(*status, true, numbers.clone())
            } else {
                Expected::Problem(422, "idempotency-key-reused")
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
                Some((number, _)) if self.states[number] == "voided" => return Expected::Problem(409, "document-voided"),
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
            let last = self.last.entry(date[..4].to_owned()).or_default();
            if *last + fresh.len() > MOST {
                return Expected::Problem(409, "series-exhausted");
            }
            for (place, (reference, date)) in numbers.iter_mut().filter(|number| number.is_none()).zip(&fresh) {
                *last += 1;
                let number = format!("M{}-{last:03}", &date[..4]);
                if let Some(reference) = reference {
                    self.documents.insert((*reference).to_owned(), (number.clone(), (*date).to_owned()));
                }
                *place = Some(number);
            }
        }
        let status = if fresh.is_empty() { 200 } else { 201 };
        let shown = numbers.into_iter().flatten().map(|number| {
            let state = self.states.entry(number.clone()).or_insert("reserved");
            if operation == "issue" && matches!(*state, "reserved" | "failed") {
                *state = "issued";
            }
            format!("{number} {state}")
        });
        let numbers: Vec<_> = shown.collect();
        self.claims.insert(key.to_owned(), (operation, body.clone(), status, numbers.clone()));
        Expected::Numbers(status, false, numbers)
    }

    fn step(&mut self, number: &str, verb: &str) -> Expected {
        let Some(state) = self.states.get_mut(number) else { return Expected::Problem(404, "not-found") };
        *state = match (*state, verb) {
            (_, "void") => "voided",
            ("reserved" | "failed" | "issued", "confirm") => "issued",
            ("reserved" | "failed", "fail") => "failed",
            _ => return Expected::Problem(409, "wrong-state"),
        };
        Expected::Numbers(200, false, vec![format!("{number} {state}")])
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

/// An operation: one of the verbs on a number, or `issue` or `reserve` with a body.
async fn ask(api: &Api, series: &str, operation: &str, key: &str, body: &Value) -> Expected {
    let path = match operation {
        "issue" => "numbers".to_owned(),
        "reserve" => "reservations".to_owned(),
        verb => format!("numbers/{key}/{verb}"),
    };
    let reply = api.post(&format!("/v1/series/{series}/{path}"), key, body.clone()).await;
    let text = |number: &Value| format!("{} {}", number["number"].as_str().unwrap(), number["state"].as_str().unwrap());
    match (reply.status, reply.body["numbers"].as_array()) {
        (200 | 201, Some(numbers)) => Expected::Numbers(reply.status, reply.replayed(), numbers.iter().map(text).collect()),
        (200 | 201, None) => Expected::Numbers(reply.status, reply.replayed(), vec![text(&reply.body)]),
        (status, _) => {
            let kind = reply.body["type"].as_str().unwrap_or_default().trim_start_matches("/problems/").to_owned();
            Expected::Problem(status, kind.leak())
        }
    }
}

#[test]
fn random_operations_agree_with_a_reference() {
    let number = |name: &str| env::var(name).ok().and_then(|word| word.parse().ok());
    let seed = number("SERIATIM_MODEL_SEED").unwrap_or_else(|| RandomState::new().hash_one("seed"));
    let time = Duration::from_secs(number("SERIATIM_MODEL_SECONDS").unwrap_or(4));
    println!("SERIATIM_MODEL_SEED={seed}");
    prove(async |app| {
        let begun = Instant::now();
        let (mut dice, mut asked, mut met) = (Dice(seed), 0, BTreeMap::<String, usize>::new());
        for round in 0.. {
            if begun.elapsed() > time {
                break;
            }
            let series = format!("m{round}");
            app.first.create_series(&series, "M{yyyy}-{seq:3}", json!({"issuer": series})).await.expect(201);
            let mut reference = Reference::default();
            for step in 0..150 {
                let key = if dice.roll(5) == 0 { format!("k{}", dice.roll(step + 1)) } else { format!("k{step}") };
                let known = reference.claims.get(&key).map(|(operation, body, ..)| (*operation, body.clone()));
                let verb = ["confirm", "fail", "void"][dice.roll(3)];
                let (operation, key, body) = match known.filter(|_| dice.roll(4) > 0) {
                    Some((operation, body)) => (operation, key, body),
                    None if dice.roll(4) == 0 => {
                        let number = format!("M2026-{:03}", dice.roll(reference.last.get("2026").copied().unwrap_or(0) + 2));
                        (verb, number, json!({"reason": "by lot"}))
                    }
                    None => {
                        let body = body(&mut dice);
                        let reserves = body["document_ref"].is_string() && dice.roll(2) == 0;
                        (if reserves { "reserve" } else { "issue" }, key, body)
                    }
                };
                let expected = match operation {
                    "issue" | "reserve" => reference.take(operation, &key, &body),
                    verb => reference.step(&key, verb),
                };
                let answered = ask(&app.first, &series, operation, &key, &body).await;
                assert_eq!(answered, expected, "seed {seed}, series {series}, step {step}: {operation} {key} {body}");
                let what = match expected {
                    Expected::Numbers(status, replayed, _) => format!("{status} {replayed}"),
                    Expected::Problem(_, slug) => slug.to_owned(),
                };
                *met.entry(what).or_default() += 1;
                asked += 1;
            }
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
