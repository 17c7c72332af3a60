//! Everything observed, with short names for what is compared often, in the orders that the checks walk.

use std::{collections::HashMap, hash::Hash, ops::Range};

use crate::{
    Observed,
    history::{Answered, Attempt, Outcome},
    ledger::{Place, Row},
};

/// What an idempotency key is valid in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Scope<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) series: &'a str,
    pub(crate) key: &'a str,
}

/// Whom a number of a series may belong to: a document, or where none is named, whoever has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner<'a> {
    Document(&'a str),
    Key(usize),
}

/// A row of a shard.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub(crate) place: usize,
    pub(crate) scope: Option<usize>,
    pub(crate) row: &'a Row,
}

/// A number in an acknowledging answer.
#[derive(Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) place: usize,
    pub(crate) scope: usize,
    pub(crate) attempt: &'a Attempt,
    pub(crate) number: &'a Answered,
}

impl<'a> Said<'a> {
    pub(crate) fn owner(&self) -> Owner<'a> {
        owner(self.scope, self.attempt)
    }
}

pub(crate) fn owner(scope: usize, attempt: &Attempt) -> Owner<'_> {
    attempt.document_ref.as_deref().map_or(Owner::Key(scope), Owner::Document)
}

/// Short names, given in the order of first sight.
struct Names<T> {
    known: HashMap<T, usize>,
    list: Vec<T>,
}

impl<T: Copy + Eq + Hash> Names<T> {
    fn new() -> Self {
        Self { known: HashMap::new(), list: Vec::new() }
    }

    fn name(&mut self, thing: T) -> usize {
        *self.known.entry(thing).or_insert_with(|| {
            self.list.push(thing);
            self.list.len() - 1
        })
    }
}

/// The sorted copy of everything observed.
pub(crate) struct Index<'a> {
    places: Vec<Place<'a>>,
    scopes: Vec<Scope<'a>>,
    /// By place, value, shard.
    stored: Vec<Stored<'a>>,
    /// By place, value, and when it was answered.
    said: Vec<Said<'a>>,
    /// By scope, and when it was asked.
    attempts: Vec<&'a Attempt>,
    /// Where each scope's attempts are.
    spans: Vec<Range<usize>>,
    /// By place and first value.
    runs: Vec<(usize, i64)>,
    /// By place and shard: the last value.
    counters: Vec<(usize, &'a str, i64)>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(observed: &'a Observed) -> Self {
        let mut places = Names::new();
        let mut scopes = Names::new();
        let mut tried = Vec::with_capacity(observed.history.len());
        let mut said = Vec::new();
        for attempt in &observed.history {
            let (tenant, series) = (attempt.tenant.as_str(), attempt.series.as_str());
            let scope = scopes.name(Scope { tenant, series, key: &attempt.key });
            tried.push((scope, attempt));
            // Whatever else came with a refusal or half an answer acknowledges nothing.
            for number in attempt.numbers.iter().filter(|_| attempt.outcome == Outcome::Ok) {
                let place = places.name(Place { tenant, series, part: number.part, period: &number.period });
                said.push(Said { place, scope, attempt, number });
            }
        }
        let mut stored = Vec::with_capacity(observed.ledger.rows.len());
        for row in &observed.ledger.rows {
            let key = row.key.as_deref();
            let scope = key.map(|key| scopes.name(Scope { tenant: &row.tenant, series: &row.series, key }));
            stored.push(Stored { place: places.name(row.place()), scope, row });
        }
        let mut runs: Vec<_> = observed.ledger.runs.iter().map(|run| (places.name(run.place()), run.first)).collect();
        let mut counters: Vec<_> = observed
            .ledger
            .counters
            .iter()
            .map(|counter| (places.name(counter.place()), counter.shard.as_str(), counter.last))
            .collect();

        stored.sort_by_key(|stored| (stored.place, stored.row.value, stored.row.shard.as_str()));
        said.sort_by_key(|said| (said.place, said.number.value, said.attempt.completed, said.attempt.id));
        tried.sort_by_key(|(scope, attempt)| (*scope, attempt.invoked, attempt.id));
        runs.sort_unstable();
        counters.sort_unstable();
        let mut spans = vec![0..0; scopes.list.len()];
        let mut start = 0;
        for same in tried.chunk_by(|a, b| a.0 == b.0) {
            spans[same[0].0] = start..start + same.len();
            start += same.len();
        }
        let attempts = tried.into_iter().map(|(_, attempt)| attempt).collect();
        Self { places: places.list, scopes: scopes.list, stored, said, attempts, spans, runs, counters }
    }

    /// Every series key that was seen anywhere.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, Place<'a>)> {
        self.places.iter().copied().enumerate()
    }

    pub(crate) fn place(&self, place: usize) -> Place<'a> {
        self.places[place]
    }

    /// Every idempotency key that was seen anywhere.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = (usize, Scope<'a>)> {
        self.scopes.iter().copied().enumerate()
    }

    pub(crate) fn scope(&self, scope: usize) -> Scope<'a> {
        self.scopes[scope]
    }

    pub(crate) fn key(&self, scope: usize) -> &'a str {
        self.scopes[scope].key
    }

    /// All attempts with a key, earliest first.
    pub(crate) fn attempts(&self, scope: usize) -> &[&'a Attempt] {
        &self.attempts[self.spans[scope].clone()]
    }

    /// All rows, by place and value.
    pub(crate) fn stored(&self) -> &[Stored<'a>] {
        &self.stored
    }

    /// The rows of a series key, by value.
    pub(crate) fn stored_in(&self, place: usize) -> &[Stored<'a>] {
        equal(&self.stored, |stored| stored.place, &place)
    }

    /// The rows of a value; more than one is a finding.
    pub(crate) fn stored_at(&self, place: usize, value: i64) -> &[Stored<'a>] {
        equal(&self.stored, |stored| (stored.place, stored.row.value), &(place, value))
    }

    /// All acknowledged numbers, by place and value.
    pub(crate) fn said(&self) -> &[Said<'a>] {
        &self.said
    }

    /// Who was told a value, earliest first.
    pub(crate) fn said_at(&self, place: usize, value: i64) -> &[Said<'a>] {
        equal(&self.said, |said| (said.place, said.number.value), &(place, value))
    }

    /// Whether a run begins with this value.
    pub(crate) fn run_begins(&self, place: usize, value: i64) -> bool {
        self.runs.binary_search(&(place, value)).is_ok()
    }

    /// The counters of a series key with their shards; more than one agree, or one of them is a finding.
    pub(crate) fn counters(&self, place: usize) -> &[(usize, &'a str, i64)] {
        equal(&self.counters, |counter| counter.0, &place)
    }

    /// For each key the earliest moment at which the request that took its numbers can have been sent.
    ///
    /// A refused attempt took none, so it doesn't count where there is another.
    pub(crate) fn earliest(&self) -> Vec<Option<i64>> {
        let of = |scope| self.attempts(scope).iter().min_by_key(|attempt| (attempt.outcome == Outcome::Fail, attempt.invoked));
        (0..self.scopes.len()).map(|scope| of(scope).map(|attempt| attempt.invoked)).collect()
    }
}

/// The stretch of a sorted list whose key is this one.
fn equal<'s, T, K: Ord>(sorted: &'s [T], key: impl Fn(&T) -> K, wanted: &K) -> &'s [T] {
    let from = sorted.partition_point(|item| key(item) < *wanted);
    let length = sorted[from..].partition_point(|item| key(item) == *wanted);
    &sorted[from..from + length]
}
