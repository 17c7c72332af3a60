//! Real time: what was known to somebody before another asked has the lower value.
//!
//! The values of a series key are walked downwards, keeping the earliest moment at which a client had a
//! higher one. A value whose request was sent after that moment is out of order. Values are distinct, so
//! this finds one inversion for every value that has any, and nothing has to be searched for.
//!
//! A key is tried more than once, and any of its attempts that was not refused may be the one that took the
//! number; so a number counts as asked for when the first of them was sent, and as known when the first
//! answer was there. Both err towards silence: a replay long afterwards is no inversion.

use std::collections::HashMap;

use crate::{
    finding::Finding,
    history::Outcome,
    index::{Index, Owner},
};

/// A number in real time.
#[derive(Clone, Copy)]
struct Moment {
    place: usize,
    value: i64,
    /// When its key was first sent; none where nobody sent it.
    invoked: Option<i64>,
    /// When the first client had it; none where none has.
    completed: Option<i64>,
}

pub(crate) fn check(index: &Index<'_>, findings: &mut Vec<Finding>) {
    for moments in moments(index).chunk_by(|a, b| a.place == b.place) {
        // The earliest known one of the higher values, and when.
        let mut known: Option<(i64, i64)> = None;
        for moment in moments.iter().rev() {
            if let (Some(invoked), Some((completed, higher))) = (moment.invoked, known)
                && completed < invoked
            {
                let series = index.place(moment.place).owned();
                findings.push(Finding::Inversion { series, value: moment.value, invoked, higher, completed });
            }
            known = known.into_iter().chain(moment.completed.map(|completed| (completed, moment.value))).min();
        }
    }
}

/// Every value that was seen anywhere, by place and value.
fn moments(index: &Index<'_>) -> Vec<Moment> {
    let (keys, documents) = (index.earliest(), documents(index));
    let mut moments = Vec::with_capacity(index.stored().len());
    // The ledger knows which key took a number: only that one's attempts count.
    for stored in index.stored() {
        let invoked = stored.scope.and_then(|scope| keys[scope]);
        moments.push(Moment { place: stored.place, value: stored.row.value, invoked, completed: None });
    }
    for said in index.said() {
        let taker_is_known = index.stored_at(said.place, said.number.value).iter().any(|stored| stored.scope.is_some());
        let document = match said.owner() {
            Owner::Key(_) => None,
            Owner::Document(name) => {
                let scope = index.scope(said.scope);
                documents.get(&(scope.tenant, scope.series, name)).copied()
            }
        };
        let asked = document.into_iter().chain(keys[said.scope]).min();
        let invoked = asked.filter(|_| !taker_is_known);
        moments.push(Moment { place: said.place, value: said.number.value, invoked, completed: said.attempt.completed });
    }
    moments.sort_by_key(|moment| (moment.place, moment.value));
    moments.dedup_by(|next, first| {
        let same = (next.place, next.value) == (first.place, first.value);
        if same {
            first.invoked = first.invoked.into_iter().chain(next.invoked).min();
            first.completed = first.completed.into_iter().chain(next.completed).min();
        }
        same
    });
    moments
}

/// When each document was first asked for, by whichever key.
fn documents<'a>(index: &Index<'a>) -> HashMap<(&'a str, &'a str, &'a str), i64> {
    let mut first = HashMap::new();
    for (scope, name) in index.scopes() {
        for attempt in index.attempts(scope).iter().filter(|attempt| attempt.outcome != Outcome::Fail) {
            if let Some(document) = attempt.document_ref.as_deref() {
                let known = first.entry((name.tenant, name.series, document)).or_insert(attempt.invoked);
                *known = attempt.invoked.min(*known);
            }
        }
    }
    first
}
