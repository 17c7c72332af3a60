//! Periods: closing one is final.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Setup, prove, prove_with};

use crate::together::all;

#[test]
fn c49_a_closed_period_takes_no_number() {
    prove(async |app| {
        app.first.create_series("a", "{yyyy}-{seq:4}", json!({})).await.expect(201);
        app.first.issue("a", "k1", json!({"document_date": "2025-12-31", "document_ref": "old"})).await.expect(201);
        let reserve = json!({"document_date": "2025-12-31", "document_ref": "open"});
        let _ = app.first.post("/v1/series/a/reservations", "k2", reserve).await.expect(201);
        let close =
            async |period: &str| app.first.post(&format!("/v1/series/a/periods/{period}/close"), "unused", json!({})).await;
        let open = close("2025").await.problem(409, "period-has-open");
        assert!(open.body["detail"].as_str().unwrap().contains("2025-0002"), "it names one: {}", open.text);
        let _ = app.first.post("/v1/series/a/numbers/2025-0002/confirm", "unused", json!({})).await.expect(200);
        let closed = close("2025").await.expect(200);
        assert_eq!(
            (&closed.body["state"], &closed.body["last"], &closed.body["next"]),
            (&json!("closed"), &json!(2), &Value::Null)
        );
        assert_eq!(close("2025").await.expect(200).body, closed.body, "done twice, it is done once");
        app.first.issue("a", "k3", json!({"document_date": "2025-01-01"})).await.problem(409, "period-closed");
        let reserve = json!({"document_date": "2025-01-01", "document_ref": "late"});
        let _ = app.first.post("/v1/series/a/reservations", "k4", reserve).await.problem(409, "period-closed");
        // What was numbered is still known, and can still be voided.
        let known = app.first.issue("a", "k5", json!({"document_ref": "old"})).await.expect(200);
        assert_eq!(known.body["number"], "2025-0001");
        let _ = app.first.post("/v1/series/a/numbers/2025-0001/void", "unused", json!({"reason": "wrong"})).await.expect(200);
        // One that never had a number.
        let empty = close("2024").await.expect(200);
        assert_eq!((&empty.body["state"], &empty.body["last"]), (&json!("closed"), &Value::Null));
        app.first.issue("a", "k6", json!({"document_date": "2024-05-05"})).await.problem(409, "period-closed");
        for bad in ["all", "2024-01", "0000", "x%2Fy"] {
            let _ = close(bad).await.problem(404, "not-found");
        }
        app.first.issue("a", "k7", json!({"document_date": "2026-05-05"})).await.expect(201);
        let periods = app.first.get("/v1/series/a/periods").await.expect(200);
        let shown: Vec<_> =
            periods.body["items"].as_array().unwrap().iter().map(|p| (p["period"].clone(), p["state"].clone())).collect();
        assert_eq!(shown, [(json!("2024"), json!("closed")), (json!("2025"), json!("closed")), (json!("2026"), json!("open"))]);
        let page = app.first.get("/v1/series/a/periods?limit=2").await.expect(200);
        let cursor = page.body["next_cursor"].as_str().unwrap();
        let rest = app.first.get(&format!("/v1/series/a/periods?cursor={cursor}")).await.expect(200);
        assert_eq!(rest.body["items"][0], periods.body["items"][2]);
        let _ = app.first.get(&format!("/v1/series?cursor={cursor}")).await.problem(400, "cursor-invalid");
        let _ = app.first.get("/v1/series/none/periods").await.problem(404, "not-found");
    });
}

/// A period is closed while others take numbers in it, from two gateways; also one that nobody had begun.
#[test]
fn a_closing_among_issues_is_final() {
    prove(async |app| {
        let other = app.gateway_process().await;
        for round in 0..6 {
            let (name, begun) = (format!("s{round}"), round % 2 == 0);
            app.first.create_series(&name, &format!("{name}-{{yyyy}}{{seq:4}}"), json!({"issuer": name})).await.expect(201);
            if begun {
                app.first.issue(&name, "begin", json!({"document_date": "2026-01-01"})).await.expect(201);
            }
            let replies = all((0..24).map(|n| {
                let api = if n % 2 == 0 { app.first.clone() } else { app.first.at(&other.base) };
                let name = name.clone();
                async move {
                    if n == 12 {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        let closed =
                            api.post(&format!("/v1/series/{name}/periods/2026/close"), "unused", json!({})).await.expect(200);
                        return closed.body["last"].as_i64();
                    }
                    for k in 0..10 {
                        let reply = api.issue(&name, &format!("{n}-{k}"), json!({"document_date": "2026-06-01"})).await;
                        if reply.status != 201 {
                            let _ = reply.problem(409, "period-closed");
                        }
                    }
                    None
                }
            }))
            .await;
            let said = replies.into_iter().flatten().next();
            let audit = app.first.get(&format!("/v1/series/{name}/audit?period=2026")).await.expect(200);
            assert_eq!(audit.body["last"].as_i64(), said, "nothing entered after the answer");
            assert_eq!((&audit.body["complete"], &audit.body["next"]), (&json!(true), &Value::Null));
        }
        other.stop().await;
    });
}

/// The close commits while an issue waits for the counter's row.
#[test]
fn c49_whoever_waits_for_the_row_finds_it_closed() {
    prove_with(Setup::default(), async |app| {
        app.first.create_series("a", "{yyyy}-{seq:4}", json!({})).await.expect(201);
        app.first.issue("a", "k1", json!({"document_date": "2026-01-01"})).await.expect(201);
        let mut db = app.superuser(&app.shard_of("a").await).await;
        let hold = "begin; update counter set gate = 'closed', closed_at = now(), closed_by = 'x' where period = '2026'";
        sqlx::raw_sql(hold).execute(&mut db).await.unwrap();
        let api = app.first.clone();
        let issue = async { api.issue("a", "k2", json!({"document_date": "2026-01-01"})).await };
        let commit = async {
            tokio::time::sleep(Duration::from_millis(150)).await;
            sqlx::raw_sql("commit").execute(&mut db).await.unwrap();
        };
        let (reply, ()) = tokio::join!(issue, commit);
        let _ = reply.problem(409, "period-closed");
    });
}
