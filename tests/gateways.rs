//! Several gateways on the same databases.

use serde_json::json;
use testkit::{Reply, Setup, TestClock, prove, prove_with, unknown_key};

use crate::together::{all, contiguous};

/// 64 clients, 200 issues each, on one series through two gateway processes.
#[test]
fn two_gateway_processes_issue_12800_contiguous_numbers() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        let gateways = [app.gateway_process().await, app.gateway_process().await];
        let clients = (0..64).map(|client| {
            let api = app.first.at(&gateways[client % 2].base);
            async move {
                let mut values = Vec::new();
                for n in 0..200 {
                    let body = json!({"document_ref": format!("c{client}-{n}"), "document_date": "2026-04-01"});
                    let reply: Reply = api.issue("invoices", &format!("k{client}-{n}"), body).await.expect(201);
                    values.push(reply.value());
                }
                assert!(values.is_sorted(), "a client that waits for each answer sees values rise");
                values
            }
        });
        contiguous(all(clients).await.concat(), 1);
        let audit = app.first.get("/v1/series/invoices/audit?period=2026").await.expect(200);
        assert_eq!(
            (&audit.body["last"], &audit.body["states"], &audit.body["complete"]),
            (&json!(12_800), &json!({"issued": 12_800}), &json!(true))
        );
        for gateway in gateways {
            assert_eq!(gateway.stop().await, Some(0), "SIGTERM ends it in order");
        }
    });
}

#[test]
fn a_gateway_that_is_asked_to_stop_finishes_what_it_began() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        let gateway = app.gateway_process().await;
        let api = app.first.at(&gateway.base);
        api.issue("invoices", "warm", json!({})).await.expect(201);
        let clients = all((0..8).map(|client| {
            let api = api.clone();
            async move {
                let mut acknowledged = 0;
                for n in 0.. {
                    let url = format!("{}/v1/series/invoices/numbers", api.base);
                    let request = api.http.post(url).bearer_auth(&api.key).header("Idempotency-Key", format!("k{client}-{n}"));
                    // A connection refused or closed between two requests is the end; an answer is always whole.
                    match request.json(&json!({})).send().await {
                        Ok(answer) => {
                            assert_eq!(answer.status(), 201);
                            answer.bytes().await.expect("a whole answer");
                            acknowledged += 1;
                        }
                        Err(_) => break,
                    }
                }
                acknowledged
            }
        }));
        let stop = async {
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            gateway.stop().await
        };
        let (acknowledged, code) = tokio::join!(clients, stop);
        assert_eq!(code, Some(0));
        let total: i64 = acknowledged.iter().sum();
        assert!(total > 0, "it met work in flight");
        let last = app.first.get("/v1/series/invoices/audit").await.expect(200).body["last"].as_i64().unwrap();
        assert_eq!(last, total + 1, "everything that was begun was answered");
    });
}

#[test]
fn a_shard_that_is_away_stops_only_its_own_series() {
    prove(async |app| {
        for name in ["a", "b"] {
            app.first.create_series(name, &format!("{name}{{seq:4}}"), json!({"reset": "never"})).await.expect(201);
            app.first.issue(name, "first", json!({})).await.expect(201);
        }
        let (away, mut db) = (app.shard_of("a").await, app.superuser("directory").await);
        let database = app.url("postgres", &away).rsplit('/').next().unwrap().to_owned();
        let close = format!("alter database {database} allow_connections false");
        sqlx::query(sqlx::AssertSqlSafe(close)).execute(&mut db).await.unwrap();
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1";
        sqlx::query(end).bind(&database).execute(&mut db).await.unwrap();
        let reply = app.first.issue("a", "second", json!({})).await.problem(503, "shard-unavailable");
        assert_eq!(reply.headers["retry-after"], "1");
        assert_eq!(app.first.issue("b", "second", json!({})).await.expect(201).value(), 2);
        let listed = app.first.get("/v1/series").await.expect(200);
        assert_eq!(listed.body["items"][0], json!({"series": "a", "unavailable": true}));
        assert_eq!(listed.body["items"][1]["series"], "b");
        let ready = app.first.get("/readyz").await.expect(200);
        assert_eq!(ready.body["status"], "degraded");
        let open = format!("alter database {database} allow_connections true");
        sqlx::query(sqlx::AssertSqlSafe(open)).execute(&mut db).await.unwrap();
        assert_eq!(app.first.issue("a", "second", json!({})).await.expect(201).value(), 2);
    });
}

#[test]
fn a_clock_that_disagrees_with_the_shard_issues_nothing() {
    let clock = TestClock::at("2026-06-01T12:00:00Z");
    let setup = Setup { clock: Some(clock.clone()), compare_clocks: true, ..Setup::default() };
    prove_with(setup, async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:4}", json!({})).await.expect(201);
        let refused = app.first.issue("invoices", "k", json!({})).await.problem(503, "shard-unavailable");
        assert!(refused.body["detail"].as_str().unwrap().contains("ms apart"), "{}", refused.text);
        let ready = app.first.get("/readyz").await.expect(503);
        assert_eq!(ready.body["checks"]["shard shard_1"], "clock apart");
        assert_eq!(app.first.get("/v1/series/invoices/audit").await.expect(200).body["states"], json!({}));
    });
}

#[test]
fn known_callers_are_served_while_the_directory_is_away() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:4}", json!({"reset": "never"})).await.expect(201);
        app.first.issue("invoices", "first", json!({})).await.expect(201);
        let mut db = app.superuser("shard_1").await;
        let database = app.url("postgres", "directory").rsplit('/').next().unwrap().to_owned();
        let close = format!("alter database {database} allow_connections false");
        sqlx::query(sqlx::AssertSqlSafe(close)).execute(&mut db).await.unwrap();
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1";
        sqlx::query(end).bind(&database).execute(&mut db).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
        assert_eq!(app.first.issue("invoices", "second", json!({})).await.expect(201).value(), 2);
        app.first.create_series("new", "N{seq:4}", json!({"reset": "never"})).await.problem(503, "directory-unavailable");
        let stranger = app.first.with_key(&unknown_key());
        stranger.get("/v1/series").await.problem(503, "directory-unavailable");
        app.first.get("/readyz").await.expect(503);
        let open = format!("alter database {database} allow_connections true");
        sqlx::query(sqlx::AssertSqlSafe(open)).execute(&mut db).await.unwrap();
        app.first.create_series("new", "N{seq:4}", json!({"reset": "never"})).await.expect(201);
    });
}
