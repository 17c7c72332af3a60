//! One fault of each kind, put into a clean run at a random place: always found, and not as something else.

use checker::{Answered, Attempt, Counter, Fault, Finding, Observed, Outcome, Row, Verdict, check};

use crate::{
    seed::Seed,
    world::{USUAL, clean},
};

/// Puts a fault into a hundred clean runs. `beside` are the findings that it can't but cause as well.
fn always_found(inject: fn(&mut Seed, &mut Observed), is: fn(&Finding) -> bool, beside: fn(&Finding) -> bool) {
    for number in 0..100 {
        let mut seed = Seed::new(1_000_000 + number);
        let mut observed = clean(&mut seed, USUAL);
        inject(&mut seed, &mut observed);
        let report = check(&observed);
        assert_eq!(report.verdict, Verdict::Wrong, "seed {number}: {report}");
        assert!(report.findings.iter().any(is), "seed {number}: {report}");
        for finding in &report.findings {
            assert!(is(finding) || beside(finding), "seed {number} found something else: {finding}");
            let sentence = finding.to_string();
            assert!(!sentence.is_empty() && !sentence.contains('\n'), "{sentence}");
        }
    }
}

fn nothing(_: &Finding) -> bool {
    false
}

/// A random one of those for which it is so.
fn any<T>(seed: &mut Seed, list: &[T], is: impl Fn(&T) -> bool) -> usize {
    let places: Vec<usize> = (0..list.len()).filter(|place| is(&list[*place])).collect();
    assert!(!places.is_empty(), "this world has nothing of the kind");
    *seed.pick(&places)
}

fn same_series(one: &Row, other: &Row) -> bool {
    (&one.tenant, &one.series, &one.period) == (&other.tenant, &other.series, &other.period)
}

fn counts(counter: &Counter, row: &Row) -> bool {
    (&counter.tenant, &counter.series, &counter.period) == (&row.tenant, &row.series, &row.period)
}

fn has_key(attempt: &Attempt, row: &Row) -> bool {
    (&attempt.tenant, &attempt.series, Some(&attempt.key)) == (&row.tenant, &row.series, row.key.as_ref())
}

/// Whether this attempt was told this number.
fn names(attempt: &Attempt, row: &Row) -> bool {
    (&attempt.tenant, &attempt.series) == (&row.tenant, &row.series)
        && attempt.numbers.iter().any(|number| (number.value, &number.period) == (row.value, &row.period))
}

fn told(observed: &Observed, row: &Row) -> bool {
    observed.history.iter().any(|attempt| names(attempt, row))
}

fn at(observed: &Observed, like: &Row, value: i64) -> Option<Row> {
    observed.ledger.rows.iter().find(|row| same_series(row, like) && row.value == value).cloned()
}

fn counter<'a>(observed: &'a mut Observed, row: &Row) -> &'a mut Counter {
    observed.ledger.counters.iter_mut().find(|counter| counts(counter, row)).expect("a counter")
}

fn answered(row: &Row) -> Answered {
    let number = row.number.clone().expect("a text");
    Answered { value: row.value, number, period: row.period.clone(), part: row.part }
}

/// A row more at the end of a random series, with its counter.
fn next_row(seed: &mut Seed, observed: &mut Observed, key: Option<String>) -> Row {
    let above = |counter: &Counter| observed.ledger.rows.iter().any(|row| counts(counter, row) && row.value > counter.last);
    let place = any(seed, &observed.ledger.counters, |counter| !above(counter));
    let counter = &mut observed.ledger.counters[place];
    counter.last += 1;
    let row = Row {
        shard: counter.shard.clone(),
        tenant: counter.tenant.clone(),
        series: counter.series.clone(),
        part: counter.part,
        period: counter.period.clone(),
        value: counter.last,
        number: Some(format!("{}-{}-{}", counter.series, counter.period, counter.last)),
        state: "issued".into(),
        key,
        at: observed.healed_at,
    };
    observed.ledger.rows.push(row.clone());
    row
}

/// An attempt more, after everything else: of the same key if none is given.
fn later(observed: &mut Observed, like: &Attempt, key: Option<&str>) -> usize {
    let end = observed.history.iter().map(|attempt| attempt.completed.unwrap_or(attempt.invoked)).max().expect("attempts");
    let mut attempt = Attempt {
        id: u64::try_from(observed.history.len()).expect("small") + 1,
        invoked: end + 10,
        completed: Some(end + 20),
        ..like.clone()
    };
    if let Some(key) = key {
        attempt.key = key.into();
        attempt.document_ref = None;
    }
    observed.history.push(attempt);
    observed.history.len() - 1
}

fn acknowledged(seed: &mut Seed, observed: &Observed) -> Attempt {
    let place = any(seed, &observed.history, |attempt| attempt.outcome == Outcome::Ok);
    observed.history[place].clone()
}

