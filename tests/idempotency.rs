//! Idempotency keys.

use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::Connection;
use testkit::{Reply, Setup, prove, prove_with};

use crate::together::all;

#[test]
fn c57_a_repeated_key_gets_the_same_answer() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        for (key, body) in [
            ("one", json!({"document_ref": "a", "metadata": {"x": 1, "y": 2}})),
            ("count", json!({"count": 3})),
            ("items", json!({"items": [{"document_ref": "b"}, {}]})),
            ("known", json!({"document_ref": "a"})),
        ] {
            let first = app.first.issue("invoices", key, body.clone()).await;
            let again = app.first.issue("invoices", key, body).await;
            assert!(!first.replayed() && again.replayed(), "{key}");
            assert_eq!((first.status, &first.text), (again.status, &again.text), "{key}");
            assert_eq!(first.headers.get("location"), again.headers.get("location"), "{key}");
        }
        // The same meaning in other words is the same request, quoted or bare.
        let request = app.first.http.post(format!("{}/v1/series/invoices/numbers", app.base)).bearer_auth(&app.first.key);
        let request = request.header("Idempotency-Key", "\"one\"").header("Content-Type", "application/json");
        let words = r#" {"metadata":{"y":2.0,"x":1},"document_ref":"\u0061","document_date":null} "#;
        let again = Reply::of(request.body(words)).await.expect(201);
        assert!(again.replayed());
        assert_eq!(again.value(), 1);
    });
}

#[test]
fn c58_a_key_with_another_meaning_is_refused() {
    prove(async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:9}", json!({})).await.expect(201);
        app.first.create_series("credits", "C{yyyy}{seq:9}", json!({})).await.expect(201);
        app.first.issue("invoices", "k", json!({"document_ref": "a"})).await.expect(201);
        for body in [json!({"document_ref": "b"}), json!({}), json!({"count": 1}), json!({"document_ref": "a", "metadata": {}})] {
            app.first.issue("invoices", "k", body).await.problem(422, "idempotency-key-reused");
        }
        // The scope is the series: there it is another key.
        assert_eq!(app.first.issue("credits", "k", json!({"document_ref": "a"})).await.expect(201).value(), 1);
        assert_eq!(app.first.issue("invoices", "next", json!({})).await.value(), 2);
    });
}

#[test]
fn c59_twenty_with_one_key_get_one_number() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        let other = app.gateway_process().await;
        for round in 0..5 {
            let replies = all((0..20).map(|n| {
                let api = if n % 2 == 0 { app.first.clone() } else { app.first.at(&other.base) };
                async move { api.issue("invoices", &format!("k{round}"), json!({"count": 2})).await.expect(201) }
            }))
            .await;
            assert!(replies.iter().all(|reply| reply.text == replies[0].text));
            assert_eq!(replies.iter().filter(|reply| !reply.replayed()).count(), 1);
        }
        assert_eq!(app.first.issue("invoices", "next", json!({})).await.value(), 11);
        assert_eq!(other.stop().await, Some(0));
    });
}

#[test]
fn c60_a_503_leaves_the_key_free() {
    prove_with(Setup { patience: Some(Duration::from_secs(1)), ..Setup::default() }, async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        app.first.issue("invoices", "first", json!({"document_date": "2026-01-01"})).await.expect(201);
        let mut db = app.superuser(&app.shard_of("invoices").await).await;
        let mut held = db.begin().await.unwrap();
        sqlx::query("select from counter for update").execute(&mut *held).await.unwrap();
        let begun = Instant::now();
        let busy = app.first.issue("invoices", "k", json!({"document_date": "2026-01-01"})).await.problem(503, "busy");
        assert_eq!(busy.headers["retry-after"], "1");
        assert!(begun.elapsed() >= Duration::from_secs(1), "it waited as long as it may");
        // While the first call still tries in the background, a repetition is told so.
        app.first.issue("invoices", "k", json!({"document_date": "2026-01-01"})).await.problem(503, "busy");
        held.rollback().await.unwrap();
        let mut tries = 0;
        let won = loop {
            let reply = app.first.issue("invoices", "k", json!({"document_date": "2026-01-01"})).await;
            tries += 1;
            if reply.status == 201 || tries == 20 {
                break reply;
            }
        };
        assert_eq!(won.expect(201).value(), 2);
    });
}

