//! A key has one answer, however often and wherever it is asked with.

use crate::{finding::Finding, history::Outcome, index::Index};

pub(crate) fn check(index: &Index<'_>, findings: &mut Vec<Finding>) {
    for (scope, name) in index.scopes() {
        let answers = || index.attempts(scope).iter().filter(|attempt| attempt.outcome == Outcome::Ok);
        let (tenant, series, key) = (|| name.tenant.to_owned(), || name.series.to_owned(), || name.key.to_owned());
        if let Some(first) = answers().next()
            && let Some(other) = answers().find(|attempt| attempt.numbers != first.numbers)
        {
            let attempts = [first.id, other.id];
            findings.push(Finding::KeyNumbers { tenant: tenant(), series: series(), key: key(), attempts });
        }
        let hashed = || answers().filter(|attempt| attempt.body_hash.is_some());
        if let Some(first) = hashed().next()
            && let Some(other) = hashed().find(|attempt| attempt.body_hash != first.body_hash)
        {
            let attempts = [first.id, other.id];
            findings.push(Finding::KeyBodies { tenant: tenant(), series: series(), key: key(), attempts });
        }
    }
}