#[test]
fn a_repeated_value() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let row = seed.pick(&observed.ledger.rows).clone();
        observed.ledger.rows.push(row);
    };
    always_found(inject, |finding| matches!(finding, Finding::Repeated { .. }), nothing);
}

#[test]
fn a_value_in_two_shards() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let row = seed.pick(&observed.ledger.rows).clone();
        observed.ledger.rows.push(Row { shard: "another".into(), ..row });
    };
    always_found(inject, |finding| matches!(finding, Finding::TwoShards { .. }), nothing);
}

#[test]
fn a_gap() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let runs = &observed.ledger.runs;
        let begins = |row: &Row| {
            let place = (&row.tenant, &row.series, &row.period, row.value);
            runs.iter().any(|run| (&run.tenant, &run.series, &run.period, run.first) == place)
        };
        let place = any(seed, &observed.ledger.rows, |row| {
            at(observed, row, row.value + 1).is_some_and(|next| next.state != "released" && !begins(&next))
        });
        observed.ledger.rows.remove(place);
    };
    let beside = |finding: &Finding| matches!(finding, Finding::Lost { .. } | Finding::SentUnknown { .. });
    always_found(inject, |finding| matches!(finding, Finding::Gap { .. }), beside);
}

#[test]
fn a_jump_whose_run_nobody_wrote_down() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let rows = &observed.ledger.rows;
        let place = any(seed, &observed.ledger.runs, |run| {
            let place = (&run.tenant, &run.series, &run.period, run.first);
            // A run that only continues the one before it is not missed.
            let has = |value| {
                rows.iter().any(|row| (&row.tenant, &row.series, &row.period, row.value) == (place.0, place.1, place.2, value))
            };
            has(run.first) && !has(run.first - 1)
        });
        observed.ledger.runs.remove(place);
    };
    // Where all its numbers were given back, the counter stands before the run that is gone.
    let beside = |finding: &Finding| matches!(finding, Finding::CounterOff { last: None, .. });
    always_found(inject, |finding| matches!(finding, Finding::Gap { .. }), beside);
}

#[test]
fn a_released_value_that_was_passed_over() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let place = any(seed, &observed.ledger.rows, |row| {
            at(observed, row, row.value + 1).is_some_and(|next| next.state != "released") && row.number.is_some()
        });
        observed.ledger.rows[place].state = "released".into();
    };
    always_found(inject, |finding| matches!(finding, Finding::Skipped { .. }), nothing);
}

#[test]
fn a_counter_behind() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let place = seed.place(observed.ledger.counters.len());
        observed.ledger.counters[place].last -= seed.within(1, 5);
    };
    always_found(inject, |finding| matches!(finding, Finding::CounterOff { .. }), nothing);
}

#[test]
fn a_counter_ahead() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let place = seed.place(observed.ledger.counters.len());
        observed.ledger.counters[place].last += seed.within(1, 5);
    };
    let beside = |finding: &Finding| matches!(finding, Finding::Skipped { .. });
    always_found(inject, |finding| matches!(finding, Finding::CounterOff { .. }), beside);
}

#[test]
fn a_counter_that_is_gone() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let row = seed.pick(&observed.ledger.rows).clone();
        observed.ledger.counters.retain(|counter| !counts(counter, &row));
    };
    always_found(inject, |finding| matches!(finding, Finding::CounterMissing { .. }), nothing);
}

#[test]
fn a_second_counter_that_stayed_behind() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let row = seed.pick(&observed.ledger.rows).clone();
        let counter = counter(observed, &row).clone();
        observed.ledger.counters.push(Counter { shard: "another".into(), last: counter.last - 1, ..counter });
    };
    always_found(inject, |finding| matches!(finding, Finding::CounterOff { .. }), nothing);
}

#[test]
fn an_acknowledged_number_that_is_lost() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let ends = |row: &Row| observed.ledger.counters.iter().any(|c| counts(c, row) && c.last == row.value);
        let place = any(seed, &observed.ledger.rows, |row| {
            let last = ends(row) && at(observed, row, row.value + 1).is_none();
            last && at(observed, row, row.value - 1).is_some() && told(observed, row)
        });
        // The counter went back with it: by themselves the databases look right.
        let row = observed.ledger.rows.remove(place);
        counter(observed, &row).last -= 1;
        observed.sent.retain(|sent| (&sent.tenant, Some(&sent.number)) != (&row.tenant, row.number.as_ref()));
    };
    always_found(inject, |finding| matches!(finding, Finding::Lost { .. }), nothing);
}

#[test]
fn a_text_that_was_told_otherwise() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let place = any(seed, &observed.ledger.rows, |row| told(observed, row));
        let row = &mut observed.ledger.rows[place];
        row.number = Some("something else".into());
        let row = row.clone();
        observed.sent.retain(|sent| (&sent.tenant, &sent.series) != (&row.tenant, &row.series));
    };
    always_found(inject, |finding| matches!(finding, Finding::Altered { .. }), nothing);
}

