//! Clean runs raise nothing.

use checker::{Outcome, Resolved, Verdict, check};

use crate::{
    seed::Seed,
    world::{Size, USUAL, clean},
};

#[test]
fn hundreds_of_clean_runs_raise_nothing() {
    let mut resolved = Resolved::default();
    for seed in 0..500 {
        let observed = clean(&mut Seed::new(seed), USUAL);
        let report = check(&observed);
        assert_eq!(report.verdict, Verdict::Right, "seed {seed}: {report}");
        let unknown = observed.history.iter().filter(|attempt| attempt.outcome == Outcome::Info).count();
        assert_eq!(report.resolved_info.happened + report.resolved_info.did_not, unknown);
        resolved.happened += report.resolved_info.happened;
        resolved.did_not += report.resolved_info.did_not;
    }
    assert!(resolved.happened > 10_000 && resolved.did_not > 10_000, "the worlds are too tame: {resolved:?}");
}

#[test]
fn crowded_clean_runs_raise_nothing() {
    for seed in 0..100 {
        let crowd = Size { tenants: 1, series: 1, clients: 40, wishes: 200 };
        let report = check(&clean(&mut Seed::new(seed), crowd));
        assert_eq!(report.verdict, Verdict::Right, "seed {seed}: {report}");
    }
}

#[test]
fn a_large_run_is_checked() {
    let size = Size { tenants: 4, series: 50, clients: 64, wishes: 85_000 };
    let observed = clean(&mut Seed::new(1), size);
    assert!(observed.history.len() >= 200_000, "only {} attempts", observed.history.len());
    assert!(observed.ledger.counters.len() >= 200);
    let report = check(&observed);
    assert_eq!(report.verdict, Verdict::Right, "{:?}", report.findings.first());
}
