//! The connection breaks exactly at COMMIT: before it reaches the server, after it, or with the client gone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::Method;
use serde_json::json;
use testkit::{App, Cut, Reply, Setup, leaving, prove_with};
use tokio::sync::oneshot;

use crate::together::{all, contiguous};

const PATH: &str = "/v1/series/invoices/numbers";

async fn issue(app: &App, key: &str) -> Reply {
    app.first.issue("invoices", key, json!({"document_ref": format!("order-{key}")})).await
}

/// 300 cuts in thirds. Whatever a client was told is true, and every key has one number afterwards.
#[test]
fn three_hundred_cuts_at_commit() {
    prove_with(Setup { proxy: true, ..Setup::default() }, async |app| {
        app.first.create_series("invoices", "A{seq:6}", json!({"reset": "never"})).await.expect(201);
        let shard = if app.shard_of("invoices").await == "shard_1" { "shard_1" } else { "shard_2" };
        let proxy = app.proxy();
        let (mut told, mut keys) = (Vec::new(), Vec::new());
        for n in 0..100 {
            for (kind, cut) in [("before", Cut::Before), ("after", Cut::After)] {
                let key = format!("{kind}-{n}");
                proxy.cut(shard, cut);
                let reply = issue(app, &key).await;
                assert_eq!(proxy.forget(), 0, "{key}: the cut was met");
                // Cut before COMMIT, the gateway did it again; cut after it, the gateway found it by the key.
                assert_eq!(reply.status, 201, "{key}: {}", reply.text);
                assert_eq!(reply.replayed(), kind == "after", "{key}");
                told.push(reply.value());
                keys.push(key);
            }
            // The client is gone before COMMIT reaches the server.
            let key = format!("gone-{n}");
            let (seen, held) = oneshot::channel();
            proxy.cut(shard, Cut::Hold(seen));
            let request =
                leaving::request(&app.first, &Method::POST, PATH, &key, &json!({"document_ref": format!("order-{key}")}));
            let client = leaving::until(&app.first, &request, request.len()).await;
            let go = held.await.expect("its COMMIT comes by");
            drop(client);
            drop(go);
            keys.push(key);
        }
        let answers = all(keys.into_iter().map(|key| {
            let api = app.first.clone();
            async move {
                let reply = api.issue("invoices", &key, json!({"document_ref": format!("order-{key}")})).await.expect(201);
                (key, reply.value(), reply.replayed())
            }
        }))
        .await;
        assert!(answers.iter().all(|(_, _, replayed)| *replayed), "every key had its number before it was repeated");
        assert_eq!(proxy.met(), 300);
        contiguous(answers.iter().map(|(_, value, _)| *value).collect(), 1);
        let true_ones: Vec<i64> =
            answers.iter().filter(|(key, ..)| !key.starts_with("gone")).map(|(_, value, _)| *value).collect();
        assert_eq!(true_ones, told, "what was answered at the cut is what the key gives later");
    });
}

/// 64 clients with 200 documents each, and 300 cuts under whatever rides at that moment.
#[test]
fn three_hundred_cuts_under_load() {
    prove_with(Setup { proxy: true, ..Setup::default() }, async |app| {
        app.first.create_series("invoices", "A{seq:6}", json!({"reset": "never"})).await.expect(201);
        let shard = if app.shard_of("invoices").await == "shard_1" { "shard_1" } else { "shard_2" };
        let proxy = app.proxy();
        let all_met = Arc::new(AtomicBool::new(false));
        let cuts = async {
            for n in 0..300 {
                proxy.cut(shard, if n % 2 == 0 { Cut::Before } else { Cut::After });
                while proxy.met() <= n {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            all_met.store(true, Ordering::SeqCst);
        };
        let clients = all((0..64).map(|client| {
            let (api, all_met) = (app.first.clone(), all_met.clone());
            async move {
                let mut told = Vec::new();
                while told.len() < 200 || !all_met.load(Ordering::SeqCst) {
                    let key = format!("{client}-{}", told.len());
                    let reply = api.issue("invoices", &key, json!({"document_ref": format!("order-{key}")})).await;
                    told.push((key, reply.expect(201).value()));
                }
                told
            }
        }));
        let (told, ()) = tokio::join!(clients, cuts);
        let told = told.concat();
        contiguous(told.iter().map(|(_, value)| *value).collect(), 1);
        for (key, value) in told.iter().step_by(64) {
            let again = issue(app, key).await.expect(201);
            assert_eq!((again.value(), again.replayed()), (*value, true), "{key}");
        }
    });
}

/// The server goes away without a word: callers get an answer in time, and what happened shows afterwards.
#[test]
fn a_server_that_is_gone_without_a_word_holds_nobody_for_ever() {
    prove_with(Setup { proxy: true, connections: Some(4), ..Setup::default() }, async |app| {
        app.first.create_series("invoices", "A{seq:6}", json!({"reset": "never"})).await.expect(201);
        issue(app, "first").await.expect(201);
        let proxy = app.proxy();
        proxy.silence(true);
        let replies = all((0..8).map(|n| {
            let api = app.first.clone();
            async move { api.issue("invoices", &format!("k{n}"), json!({"document_ref": format!("order-k{n}")})).await }
        }));
        for reply in replies.await {
            assert_eq!(reply.status, 503, "{}", reply.text);
            assert_eq!(reply.headers["retry-after"], "1");
        }
        proxy.silence(false);
        let mut values = vec![1];
        for n in 0..8 {
            let mut reply = issue(app, &format!("k{n}")).await;
            while reply.status == 503 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                reply = issue(app, &format!("k{n}")).await;
            }
            values.push(reply.expect(201).value());
        }
        contiguous(values, 1);
    });
}