#[test]
fn a_number_for_two_keys() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let first = acknowledged(seed, observed);
        later(observed, &first, Some("the second key"));
    };
    always_found(inject, |finding| matches!(finding, Finding::Shared { .. }), nothing);
}

#[test]
fn a_number_that_another_key_took() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        // Nobody was told so far; now somebody is who did not take it.
        let place = any(seed, &observed.ledger.rows, |row| row.key.is_some() && !told(observed, row));
        let row = observed.ledger.rows[place].clone();
        let taker = observed.history.iter().find(|attempt| has_key(attempt, &row)).expect("its key").clone();
        let place = later(observed, &taker, Some("the second key"));
        observed.history[place].outcome = Outcome::Ok;
        observed.history[place].numbers = vec![answered(&row)];
    };
    always_found(inject, |finding| matches!(finding, Finding::Shared { .. }), nothing);
}

#[test]
fn a_failover_that_forgot_and_gave_the_same_numbers_again() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let place = any(seed, &observed.ledger.rows, |row| row.key.is_some() && told(observed, row));
        let from = observed.ledger.rows[place].clone();
        let forgotten: Vec<usize> = (0..observed.ledger.rows.len())
            .filter(|place| {
                let row = &observed.ledger.rows[*place];
                same_series(row, &from) && row.value >= from.value && row.key.is_some()
            })
            .collect();
        for place in forgotten {
            let key = format!("after the failover {place}");
            observed.ledger.rows[place].key = Some(key.clone());
            let row = observed.ledger.rows[place].clone();
            let like = observed.history.iter().find(|attempt| attempt.tenant == row.tenant && attempt.series == row.series);
            let like = like.expect("somebody asked there").clone();
            let place = later(observed, &like, Some(&key));
            observed.history[place].outcome = Outcome::Ok;
            observed.history[place].numbers = vec![answered(&row)];
        }
    };
    let beside = |finding: &Finding| matches!(finding, Finding::Inversion { .. });
    always_found(inject, |finding| matches!(finding, Finding::Shared { .. }), beside);
}

#[test]
fn one_answer_with_a_number_twice() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let place = any(seed, &observed.history, |attempt| attempt.outcome == Outcome::Ok);
        let key = observed.history[place].key.clone();
        for attempt in observed.history.iter_mut().filter(|attempt| attempt.key == key && attempt.outcome == Outcome::Ok) {
            let again = attempt.numbers[0].clone();
            attempt.numbers.push(again);
        }
    };
    always_found(inject, |finding| matches!(finding, Finding::ToldTwice { .. }), nothing);
}

#[test]
fn a_refused_key_that_has_a_number() {
    let refuse_all = |seed: &mut Seed, observed: &mut Observed| {
        let place = any(seed, &observed.ledger.rows, |row| {
            observed.history.iter().any(|attempt| has_key(attempt, row) && attempt.document_ref.is_none())
        });
        let row = observed.ledger.rows[place].clone();
        for attempt in observed.history.iter_mut().filter(|attempt| has_key(attempt, &row)) {
            attempt.outcome = Outcome::Fail;
            attempt.numbers.clear();
        }
    };
    let take_for_refused = |seed: &mut Seed, observed: &mut Observed| {
        let row = next_row(seed, observed, None);
        let like = observed.history.iter().find(|a| a.tenant == row.tenant && a.series == row.series).expect("one").clone();
        let place = later(observed, &like, Some("always refused"));
        observed.history[place].outcome = Outcome::Fail;
        observed.history[place].numbers.clear();
        let last = observed.ledger.rows.len() - 1;
        observed.ledger.rows[last].key = Some("always refused".into());
    };
    let is = |finding: &Finding| matches!(finding, Finding::FailTook { .. });
    always_found(refuse_all, is, nothing);
    always_found(take_for_refused, is, nothing);
}

#[test]
fn a_key_that_nobody_sent() {
    let add = |seed: &mut Seed, observed: &mut Observed| {
        next_row(seed, observed, Some("a ghost".into()));
    };
    let replace = |seed: &mut Seed, observed: &mut Observed| {
        let place = any(seed, &observed.ledger.rows, |row| row.key.is_some());
        observed.ledger.rows[place].key = Some("a ghost".into());
    };
    let is = |finding: &Finding| matches!(finding, Finding::Ghost { .. });
    always_found(add, is, nothing);
    always_found(replace, is, |finding| matches!(finding, Finding::Shared { .. }));
}

#[test]
fn a_number_that_is_nobodys() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        next_row(seed, observed, None);
    };
    always_found(inject, |finding| matches!(finding, Finding::Unclaimed { .. }), nothing);
}

