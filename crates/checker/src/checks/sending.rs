//! The integrator: one document a number, of numbers that exist, and none kept waiting for ever.

use std::collections::HashSet;

use crate::{Observed, finding::Finding, index::Index};

pub(crate) fn check(observed: &Observed, index: &Index<'_>, findings: &mut Vec<Finding>) {
    let given: HashSet<_> = observed
        .ledger
        .rows
        .iter()
        .filter_map(|row| Some((row.tenant.as_str(), row.series.as_str(), row.number.as_deref()?)))
        .collect();
    let mut sent: Vec<_> = observed
        .sent
        .iter()
        .map(|sent| ((sent.tenant.as_str(), sent.series.as_str(), sent.number.as_str()), sent.document_hash.as_str()))
        .collect();
    sent.sort_unstable();
    for same in sent.chunk_by(|a, b| a.0 == b.0) {
        let (number, one) = same[0];
        // Sorted by hash too: if any two differ, the ends do.
        let (_, other) = same[same.len() - 1];
        let [tenant, series, text] = [number.0, number.1, number.2].map(str::to_owned);
        if one != other {
            let hashes = [one, other].map(str::to_owned);
            findings.push(Finding::TwoDocuments { tenant, series, number: text, hashes });
        } else if !given.contains(&number) {
            findings.push(Finding::SentUnknown { tenant, series, number: text });
        }
    }
    for stored in index.stored().iter().filter(|stored| stored.row.is_sealed()) {
        let age = observed.healed_at.saturating_sub(stored.row.at);
        if age > observed.sealed_limit {
            let (series, state) = (index.place(stored.place).owned(), stored.row.state.clone());
            findings.push(Finding::Sealed { series, value: stored.row.value, state, age });
        }
    }
}
