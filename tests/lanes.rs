//! Requests that ride together: each has its own answer, whatever the others are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::json;
use testkit::{
    App, Setup,
    fault::{Action, Point, arm},
    leaving, prove, prove_with,
};

use crate::together::{all, contiguous};

/// Two callers alternate between two series in opposite order, in batches, through two gateways; then both number the
/// same documents in opposite order under two periods. Nobody hears of a deadlock.
#[test]
fn c08_opposite_orders_do_not_surface() {
    prove(async |app| {
        for name in ["a", "b"] {
            app.first.create_series(name, &format!("{name}{{yyyy}}-{{seq}}"), json!({})).await.expect(201);
        }
        let other = app.gateway_process().await;
        let callers = all([["a", "b"], ["b", "a"]].into_iter().enumerate().map(|(caller, order)| {
            let api = if caller == 0 { app.first.clone() } else { app.first.at(&other.base) };
            async move {
                let mut values = [Vec::new(), Vec::new()];
                for turn in 0..20 {
                    for series in order {
                        let items: Vec<_> = (0..10).map(|n| json!({"document_ref": format!("{caller}-{turn}-{n}")})).collect();
                        let reply = api.issue(series, &format!("{caller}-{turn}"), json!({"items": items})).await.expect(201);
                        values[usize::from(series == "b")].extend(reply.values());
                    }
                }
                values
            }
        }))
        .await;
        for series in 0..2 {
            contiguous(callers.iter().flat_map(|values| values[series].clone()).collect(), 1);
        }
        let shared = all((0..16).map(|caller| {
            let api = if caller % 2 == 0 { app.first.clone() } else { app.first.at(&other.base) };
            async move {
                let mut references: Vec<_> = (0..8).map(|n| format!("shared-{n}")).collect();
                if caller % 4 > 1 {
                    references.reverse();
                }
                let items: Vec<_> = references.iter().map(|reference| json!({"document_ref": reference})).collect();
                let reply = api.issue("a", &format!("shared-{caller}"), json!({"items": items})).await;
                let reply = if reply.status == 200 { reply.expect(200) } else { reply.expect(201) };
                let mut values: Vec<_> = reply.values();
                values.sort_unstable();
                values
            }
        }))
        .await;
        assert!(shared.iter().all(|values| *values == shared[0]), "each document has one number: {shared:?}");
        assert_eq!(other.stop().await, Some(0));
    });
}

/// A client asks and then does not read its answer: the others neither wait for it nor get slower.
#[test]
fn c09_a_client_that_does_not_read_holds_nobody_up() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:6}", json!({"reset": "never"})).await.expect(201);
        let hundred = async |name: &str| {
            let begun = Instant::now();
            let _ = all((0..100).map(|n| {
                let (api, key) = (app.first.clone(), format!("{name}-{n}"));
                async move { api.issue("invoices", &key, json!({})).await.expect(201).value() }
            }))
            .await;
            begun.elapsed()
        };
        let before = hundred("warm").await.min(hundred("before").await);
        let ask = json!({"count": 1000});
        let request = leaving::request(&app.first, &Method::POST, "/v1/series/invoices/numbers", "slow", &ask);
        let slow = leaving::until(&app.first, &request, request.len()).await;
        let during = hundred("during").await.min(hundred("still").await);
        assert!(during < before * 10, "a hundred took {during:?}, and {before:?} without the slow client");
        drop(slow);
        let found = app.first.issue("invoices", "slow", ask).await.expect(201);
        assert!(found.replayed(), "its numbers were issued all the same");
    });
}