#[test]
fn a_number_more_than_the_answer_names() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let row = next_row(seed, observed, None);
        let place = any(seed, &observed.history, |attempt| {
            attempt.outcome == Outcome::Ok && attempt.tenant == row.tenant && attempt.series == row.series
        });
        let last = observed.ledger.rows.len() - 1;
        observed.ledger.rows[last].key = Some(observed.history[place].key.clone());
    };
    always_found(inject, |finding| matches!(finding, Finding::Surplus { .. }), nothing);
}

#[test]
fn a_later_request_with_a_lower_number() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        // When a client first had a higher value that the lower one's key was not told itself.
        let higher_known = |lower: &Row| {
            let taker = |attempt: &&Attempt| !has_key(attempt, lower);
            let higher = |attempt: &&Attempt| {
                attempt.tenant == lower.tenant
                    && attempt.series == lower.series
                    && attempt.numbers.iter().any(|number| number.period == lower.period && number.value > lower.value)
            };
            observed.history.iter().filter(taker).filter(higher).filter_map(|attempt| attempt.completed).min()
        };
        let place = any(seed, &observed.ledger.rows, |row| row.key.is_some() && higher_known(row).is_some());
        let lower = observed.ledger.rows[place].clone();
        let known = higher_known(&lower).expect("a higher one");
        let asked = observed.history.iter().filter(|attempt| has_key(attempt, &lower) && attempt.outcome != Outcome::Fail);
        let delay = known + 1 - asked.map(|attempt| attempt.invoked).min().expect("its key") + seed.within(0, 50);
        for attempt in observed.history.iter_mut().filter(|attempt| has_key(attempt, &lower)) {
            attempt.invoked += delay;
            attempt.completed = attempt.completed.map(|completed| completed + delay);
        }
    };
    always_found(inject, |finding| matches!(finding, Finding::Inversion { .. }), nothing);
}

#[test]
fn a_key_with_two_numbers() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let row = next_row(seed, observed, None);
        let place = any(seed, &observed.history, |attempt| {
            attempt.outcome == Outcome::Ok && attempt.tenant == row.tenant && attempt.series == row.series
        });
        let first = observed.history[place].clone();
        let last = observed.ledger.rows.len() - 1;
        observed.ledger.rows[last].key = Some(first.key.clone());
        let place = later(observed, &first, None);
        observed.history[place].numbers = vec![answered(&row)];
    };
    always_found(inject, |finding| matches!(finding, Finding::KeyNumbers { .. }), nothing);
}

#[test]
fn a_key_with_two_bodies() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let first = acknowledged(seed, observed);
        let place = later(observed, &first, None);
        observed.history[place].body_hash = Some("another body".into());
    };
    always_found(inject, |finding| matches!(finding, Finding::KeyBodies { .. }), nothing);
}

#[test]
fn a_number_with_two_documents() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let mut again = seed.pick(&observed.sent).clone();
        again.document_hash = "another document".into();
        observed.sent.push(again);
    };
    always_found(inject, |finding| matches!(finding, Finding::TwoDocuments { .. }), nothing);
}

#[test]
fn a_document_whose_number_does_not_exist() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let mut sent = seed.pick(&observed.sent).clone();
        sent.number = "never given".into();
        observed.sent.push(sent);
    };
    always_found(inject, |finding| matches!(finding, Finding::SentUnknown { .. }), nothing);
}

#[test]
fn a_number_that_waits_too_long() {
    let inject = |seed: &mut Seed, observed: &mut Observed| {
        let place = any(seed, &observed.ledger.rows, |row| ["reserved", "sending"].contains(&row.state.as_str()));
        observed.ledger.rows[place].at = observed.healed_at - observed.sealed_limit - seed.within(1, 50);
    };
    always_found(inject, |finding| matches!(finding, Finding::Sealed { .. }), nothing);
}

#[test]
fn a_fault_that_met_nothing() {
    for number in 0..100 {
        let mut seed = Seed::new(1_000_000 + number);
        let mut observed = clean(&mut seed, USUAL);
        let end = observed.history.iter().map(|attempt| attempt.completed.unwrap_or(attempt.invoked)).max().expect("attempts");
        let from = if seed.chance(50) { seed.within(end + 1, end + 1000) } else { seed.within(-1000, 0) };
        let place = seed.place(observed.faults.len() + 1);
        observed.faults.insert(place, Fault { name: "too late".into(), from, until: from + 10 });
        let report = check(&observed);
        assert_eq!(report.verdict, Verdict::Unknown, "seed {number}: {report}");
        assert!(report.findings.is_empty());
        assert_eq!(report.coverage[place], ("too late".into(), 0));
        assert!(report.coverage.iter().enumerate().all(|(other, (_, met))| other == place || *met > 0));
    }
}
