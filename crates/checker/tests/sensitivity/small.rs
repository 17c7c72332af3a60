//! The edges, by hand: what is just right, and what is just wrong.

use checker::{Answered, Attempt, Counter, Fault, Finding, Ledger, Observed, Outcome, Resolved, Row, Run, Sent, Verdict, check};

fn attempt(id: u64, key: &str, invoked: i64, completed: i64, value: i64) -> Attempt {
    Attempt {
        id,
        client: id,
        attempt: 1,
        tenant: "tenant".into(),
        series: "series".into(),
        period: "all".into(),
        key: key.into(),
        document_ref: None,
        invoked,
        completed: Some(completed),
        outcome: Outcome::Ok,
        numbers: vec![Answered { value, number: value.to_string(), period: "all".into(), part: 0 }],
        body_hash: None,
        gateway: "gateway".into(),
        epoch: 1,
    }
}

fn without_answer(outcome: Outcome, attempt: Attempt) -> Attempt {
    Attempt { outcome, numbers: Vec::new(), ..attempt }
}

fn row(value: i64, key: &str) -> Row {
    Row {
        shard: "shard".into(),
        tenant: "tenant".into(),
        series: "series".into(),
        part: 0,
        period: "all".into(),
        value,
        number: Some(value.to_string()),
        state: "issued".into(),
        key: Some(key.into()),
        at: 0,
    }
}

/// A series from 1 on, with these rows and attempts.
fn observed(rows: Vec<Row>, history: Vec<Attempt>) -> Observed {
    let last = rows.iter().filter(|row| row.state != "released").map(|row| row.value).max().unwrap_or(0);
    let counter =
        Counter { shard: "shard".into(), tenant: "tenant".into(), series: "series".into(), part: 0, period: "all".into(), last };
    let run = Run { tenant: "tenant".into(), series: "series".into(), part: 0, period: "all".into(), first: 1 };
    let ledger = Ledger { rows, counters: vec![counter], runs: vec![run] };
    Observed { history, ledger, ..Observed::default() }
}

fn findings(observed: &Observed) -> Vec<Finding> {
    check(observed).findings
}

#[test]
fn the_same_moment_is_not_before() {
    let ask = |invoked| {
        let history = vec![attempt(1, "a", 0, 10, 2), attempt(2, "b", invoked, 20, 1)];
        findings(&observed(vec![row(1, "b"), row(2, "a")], history))
    };
    assert_eq!(ask(10), []);
    assert!(matches!(ask(11)[..], [Finding::Inversion { value: 1, invoked: 11, higher: 2, completed: 10, .. }]));
}

#[test]
fn a_replay_long_afterwards_is_no_inversion() {
    let first = without_answer(Outcome::Info, attempt(1, "b", 0, 5, 1));
    let history = vec![first, attempt(2, "a", 0, 10, 2), attempt(3, "b", 100, 110, 1)];
    assert_eq!(findings(&observed(vec![row(1, "b"), row(2, "a")], history)), []);
}

#[test]
fn a_refused_attempt_takes_nothing_and_so_excuses_nothing() {
    let first = without_answer(Outcome::Fail, attempt(1, "b", 0, 5, 1));
    let history = vec![first, attempt(2, "a", 0, 10, 2), attempt(3, "b", 100, 110, 1)];
    let found = findings(&observed(vec![row(1, "b"), row(2, "a")], history));
    assert!(matches!(found[..], [Finding::Inversion { value: 1, .. }]));
}

#[test]
fn an_unanswered_number_has_a_place_in_time_too() {
    let unknown = without_answer(Outcome::Info, attempt(1, "b", 100, 110, 1));
    let found = findings(&observed(vec![row(1, "b"), row(2, "a")], vec![unknown, attempt(2, "a", 0, 10, 2)]));
    assert!(matches!(found[..], [Finding::Inversion { value: 1, .. }]));
}

#[test]
fn across_series_nothing_is_promised() {
    let mut elsewhere = attempt(2, "b", 100, 110, 1);
    elsewhere.series = "other".into();
    let mut all = observed(vec![row(1, "c"), row(2, "a")], vec![attempt(3, "c", 0, 5, 1), attempt(1, "a", 0, 10, 2), elsewhere]);
    all.ledger.rows.push(Row { series: "other".into(), ..row(1, "b") });
    all.ledger.counters.push(Counter { series: "other".into(), last: 1, ..all.ledger.counters[0].clone() });
    all.ledger.runs.push(Run { series: "other".into(), ..all.ledger.runs[0].clone() });
    assert_eq!(findings(&all), []);
}

#[test]
fn two_keys_for_one_document_have_one_number() {
    let for_document = |document: &str, attempt: Attempt| Attempt { document_ref: Some(document.into()), ..attempt };
    let ask = |second: &str| {
        let history = vec![for_document("d", attempt(1, "a", 0, 10, 1)), for_document(second, attempt(2, "b", 20, 30, 1))];
        findings(&observed(vec![row(1, "a")], history))
    };
    assert_eq!(ask("d"), []);
    assert!(matches!(&ask("e")[..], [Finding::Shared { value: 1, first, second, .. }]
        if (first.key.as_str(), second.key.as_str()) == ("a", "b")));
    let taken_by_the_unknown = vec![
        for_document("d", without_answer(Outcome::Info, attempt(1, "a", 0, 10, 1))),
        for_document("d", attempt(2, "b", 20, 30, 1)),
    ];
    assert_eq!(findings(&observed(vec![row(1, "a")], taken_by_the_unknown)), []);
}

