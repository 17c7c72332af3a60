//! Every schedule that a seed can make: riders come, rounds go well or fail in every way, others use the same counter,
//! COMMITs are lost before or after they happened. What must hold is held against a model of the database.

use std::collections::{BTreeMap, HashSet};

use super::*;

/// A generator whose whole state is the seed that a failure prints (`SplitMix64`, Steele, Lea and Flood, 2014).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }
}

/// A request of the model: its key, how many numbers, and whether the database refuses whatever carries it.
#[derive(Clone, Copy, Debug)]
struct Ask {
    id: u64,
    key: u64,
    poison: bool,
}

/// The counter and the claims, as the database would have them.
#[derive(Default)]
struct Model {
    last: u64,
    claims: BTreeMap<u64, (u64, u64)>,
    /// Values that another gateway took.
    others: u64,
}

/// What each request heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Numbers(u64, u64),
    Failed { unknown: bool },
}

struct Run {
    dice: Dice,
    queue: Queue<Ask>,
    model: Model,
    now: Instant,
    heard: BTreeMap<u64, Heard>,
    asked: Vec<Ask>,
    documents: BTreeMap<u64, usize>,
    fresh: Vec<(u64, u64)>,
    rounds: u32,
    aside: Vec<Rider<Ask>>,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice(seed),
            queue: Queue::new(0),
            model: Model::default(),
            now: Instant::now(),
            heard: BTreeMap::new(),
            asked: Vec::new(),
            documents: BTreeMap::new(),
            fresh: Vec::new(),
            rounds: 0,
            aside: Vec::new(),
        }
    }

    fn arrive(&mut self) {
        let id = u64::try_from(self.asked.len()).unwrap();
        // Now and then a key that came before.
        let key = if id > 0 && self.dice.one_in(6) { self.asked[usize::try_from(self.dice.roll(id)).unwrap()].key } else { id };
        let poison = self.asked.iter().find(|ask| ask.key == key).map_or_else(|| self.dice.one_in(40), |ask| ask.poison);
        let documents =
            *self.documents.entry(key).or_insert_with(|| [1, 1, 1, 7, 600][usize::try_from(self.dice.roll(5)).unwrap()]);
        let ask = Ask { id, key, poison };
        self.asked.push(ask);
        let patience = Duration::from_millis(self.dice.roll(400) + 1);
        self.queue.join(Rider::new(ask, documents, self.now + patience));
    }

    /// What the transaction of a round does to the model: the first of each key takes or replays, later ones wait.
    fn apply(&mut self, riders: &[Rider<Ask>]) -> Vec<Option<(u64, u64)>> {
        let mut seen = HashSet::new();
        let mut outcomes = Vec::new();
        for rider in riders {
            if !seen.insert(rider.what.key) {
                outcomes.push(None);
                continue;
            }
            let count = u64::try_from(rider.documents).unwrap();
            let known = self.model.claims.get(&rider.what.key).copied();
            outcomes.push(Some(known.unwrap_or_else(|| {
                let first = self.model.last + 1;
                self.model.last += count;
                self.model.claims.insert(rider.what.key, (first, count));
                self.fresh.push((rider.what.id, first));
                (first, count)
            })));
        }
        outcomes
    }

    fn hear(&mut self, rider: &Rider<Ask>, heard: Heard) {
        assert!(self.heard.insert(rider.what.id, heard).is_none(), "request {} heard twice", rider.what.id);
    }

    fn round(&mut self) {
        for rider in self.queue.late(self.now) {
            self.hear(&rider, Heard::Failed { unknown: rider.unknown });
        }
        let waiting = self.queue.waiting.len();
        let round = self.queue.board();
        if round.riders.is_empty() {
            assert_eq!(waiting, 0, "somebody waits and nobody rides");
            return;
        }
        self.rounds += 1;
        assert!(round.riders.len() <= ORDERS);
        let documents: usize = round.riders.iter().map(|rider| rider.documents).sum();
        assert!(documents <= DOCUMENTS || round.riders.len() == 1);
        self.now += Duration::from_millis(self.dice.roll(10));
        // Without a look, a key that is there already makes the whole round fail.
        if round.straight && round.riders.iter().any(|rider| self.model.claims.contains_key(&rider.what.key)) {
            return self.fail(round.riders, Kind::Unlooked, false);
        }
        let moved = !round.lock && self.dice.one_in(12);
        if moved {
            self.model.last += 1;
            self.model.others += 1;
            return self.fail(round.riders, Kind::Moved, false);
        }
        let poisoned = round.riders.iter().any(|rider| rider.what.poison);
        match self.dice.roll(30) {
            0 => self.fail(round.riders, Kind::InTheWay, false),
            1 => self.fail(round.riders, Kind::Stale, false),
            2 => self.fail(round.riders, Kind::Lost, false),
            3 => self.fail(round.riders, Kind::Lost, true),
            // Lost after it happened.
            4 if !poisoned => {
                self.apply(&round.riders);
                self.fail(round.riders, Kind::Lost, true);
            }
            _ if poisoned => self.fail(round.riders, Kind::OneOfThem, false),
            _ => {
                let outcomes = self.apply(&round.riders);
                let mut again = Vec::new();
                for (rider, outcome) in round.riders.into_iter().zip(outcomes) {
                    match outcome {
                        Some((first, count)) => self.hear(&rider, Heard::Numbers(first, count)),
                        None => again.push(rider),
                    }
                }
                self.queue.went_well(again);
            }
        }
    }

    fn fail(&mut self, riders: Vec<Rider<Ask>>, kind: Kind, unknown: bool) {
        let whose: Vec<_> = riders.iter().map(|rider| rider.what.id).collect();
        let next = self.queue.failed(riders, kind, unknown, self.now);
        if let Some(rider) = &next.aside {
            assert!(rider.what.poison && whose == [rider.what.id], "{} went aside for another's sake", rider.what.id);
        }
        for rider in next.given_up {
            assert!(rider.deadline <= self.now || rider.lost > store::LOST, "request {} gave up early", rider.what.id);
            self.hear(&rider, Heard::Failed { unknown: rider.unknown });
        }
        self.aside.extend(next.aside);
        self.now += next.pause.unwrap_or_default();
    }

    fn check(self) {
        let aside: HashSet<_> = self.aside.iter().map(|rider| rider.what.id).collect();
        for ask in &self.asked {
            match self.heard.get(&ask.id) {
                None => assert!(aside.contains(&ask.id), "request {} heard nothing", ask.id),
                Some(Heard::Numbers(first, count)) => {
                    assert!(!aside.contains(&ask.id));
                    assert_eq!(self.model.claims.get(&ask.key), Some(&(*first, *count)), "another answer for key {}", ask.key);
                }
                // Whatever took something under this key, this one either knows that it does not know, or was not it.
                Some(Heard::Failed { unknown }) => {
                    let took = self.fresh.iter().any(|(id, _)| *id == ask.id);
                    assert!(*unknown || !took, "request {} took numbers and was told that it had not", ask.id);
                }
            }
        }
        assert!(self.queue.is_empty() && self.queue.documents() == 0, "nobody is left and nothing is counted");
        let taken: u64 = self.model.claims.values().map(|(_, count)| count).sum();
        assert_eq!(taken + self.model.others, self.model.last, "no value was lost or given twice");
        assert!(self.rounds <= 40 * u32::try_from(self.asked.len()).unwrap() + 40, "{} rounds", self.rounds);
    }
}

