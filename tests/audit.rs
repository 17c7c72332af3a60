//! The audit sees what must not be.

use serde_json::json;
use sqlx::Executor;
use testkit::prove;

/// Breaks the ledger on purpose, as a superuser with the guards off, and asks both the audit and the proof.
/// Each is undone again, so that the proof at the end of the test holds.
#[test]
fn planted_faults_are_found_by_audit_and_proof() {
    prove(async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:4}", json!({})).await.expect(201);
        app.first.issue("invoices", "k", json!({"count": 5, "document_date": "2026-01-01"})).await.expect(201);
        app.first.issue("invoices", "l", json!({"document_date": "2026-01-01"})).await.expect(201);
        let mut db = app.superuser(&app.shard_of("invoices").await).await;
        for (what, plant, undo, audited, proved) in [
            (
                "gap",
                "set session_replication_role = replica; create table kept as select * from number where value = 3;
                 delete from number where value = 3",
                "insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                   metadata, config_version, at, principal, operation_id, trace_id)
                 select tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                   metadata, config_version, at, principal, operation_id, trace_id from kept; drop table kept",
                json!([{"period": "2026", "from": 3, "to": 3}]).to_string(),
                "a value does not follow",
            ),
            (
                "duplicate",
                "drop index number_text; update number set number = 'A20260001' where value = 2",
                "update number set number = 'A20260002' where value = 2;
                 create unique index number_text on number (tenant_id, series, number) where number is not null",
                json!(["A20260001"]).to_string(),
                "stands on two documents",
            ),
            (
                "counter behind",
                "update counter set last = 4",
                "update counter set last = 6",
                "the counter stands at 4, the last number is 6".to_owned(),
                "counter is not where",
            ),
            (
                "claim too long",
                "update claim set count = 7 where key = 'k'",
                "update claim set count = 5 where key = 'k'",
                "a claim took 7 values from 1, of which 6 are there".to_owned(),
                "a claim took values that are not there",
            ),
            (
                "claims share a value",
                "update claim set count = 6 where key = 'k'",
                "update claim set count = 5 where key = 'k'",
                "two claims took value 6".to_owned(),
                "two claims took one value",
            ),
        ] {
            db.execute(sqlx::raw_sql(plant)).await.unwrap();
            let audit = app.first.get("/v1/series/invoices/audit").await.expect(200);
            assert_eq!(audit.body["complete"], false, "{what}");
            assert!(audit.body.to_string().contains(&audited), "{what}: {}", audit.text);
            let found = app.findings().await.join("\n");
            assert!(found.contains(proved), "{what}: {found}");
            db.execute(sqlx::raw_sql(undo)).await.unwrap();
            assert_eq!(app.first.get("/v1/series/invoices/audit").await.expect(200).body["complete"], true, "{what} undone");
        }
    });
}

#[test]
fn an_audit_over_all_periods_and_of_one() {
    prove(async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:4}", json!({})).await.expect(201);
        let empty = app.first.get("/v1/series/invoices/audit").await.expect(200);
        assert_eq!((&empty.body["periods"], &empty.body["complete"]), (&json!([]), &json!(true)));
        app.first.issue("invoices", "a", json!({"count": 3, "document_date": "2025-01-01"})).await.expect(201);
        app.first.issue("invoices", "b", json!({"count": 2, "document_date": "2026-01-01"})).await.expect(201);
        let all = app.first.get("/v1/series/invoices/audit").await.expect(200);
        assert_eq!((&all.body["states"], &all.body["first"]), (&json!({"issued": 5}), &json!(null)));
        assert_eq!(all.body["periods"].as_array().unwrap().len(), 2);
        let one = app.first.get("/v1/series/invoices/audit?period=2025").await.expect(200);
        for (member, value) in [
            ("first", json!(1)),
            ("last", json!(3)),
            ("next", json!(4)),
            ("gaps", json!([])),
            ("duplicates", json!([])),
            ("overdue", json!([])),
            ("impossible", json!([])),
            ("period", json!("2025")),
            ("series", json!("invoices")),
        ] {
            assert_eq!(one.body[member], value, "{member}");
        }
        assert!(one.body.get("periods").is_none());
    });
}

#[test]
fn a_period_that_can_not_be_has_no_clean_bill() {
    prove(async |app| {
        for (series, reset, good, bad) in [
            ("never", "never", "all", ["ALL", "2026"]),
            ("yearly", "yearly", "2031", ["2026-13", "all"]),
            ("monthly", "monthly", "2026-12", ["2026-13", "2026"]),
        ] {
            app.first
                .create_series(series, &format!("{series}-{{yyyy}}{{mm}}-{{seq:3}}"), json!({"reset": reset, "max_length": 30}))
                .await
                .expect(201);
            let audit = app.first.get(&format!("/v1/series/{series}/audit?period={good}")).await.expect(200);
            assert_eq!(audit.body["complete"], true);
            for bad in bad {
                let refused = app.first.get(&format!("/v1/series/{series}/audit?period={bad}")).await.problem(422, "invalid");
                assert_eq!(refused.body["errors"][0]["pointer"], "/period", "{}", refused.text);
            }
        }
    });
}