#[test]
fn where_the_claim_is_gone_any_key_of_the_document_may_have_taken_it() {
    let for_document = |attempt: Attempt| Attempt { document_ref: Some("d".into()), ..attempt };
    let first = for_document(without_answer(Outcome::Info, attempt(1, "a", 0, 5, 1)));
    let history = vec![first, for_document(attempt(2, "b", 100, 110, 1)), attempt(3, "c", 0, 10, 2)];
    let swept = Row { key: None, ..row(1, "a") };
    assert_eq!(findings(&observed(vec![swept.clone(), row(2, "c")], history.clone())), []);
    let found = findings(&observed(vec![swept, row(2, "c")], history[1..].to_vec()));
    assert!(matches!(found[..], [Finding::Inversion { value: 1, invoked: 100, .. }]));
}

#[test]
fn only_an_ok_acknowledges() {
    for outcome in [Outcome::Fail, Outcome::Info] {
        let half = Attempt { outcome, ..attempt(1, "a", 0, 10, 1) };
        assert_eq!(findings(&observed(Vec::new(), vec![half])), [], "whatever its body named");
    }
}

#[test]
fn a_refusal_beside_an_unknown_outcome_is_explained_by_it() {
    let refused = without_answer(Outcome::Fail, attempt(1, "a", 0, 10, 1));
    let unknown = without_answer(Outcome::Info, attempt(2, "a", 20, 30, 1));
    let alone = findings(&observed(vec![row(1, "a")], vec![refused.clone()]));
    assert!(matches!(alone[..], [Finding::FailTook { value: 1, attempt: 1, .. }]));
    assert_eq!(findings(&observed(vec![row(1, "a")], vec![refused, unknown])), []);
}

#[test]
fn unknown_outcomes_are_resolved_by_the_ledger() {
    let unknown = |id, key| without_answer(Outcome::Info, attempt(id, key, 0, 10, 1));
    let report = check(&observed(vec![row(1, "a")], vec![unknown(1, "a"), unknown(2, "a"), unknown(3, "b")]));
    assert_eq!((report.verdict, report.resolved_info), (Verdict::Right, Resolved { happened: 2, did_not: 1 }));
}

#[test]
fn a_counter_before_its_first_number() {
    let mut all = observed(Vec::new(), Vec::new());
    assert_eq!(findings(&all), []);
    all.ledger.counters[0].last = 1;
    assert!(matches!(findings(&all)[..], [Finding::CounterOff { counter: 1, last: None, .. }]));
}

#[test]
fn released_rows_lie_above_the_counter() {
    let released = |value| Row { state: "released".into(), ..row(value, "a") };
    let two = Attempt {
        numbers: [1, 2].map(|value| attempt(1, "a", 0, 10, value).numbers.remove(0)).into(),
        ..attempt(1, "a", 0, 10, 1)
    };
    assert_eq!(findings(&observed(vec![row(1, "a"), released(2)], vec![two.clone()])), []);
    assert_eq!(findings(&observed(vec![released(1), released(2)], vec![two.clone()])), []);
    let found = findings(&observed(vec![released(1), row(2, "a")], vec![two]));
    assert!(matches!(found[..], [Finding::Skipped { value: 1, counter: 2, .. }]));
}

#[test]
fn waiting_for_exactly_the_limit_is_allowed() {
    let mut all = observed(vec![Row { state: "sending".into(), at: 50, ..row(1, "a") }], vec![attempt(1, "a", 0, 10, 1)]);
    (all.healed_at, all.sealed_limit) = (150, 100);
    assert_eq!(findings(&all), []);
    all.healed_at = 151;
    assert!(matches!(&findings(&all)[..], [Finding::Sealed { age: 101, state, .. }] if state == "sending"));
}

#[test]
fn equal_texts_of_two_tenants_are_two_numbers() {
    let mut all = observed(vec![row(1, "a")], vec![attempt(1, "a", 0, 10, 1)]);
    let sent = |tenant: &str, document_hash: &str| Sent {
        tenant: tenant.into(),
        series: "series".into(),
        number: "1".into(),
        document_hash: document_hash.into(),
        at: 0,
    };
    all.sent = vec![sent("tenant", "x"), sent("tenant", "x")];
    assert_eq!(findings(&all), []);
    all.sent.push(sent("other", "y"));
    assert!(matches!(&findings(&all)[..], [Finding::SentUnknown { tenant, .. }] if tenant == "other"));
    all.sent.push(sent("tenant", "y"));
    assert!(findings(&all).iter().any(|finding| matches!(finding, Finding::TwoDocuments { .. })));
}

#[test]
fn what_was_in_flight() {
    let open =
        |id, invoked| Attempt { client: 7, completed: None, ..without_answer(Outcome::Info, attempt(id, "a", invoked, 0, 1)) };
    let met = |from| {
        let mut all =
            observed(Vec::new(), vec![open(1, 10), open(2, 30), without_answer(Outcome::Fail, attempt(3, "b", 100, 110, 1))]);
        all.faults = vec![Fault { name: "fault".into(), from, until: from }];
        check(&all).coverage[0].1
    };
    assert_eq!([9, 10, 29].map(met), [0, 1, 1], "until its client asks again");
    assert_eq!([30, 31].map(met), [2, 0], "and the last of a client at its own moment only");
    assert_eq!([99, 100, 110, 111].map(met), [0, 1, 1, 0]);
}

#[test]
fn a_report_reads_as_a_text() {
    let mut all = observed(vec![row(1, "ghost")], Vec::new());
    all.faults = vec![Fault { name: "kill".into(), from: 0, until: 1 }];
    assert_eq!(
        check(&all).to_string(),
        "wrong; findings: 1\n  tenant series/0 all: value 1 was taken by key ghost, which nobody sent\n  \
         of the attempts without a known outcome 0 happened and 0 did not\n  kill met 0 attempts in flight\n"
    );
}