/// A round that carries everything at once: new ones, the same key twice, a key with another meaning, a document that has
/// a number, one whose date is another, one that does not fit, one whose client has left.
#[test]
fn everybody_in_a_round_has_their_own_answer() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:2}", json!({"reset": "never"})).await.expect(201);
        let dated = |reference: &str| json!({"document_ref": reference, "document_date": "2026-01-31"});
        assert_eq!(app.first.issue("invoices", "known", dated("order-1")).await.expect(201).value(), 1);
        // While the first of these stands still, the others gather behind it.
        let slow = arm(Point::AfterLock, app.first_id, Action::Wait(Duration::from_millis(400)), 1);
        let first = issue(app, "first", json!({}));
        let rest = async {
            while slow.passed() == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let leaves = leaving::request(&app.first, &Method::POST, "/v1/series/invoices/numbers", "left", &json!({}));
            drop(leaving::until(&app.first, &leaves, leaves.len()).await);
            tokio::join!(
                issue(app, "known", dated("order-1")),
                issue(app, "known", dated("order-2")),
                issue(app, "again", dated("order-1")),
                issue(app, "conflict", json!({"document_ref": "order-1", "document_date": "2026-02-01"})),
                issue(app, "too many", json!({"count": 98})),
                issue(app, "new", dated("order-3")),
                issue(app, "twin", dated("order-4")),
                issue(app, "other twin", dated("order-4")),
            )
        };
        let (first, (replay, reused, again, conflict, many, new, twin, other)) = tokio::join!(first, rest);
        assert_eq!(first.expect(201).value(), 2);
        let replay = replay.expect(201);
        assert_eq!((replay.value(), replay.replayed()), (1, true));
        let _ = reused.problem(422, "idempotency-key-reused");
        assert_eq!(again.expect(200).value(), 1);
        let _ = conflict.problem(409, "document-conflict");
        let _ = many.problem(409, "series-exhausted");
        let _ = new.expect(201);
        assert_eq!(twin.value(), other.value(), "one document, one number");
        let mut statuses = [twin.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 201]);
        let left = app.first.issue("invoices", "left", json!({})).await.expect(201);
        assert!((3..=5).contains(&left.value()), "whoever left has the number that was taken: {}", left.value());
        assert!(slow.passed() < 8, "they rode together: {} transactions", slow.passed());
        let next = app.first.issue("invoices", "next", json!({})).await.expect(201);
        assert_eq!(next.value(), 6, "the refused used nothing");
    });
}

async fn issue(app: &App, key: &str, body: serde_json::Value) -> testkit::Reply {
    app.first.issue("invoices", &key.replace(' ', "-"), body).await
}

/// What the database can't take fails alone; whoever rode with it does not notice.
#[test]
fn one_that_the_database_refuses_fails_alone() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:6}", json!({"reset": "never"})).await.expect(201);
        let _ = app.first.issue("invoices", "k", json!({})).await.expect(201);
        let mut db = app.superuser(&app.shard_of("invoices").await).await;
        let check = "alter table number add constraint planted check (document_ref <> 'poison')";
        sqlx::raw_sql(check).execute(&mut db).await.unwrap();
        let _slow = arm(Point::AfterLock, app.first_id, Action::Wait(Duration::from_millis(200)), 1);
        let replies = all((0..30).map(|n| {
            let (app, key) = (app.first.clone(), format!("k{n}"));
            let reference = if n == 17 { "poison".to_owned() } else { format!("order-{n}") };
            async move { app.issue("invoices", &key, json!({"document_ref": reference})).await }
        }))
        .await;
        let mut values = Vec::new();
        for (n, reply) in replies.into_iter().enumerate() {
            if n == 17 {
                let _ = reply.problem(500, "internal");
            } else {
                values.push(reply.expect(201).value());
            }
        }
        contiguous(values, 2);
    });
}

/// A strict series keeps to the order of dates, whoever asks first: those who ride together are ordered, and whoever goes
/// back is told which date is the latest.
#[test]
fn a_strict_series_keeps_to_the_order_of_dates() {
    prove(async |app| {
        let strict = json!({"reset": "never", "chronology": "strict"});
        let made = app.first.create_series("invoices", "A{seq:6}", strict).await.expect(201);
        assert_eq!(made.body["chronology"], "strict");
        let on = |day: u32| json!({"document_date": format!("2026-03-{day:02}")});
        assert_eq!(app.first.issue("invoices", "first", on(2)).await.expect(201).value(), 1);
        // While the first of these stands still, the others gather behind it, in no order.
        let slow = arm(Point::AfterLock, app.first_id, Action::Wait(Duration::from_millis(300)), 1);
        let first = issue(app, "slow", on(2));
        let rest = async {
            while slow.passed() == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            all((0..27_u32).map(|n| {
                let (api, day) = (app.first.clone(), 2 + n * 7 % 27);
                async move { (day, api.issue("invoices", &format!("k{n}"), on(day)).await.expect(201).value()) }
            }))
            .await
        };
        let (_, mut dated) = tokio::join!(first, rest);
        dated.sort_unstable();
        assert!(dated.iter().map(|(_, value)| value).is_sorted(), "later dates have higher numbers: {dated:?}");
        contiguous(dated.iter().map(|(_, value)| *value).collect(), 3);

        let back = issue(app, "back", on(27)).await.problem(422, "chronology");
        assert!(back.body["detail"].as_str().unwrap().contains("2026-03-28"), "it names the latest date: {}", back.text);
        let items = json!({"items": [on(30), on(29)]});
        let _ = issue(app, "items", items).await.problem(422, "chronology");
        let preview = app.first.post("/v1/series/invoices/preview", "preview", on(27)).await;
        let _ = preview.problem(422, "chronology");
        assert_eq!(issue(app, "same day", on(28)).await.expect(201).value(), 30, "what was refused used nothing");
    });
}

