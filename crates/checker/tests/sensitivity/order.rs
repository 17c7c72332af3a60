//! The walk down the values finds exactly what comparing every pair finds.

use std::collections::BTreeSet;

use checker::{Answered, Attempt, Finding, Observed, Outcome, check};

use crate::seed::Seed;

/// A key of its own for each value, tried up to three times at any moment.
fn anything(seed: &mut Seed) -> Vec<Attempt> {
    let mut history: Vec<Attempt> = Vec::new();
    for value in 0..seed.within(2, 9) {
        for attempt in 0..seed.within(1, 4) {
            let outcome = *seed.pick(&[Outcome::Ok, Outcome::Ok, Outcome::Info, Outcome::Fail]);
            let invoked = seed.within(0, 40);
            let number = Answered { value, number: value.to_string(), period: "all".into(), part: 0 };
            history.push(Attempt {
                id: u64::try_from(history.len()).expect("small"),
                client: 1,
                attempt: u32::try_from(attempt).expect("small"),
                tenant: "tenant".into(),
                series: "series".into(),
                period: "all".into(),
                key: format!("key {value}"),
                document_ref: None,
                invoked,
                completed: Some(invoked + seed.within(0, 12)),
                outcome,
                numbers: if outcome == Outcome::Ok { vec![number] } else { Vec::new() },
                body_hash: None,
                gateway: "gateway".into(),
                epoch: 1,
            });
        }
    }
    history
}

/// The values that were asked for only when a higher one was known: every pair of values compared.
fn inverted(history: &[Attempt]) -> BTreeSet<i64> {
    let values: BTreeSet<i64> = history.iter().flat_map(|attempt| &attempt.numbers).map(|number| number.value).collect();
    let of = |value: i64| history.iter().filter(move |attempt| attempt.key == format!("key {value}"));
    let asked = |value: i64| of(value).filter(|a| a.outcome != Outcome::Fail).map(|a| a.invoked).min();
    let known = |value: i64| of(value).filter(|a| a.outcome == Outcome::Ok).filter_map(|a| a.completed).min();
    let before = |higher: i64, lower: i64| known(higher).zip(asked(lower)).is_some_and(|(known, asked)| known < asked);
    values.iter().copied().filter(|lower| values.range(lower + 1..).any(|higher| before(*higher, *lower))).collect()
}

#[test]
fn the_walk_finds_what_all_pairs_find() {
    let (mut some, mut none) = (0, 0);
    for number in 0..5000 {
        let history = anything(&mut Seed::new(number));
        let expected = inverted(&history);
        // There is no ledger here, so everything else that it finds is beside the point.
        let report = check(&Observed { history, ..Observed::default() });
        let found: BTreeSet<i64> = report
            .findings
            .iter()
            .filter_map(|finding| match finding {
                Finding::Inversion { value, .. } => Some(*value),
                _ => None,
            })
            .collect();
        assert_eq!(found, expected, "seed {number}");
        if expected.is_empty() { none += 1 } else { some += 1 }
    }
    assert!(some > 500 && none > 500, "one-sided: {some} and {none}");
}
