//! What clients were told, against what stands in the ledger.

use crate::{
    finding::{Finding, Holder},
    history::{Attempt, Outcome},
    index::{Index, Said, Stored, owner},
    report::Resolved,
};

pub(crate) fn check(index: &Index<'_>, findings: &mut Vec<Finding>) -> Resolved {
    for told in index.said().chunk_by(|a, b| (a.place, a.number.value) == (b.place, b.number.value)) {
        kept(index, told, findings);
        one_holder(index, told, findings);
    }
    let took = took(index);
    for (scope, first) in took.iter().enumerate() {
        if let Some(stored) = first {
            asked_for(index, scope, stored, findings);
        }
    }
    for stored in index.stored() {
        told(index, stored, findings);
    }
    resolve(index, &took)
}

/// An acknowledged number is there, with the text that was told.
fn kept(index: &Index<'_>, told: &[Said<'_>], findings: &mut Vec<Finding>) {
    let Said { place, scope, attempt, number } = told[0];
    let series = || index.place(place).owned();
    let stored = index.stored_at(place, number.value);
    if stored.is_empty() {
        findings.push(Finding::Lost {
            series: series(),
            value: number.value,
            number: number.number.clone(),
            key: index.key(scope).to_owned(),
            attempt: attempt.id,
        });
    }
    for row in stored.iter().map(|stored| stored.row) {
        let other = told.iter().find(|said| Some(&said.number.number) != row.number.as_ref());
        findings.extend(other.map(|said| Finding::Altered {
            series: series(),
            value: number.value,
            answered: said.number.number.clone(),
            stored: row.number.clone(),
            attempt: said.attempt.id,
        }));
    }
}

/// A number has one document. Where the requests name none, it has one key.
fn one_holder(index: &Index<'_>, told: &[Said<'_>], findings: &mut Vec<Finding>) {
    let first = &told[0];
    let series = || index.place(first.place).owned();
    let value = first.number.value;
    for pair in told.windows(2).filter(|pair| std::ptr::eq(pair[0].attempt, pair[1].attempt)) {
        findings.push(Finding::ToldTwice { series: series(), value, attempt: pair[0].attempt.id });
    }
    let by = |attempt: &Attempt, answered| Holder {
        key: attempt.key.clone(),
        document_ref: attempt.document_ref.clone(),
        attempt: answered,
    };
    let other = told.iter().find(|said| said.owner() != first.owner()).map(|said| by(said.attempt, Some(said.attempt.id)));
    let stored = || {
        let scope = index.stored_at(first.place, value).iter().filter_map(|stored| stored.scope).find(|scope| {
            // The key that took it may be another one, if it was for the same document.
            let same = |attempt: &&Attempt| owner(*scope, attempt) == first.owner();
            *scope != first.scope && !index.attempts(*scope).iter().any(same)
        })?;
        let document_ref = index.attempts(scope).first().and_then(|attempt| attempt.document_ref.clone());
        Some(Holder { key: index.key(scope).to_owned(), document_ref, attempt: None })
    };
    if let Some(second) = other.or_else(stored) {
        findings.push(Finding::Shared { series: series(), value, first: by(first.attempt, Some(first.attempt.id)), second });
    }
}

/// For each key the first row it took, if it took any.
fn took<'a>(index: &Index<'a>) -> Vec<Option<Stored<'a>>> {
    let mut first = vec![None; index.scopes().count()];
    for stored in index.stored() {
        if let Some(scope) = stored.scope {
            first[scope].get_or_insert(*stored);
        }
    }
    first
}

/// Whatever took a number was asked for, and not refused every time. One attempt with an unknown end among
/// the refused ones may have taken it, so then nothing is said.
fn asked_for(index: &Index<'_>, scope: usize, stored: &Stored<'_>, findings: &mut Vec<Finding>) {
    let (series, value, key) = (|| index.place(stored.place).owned(), stored.row.value, || index.key(scope).to_owned());
    let attempts = index.attempts(scope);
    match attempts.first() {
        None => findings.push(Finding::Ghost { series: series(), value, key: key() }),
        Some(first) if attempts.iter().all(|attempt| attempt.outcome == Outcome::Fail) => {
            findings.push(Finding::FailTook { series: series(), value, key: key(), attempt: first.id });
        }
        Some(_) => {}
    }
}

/// What a key took is in its answer, once it has one; and no number is nobody's.
fn told(index: &Index<'_>, stored: &Stored<'_>, findings: &mut Vec<Finding>) {
    let row = stored.row;
    let series = || index.place(stored.place).owned();
    let told = index.said_at(stored.place, row.value);
    let Some(scope) = stored.scope else {
        if told.is_empty() && !row.is_missing() {
            findings.push(Finding::Unclaimed { series: series(), value: row.value, shard: row.shard.clone() });
        }
        return;
    };
    let answered = index.attempts(scope).iter().any(|attempt| attempt.outcome == Outcome::Ok);
    if answered && !told.iter().any(|said| said.scope == scope) {
        findings.push(Finding::Surplus { series: series(), value: row.value, key: index.key(scope).to_owned() });
    }
}

fn resolve(index: &Index<'_>, took: &[Option<Stored<'_>>]) -> Resolved {
    let mut resolved = Resolved::default();
    for (scope, _) in index.scopes() {
        let attempts = index.attempts(scope);
        let unknown = attempts.iter().filter(|attempt| attempt.outcome == Outcome::Info).count();
        // A key that asked for a document which had its number already took nothing, and was answered.
        if took[scope].is_some() || attempts.iter().any(|attempt| attempt.outcome == Outcome::Ok) {
            resolved.happened += unknown;
        } else {
            resolved.did_not += unknown;
        }
    }
    resolved
}
