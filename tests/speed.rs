//! What must not get slower. Only ratios within one run are judged.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Setup, prove_with};

/// 20,000 numbers into a fresh shard over one connection: the last are as fast as the first. With full unique
/// indexes beside the predecessor's key, the cached foreign-key check walks the wrong index and this collapses.
#[test]
fn twenty_thousand_numbers_into_a_fresh_shard_do_not_slow_down() {
    prove_with(Setup { connections: Some(1), ..Setup::default() }, async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:9}", json!({})).await.expect(201);
        let mut times = Vec::new();
        for block in 0..10 {
            let begun = Instant::now();
            for n in 0..200 {
                let items: Vec<_> = (0..10)
                    .map(|i| json!({"document_ref": format!("r{block}-{n}-{i}"), "document_date": "2026-01-01"}))
                    .collect();
                let _ = app.first.issue("invoices", &format!("k{block}-{n}"), json!({"items": items})).await.expect(201);
            }
            times.push(begun.elapsed());
        }
        let fastest = |times: &[Duration]| *times.iter().min().unwrap();
        let (early, late) = (fastest(&times[..3]), fastest(&times[7..]));
        let ratio = late.as_secs_f64() / early.as_secs_f64();
        eprintln!("the last 6,000 took {ratio:.2} times as long as the first: {times:?}");
        assert!(ratio < 2.5, "{ratio:.2} times as long at the end: {times:?}");
    });
}
