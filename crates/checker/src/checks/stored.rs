//! The ledger by itself: every value once, none left out, and the counter where the numbers are.

use crate::{
    finding::Finding,
    index::{Index, Stored},
};

pub(crate) fn check(index: &Index<'_>, findings: &mut Vec<Finding>) {
    for (place, _) in index.places() {
        let rows = index.stored_in(place);
        once(index, rows, findings);
        in_step(index, rows, findings);
        counted(index, place, rows, findings);
    }
}

fn once(index: &Index<'_>, rows: &[Stored<'_>], findings: &mut Vec<Finding>) {
    for pair in rows.windows(2).filter(|pair| pair[0].row.value == pair[1].row.value) {
        let (series, value) = (index.place(pair[0].place).owned(), pair[0].row.value);
        let [one, other] = [&pair[0].row.shard, &pair[1].row.shard];
        findings.push(if one == other {
            Finding::Repeated { series, value, shard: one.clone() }
        } else {
            Finding::TwoShards { series, value, shards: [one.clone(), other.clone()] }
        });
    }
}

/// A released row keeps its place in the sequence: the next document takes it over.
fn in_step(index: &Index<'_>, rows: &[Stored<'_>], findings: &mut Vec<Finding>) {
    let mut before = None;
    for stored in rows {
        let value = stored.row.value;
        let follows = before.is_some_and(|before| value == before || value - 1 == before);
        if !follows && !index.run_begins(stored.place, value) {
            findings.push(Finding::Gap { series: index.place(stored.place).owned(), before, value });
        }
        before = Some(value);
    }
}

/// All shards together: a counter that stayed behind in a shard its series has left would begin to give
/// out what the other one gave already.
fn counted(index: &Index<'_>, place: usize, rows: &[Stored<'_>], findings: &mut Vec<Finding>) {
    let series = || index.place(place).owned();
    let counters = index.counters(place);
    let last = rows.iter().rfind(|stored| !stored.row.is_released()).map(|stored| stored.row.value);
    for &(_, shard, counter) in counters {
        // A run that has no number yet: its counter stands just before it.
        let before_a_run = last.is_none_or(|last| last < counter) && index.run_begins(place, counter + 1);
        if last != Some(counter) && !before_a_run {
            findings.push(Finding::CounterOff { series: series(), shard: shard.to_owned(), counter, last });
        }
    }
    match counters.iter().map(|counter| counter.2).max() {
        Some(counter) => {
            for stored in rows.iter().filter(|stored| stored.row.is_released() && stored.row.value <= counter) {
                findings.push(Finding::Skipped { series: series(), value: stored.row.value, counter });
            }
        }
        None => findings.extend(last.map(|last| Finding::CounterMissing { series: series(), last })),
    }
}