/// One connection to the shard, and a series that never has enough: whoever else comes is served in between.
#[test]
fn a_hot_series_does_not_starve_the_others() {
    prove_with(Setup { connections: Some(1), ..Setup::default() }, async |app| {
        app.first.create_series("hot", "H{seq:6}", json!({"reset": "never"})).await.expect(201);
        let shard = app.shard_of("hot").await;
        let mut cold = Vec::new();
        for n in 0..12 {
            let name = format!("cold-{n}");
            app.first.create_series(&name, &format!("C{n}-{{seq:6}}"), json!({"reset": "never"})).await.expect(201);
            if app.shard_of(&name).await == shard {
                cold.push(name);
            }
        }
        let (last, done) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
        let hot = all((0..64).map(|client| {
            let (api, last, done) = (app.first.clone(), last.clone(), done.clone());
            async move {
                for n in 0.. {
                    if done.load(Ordering::SeqCst) {
                        break;
                    }
                    let reply = api.issue("hot", &format!("h{client}-{n}"), json!({})).await.expect(201);
                    last.fetch_max(reply.value(), Ordering::SeqCst);
                }
            }
        }));
        let others = async {
            let mut worst = 0;
            for n in 0..10 {
                for name in &cold {
                    let before = last.load(Ordering::SeqCst);
                    app.first.issue(name, &format!("c{n}"), json!({})).await.expect(201);
                    worst = worst.max(last.load(Ordering::SeqCst) - before);
                }
            }
            done.store(true, Ordering::SeqCst);
            worst
        };
        let (_, worst) = tokio::join!(hot, others);
        assert!(last.load(Ordering::SeqCst) > 640, "it was hot");
        assert!(worst <= 64 * 8, "{worst} numbers of the hot series went before one of another");
    });
}

/// More than may wait: the rest is refused at once and says when to come again; what was refused used nothing.
#[test]
fn what_can_not_wait_is_refused_at_once() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:6}", json!({"reset": "never"})).await.expect(201);
        let _ = app.first.issue("invoices", "first", json!({})).await.expect(201);
        let slow = arm(Point::AfterLock, app.first_id, Action::Wait(Duration::from_millis(1500)), 1);
        let first = issue(app, "slow", json!({}));
        let rest = async {
            while slow.passed() == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            all((0..20).map(|n| {
                let api = app.first.clone();
                async move {
                    let begun = Instant::now();
                    let reply = api.issue("invoices", &format!("k{n}"), json!({"count": 1000})).await;
                    (reply, begun.elapsed())
                }
            }))
            .await
        };
        let (_, rest) = tokio::join!(first, rest);
        let (mut served, mut refused) = (0, 0);
        for (reply, took) in rest {
            if reply.status == 201 {
                served += 1;
                continue;
            }
            refused += 1;
            let reply = reply.problem(503, "busy");
            assert_eq!(reply.headers["retry-after"], "1");
            assert!(took < Duration::from_secs(1), "refused after {took:?}, while the others still waited");
        }
        assert_eq!((served, refused), (8, 12), "8,192 documents may wait in one lane");
        let next = app.first.issue("invoices", "next", json!({})).await.expect(201);
        assert_eq!(next.value(), 8_003);
    });
}