#[test]
fn a_hundred_thousand_schedules() {
    for seed in 0..100_000 {
        let done = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed);
            let arrivals = run.dice.roll(24) + 1;
            while u64::try_from(run.asked.len()).unwrap() < arrivals {
                if run.dice.one_in(3) { run.round() } else { run.arrive() }
            }
            for _ in 0..5_000 {
                if run.queue.is_empty() {
                    break;
                }
                run.round();
            }
            run.check();
        });
        assert!(done.is_ok(), "seed {seed}");
    }
}

fn rider(id: u64, documents: usize) -> Rider<Ask> {
    Rider::new(Ask { id, key: id, poison: false }, documents, Instant::now() + Duration::from_secs(9))
}

fn ids(riders: &[Rider<Ask>]) -> Vec<u64> {
    riders.iter().map(|rider| rider.what.id).collect()
}

#[test]
fn the_order_of_arrival_is_kept_over_failures() {
    let mut queue = Queue::new(0);
    for id in 0..6 {
        queue.join(rider(id, 1));
    }
    let round = queue.board();
    queue.join(rider(6, 1));
    let _ = queue.failed(round.riders, Kind::OneOfThem, false, Instant::now());
    let half = queue.board();
    assert_eq!(ids(&half.riders), [0, 1, 2]);
    queue.went_well(half.riders.into_iter().skip(2).collect());
    assert_eq!(ids(&queue.board().riders), [2, 3, 4, 5, 6], "what has to ride again goes first, and the round is large again");
}

#[test]
fn one_that_fails_alone_goes_aside() {
    let mut queue = Queue::new(0);
    for id in 0..5 {
        queue.join(rider(id, 1));
    }
    let mut aside = None;
    let mut answered = Vec::new();
    while !queue.is_empty() {
        let round = queue.board();
        if round.riders.iter().any(|rider| rider.what.id == 3) {
            aside = queue.failed(round.riders, Kind::OneOfThem, false, Instant::now()).aside.map(|rider| rider.what.id).or(aside);
        } else {
            answered.extend(ids(&round.riders));
            queue.went_well(Vec::new());
        }
    }
    assert_eq!((aside, answered), (Some(3), vec![0, 1, 2, 4]));
}

#[test]
fn a_large_order_rides_alone_and_lets_the_next_follow() {
    let mut queue = Queue::new(0);
    for (id, documents) in [(0, 1_000), (1, 1_000), (2, 20), (3, 5)] {
        queue.join(rider(id, documents));
    }
    assert_eq!(ids(&queue.board().riders), [0]);
    assert_eq!(ids(&queue.board().riders), [1, 2]);
    assert_eq!(ids(&queue.board().riders), [3]);
    assert!(queue.board().riders.is_empty());
}