#[test]
fn a_repetition_while_the_first_runs_waits_and_is_told() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        let body = json!({"document_date": "2026-01-01"});
        app.first.issue("invoices", "before", body.clone()).await.expect(201);
        let mut db = app.superuser(&app.shard_of("invoices").await).await;
        let mut held = db.begin().await.unwrap();
        sqlx::query("select from counter for update").execute(&mut *held).await.unwrap();
        let first = app.first.issue("invoices", "k", body.clone());
        let others = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let told = app.first.issue("invoices", "k", body.clone()).await.problem(409, "idempotency-in-progress");
            assert_eq!(told.headers["retry-after"], "1");
            let waiting = app.first.issue("invoices", "k", body.clone());
            let release = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                held.rollback().await.unwrap();
            };
            tokio::join!(waiting, release).0
        };
        let (first, replayed) = tokio::join!(first, others);
        assert_eq!((first.status, first.value()), (201, 2));
        assert!(replayed.replayed());
        assert_eq!(replayed.text, first.text);
    });
}

#[test]
fn c62_two_tenants_may_use_the_same_key() {
    prove(async |app| {
        let second = app.tenant("second").await;
        for api in [&app.first, &second] {
            api.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
            let issued = api.issue("invoices", "same", json!({"document_ref": "same"})).await.expect(201);
            assert_eq!((issued.value(), issued.replayed()), (1, false));
        }
    });
}

#[test]
fn c63_one_bad_item_uses_nothing_and_is_pointed_at() {
    prove(async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:6}", json!({})).await.expect(201);
        let items = |fourth: serde_json::Value| {
            let mut items: Vec<_> =
                (0..10).map(|n| json!({"document_ref": format!("r{n}"), "document_date": "2026-01-01"})).collect();
            items[3] = fourth;
            json!({"items": items})
        };
        for (bad, pointer) in [
            (json!({"document_date": "2026-13-01"}), "/items/3/document_date"),
            (json!({"document_ref": "a\u{200b}b"}), "/items/3/document_ref"),
            (json!({"document_ref": "r1"}), "/items/3/document_ref"),
            (json!({"document_ref": 7}), "/items/3/document_ref"),
            (json!({"document": "r1"}), "/items/3/document"),
            (json!({"document_date": "2027-01-01"}), "/items/3/document_date"),
        ] {
            let reply = app.first.issue("invoices", "k", items(bad)).await.problem(422, "invalid");
            assert_eq!(reply.body["errors"][0]["pointer"], pointer, "{}", reply.text);
        }
        let good = app.first.issue("invoices", "k", items(json!({"document_date": "2026-02-01"}))).await.expect(201);
        assert_eq!(good.values(), (1..=10).collect::<Vec<_>>());
    });
}

#[test]
fn keys_of_tenants_keys_and_series_are_remembered_too() {
    prove(async |app| {
        let body = json!({"name": "Ajans", "mode": "test"});
        let first = app.operator.post("/v1/tenants", "t", body.clone()).await.expect(201);
        let again = app.operator.post("/v1/tenants", "t", body).await.expect(201);
        assert_eq!((first.body["id"].clone(), again.replayed()), (again.body["id"].clone(), true));
        assert!(first.body["admin_key"].as_str().unwrap().starts_with("srt_test_"));
        assert!(again.body.get("admin_key").is_none(), "a secret is shown once");
        app.operator.post("/v1/tenants", "t", json!({"name": "Other"})).await.problem(422, "idempotency-key-reused");

        let body = json!({"name": "till", "scopes": ["numbers:issue"]});
        let first = app.first.post("/v1/keys", "k", body.clone()).await.expect(201);
        let again = app.first.post("/v1/keys", "k", body).await.expect(201);
        assert_eq!((first.body["id"].clone(), again.replayed()), (again.body["id"].clone(), true));
        assert!(first.body["secret"].is_string() && again.body.get("secret").is_none());

        let first = app.first.create_series("invoices", "A{yyyy}{seq:6}", json!({})).await.expect(201);
        let again = app.first.create_series("invoices", "A{yyyy}{seq:6}", json!({"reset": "yearly"})).await.expect(201);
        assert!(again.replayed(), "a default that is written out is the same request");
        assert_eq!((&first.text, &first.headers["etag"]), (&again.text, &again.headers["etag"]));
        app.first
            .post("/v1/series", "create-invoices", json!({"series": "x", "pattern": "X{yyyy}{seq}"}))
            .await
            .problem(422, "idempotency-key-reused");
        // One scope for keys and series of a tenant.
        app.first
            .post("/v1/keys", "create-invoices", json!({"name": "n", "scopes": ["audit:read"]}))
            .await
            .problem(422, "idempotency-key-reused");
    });
}
