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

/// The audit's time grows with the numbers, not with their square: four times the numbers, each taken by a claim of
/// its own, must not take sixteen times as long.
#[test]
fn an_audit_grows_as_the_numbers_do() {
    prove_with(Setup::default(), async |app| {
        app.first.create_series("invoices", "A{seq:9}", json!({"reset": "never"})).await.expect(201);
        let _ = app.first.issue("invoices", "k", json!({"document_date": "2026-01-01"})).await.expect(201);
        let mut db = app.superuser(&app.shard_of("invoices").await).await;
        let mut fastest = Vec::new();
        for (from, to) in [(2, 5_000), (5_001, 20_000)] {
            let fill = format!(
                "insert into number (tenant_id, series, part, period, value, prev, number, state, document_date, config_version,
                                     at, principal, operation_id)
                   select tenant_id, series, 0, 'all', v, v - 1, 'A' || to_char(v, 'FM000000000'), 'issued', '2026-01-01', version,
                          now(), 'test', 'op' from series, generate_series({from}, {to}) v;
                 insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, at)
                   select tenant_id, series, 'k' || v, decode(repeat('ab', 32), 'hex'), 'issue', 0, 'all', v, 1, now()
                     from series, generate_series({from}, {to}) v;
                 update counter set last = {to}"
            );
            sqlx::raw_sql(sqlx::AssertSqlSafe(fill)).execute(&mut db).await.unwrap();
            let mut times = Vec::new();
            for _ in 0..5 {
                let begun = Instant::now();
                let audit = app.first.get("/v1/series/invoices/audit").await.expect(200);
                times.push(begun.elapsed());
                assert_eq!((&audit.body["last"], &audit.body["complete"]), (&json!(to), &json!(true)));
            }
            fastest.push(*times.iter().min().unwrap());
        }
        let ratio = fastest[1].as_secs_f64() / fastest[0].as_secs_f64();
        eprintln!("four times the numbers took {ratio:.2} times as long: {fastest:?}");
        assert!(ratio < 9.0, "{ratio:.2} times as long: {fastest:?}");
    });
}

/// What is looked up is found by its index, though its plan was made when the tables were known to be tiny: a hundred
/// times the numbers, and a request that names known documents takes about as long.
#[test]
fn known_documents_are_found_at_once_however_the_tables_grow() {
    prove_with(Setup { connections: Some(1), ..Setup::default() }, async |app| {
        app.first.create_series("invoices", "A{seq:9}", json!({"reset": "never"})).await.expect(201);
        let shard = app.shard_of("invoices").await;
        let mut owner = app.superuser(&shard).await;
        let quiet = "alter table number set (autovacuum_enabled = false); alter table claim set (autovacuum_enabled = false)";
        sqlx::raw_sql(quiet).execute(&mut owner).await.unwrap();
        // As when autovacuum comes by before the first number: from now on the planner knows that the tables are small.
        for table in ["number", "claim"] {
            sqlx::raw_sql(sqlx::AssertSqlSafe(format!("vacuum analyze {table}"))).execute(&mut owner).await.unwrap();
        }
        // Long, and scattered as they come, so that their index is no smaller than the one that must not be taken.
        let reference = |n: usize| format!("order-{:020}", n * 7_919 % 1_000_003);
        let items = |from: usize| -> Vec<_> {
            (from..from + 100).map(|n| json!({"document_ref": reference(n), "document_date": "2026-01-01"})).collect()
        };
        // Plans are made while there is hardly anything, and kept while the tables grow.
        for n in 0..12 {
            let body = json!({"document_ref": reference(1), "document_date": "2026-01-01"});
            let reply = app.first.issue("invoices", &format!("early-{n}"), body).await;
            assert!(matches!(reply.status, 200 | 201), "{}", reply.text);
        }
        for block in 0..10 {
            let body = json!({"items": items(block * 100 + 1)});
            let _ = app.first.issue("invoices", &format!("block-{block}"), body).await.expect(201);
        }
        let mut fastest = Vec::new();
        for size in [1_000, 100_000] {
            if size > 1_000 {
                let fill = format!(
                    "insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref,
                                         document_date, config_version, at, principal, operation_id)
                       select tenant_id, series, 0, 'all', v, v - 1, 'A' || to_char(v, 'FM000000000'), 'issued',
                              'order-' || lpad((v * 7919 % 1000003)::text, 20, '0'), '2026-01-01', version, now(), 'test', 'op' from series, generate_series(1001, {size}::bigint) v;
                     insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, at)
                       select tenant_id, series, 'k' || v, decode(repeat('ab', 32), 'hex'), 'issue', 0, 'all', v, 1, now()
                         from series, generate_series(1001, {size}::bigint) v;
                     update counter set last = {size}"
                );
                sqlx::raw_sql(sqlx::AssertSqlSafe(fill)).execute(&mut owner).await.unwrap();
            }
            let mut times = Vec::new();
            for n in 0..8 {
                let begun = Instant::now();
                let body = json!({"items": items(n * 100 + 1)});
                let _ = app.first.issue("invoices", &format!("again-{size}-{n}"), body).await.expect(200);
                times.push(begun.elapsed());
            }
            fastest.push(*times.iter().min().unwrap());
        }
        let ratio = fastest[1].as_secs_f64() / fastest[0].as_secs_f64();
        eprintln!("with a hundred times the numbers it took {ratio:.2} times as long: {fastest:?}");
        assert!(ratio < 4.0, "{ratio:.2} times as long: {fastest:?}");
    });
}
