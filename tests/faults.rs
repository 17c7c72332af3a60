//! A transaction that goes wrong at each of its named points: nothing lost, repeated or skipped.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use testkit::{
    App,
    fault::{Action, Point, arm},
    leaving, prove,
};

use crate::together::{all, contiguous};

const POINTS: [(Point, &str); 5] = [
    (Point::BeforeClaim, "before_claim"),
    (Point::AfterLock, "after_lock"),
    (Point::AfterWrite, "after_write"),
    (Point::BeforeCommit, "before_commit"),
    (Point::AfterCommit, "after_commit"),
];

async fn series(app: &App) {
    app.first.create_series("invoices", "A{seq:6}", json!({"reset": "never"})).await.expect(201);
}

/// A number is decided, and written 200 ms later; it is written, and committed 200 ms later. Meanwhile fifty others issue,
/// half of them through another gateway.
#[test]
fn c04_a_slow_write_gives_no_number_twice() {
    prove(async |app| {
        series(app).await;
        let other = app.gateway_process().await;
        let slow = arm(Point::AfterLock, app.first_id, Action::Wait(Duration::from_millis(200)), 1);
        let later = arm(Point::AfterWrite, app.first_id, Action::Wait(Duration::from_millis(200)), 2);
        let values = all((0..51).map(|n| {
            let api = if n % 2 == 0 { app.first.clone() } else { app.first.at(&other.base) };
            async move { api.issue("invoices", &format!("k{n}"), json!({})).await.expect(201).value() }
        }))
        .await;
        contiguous(values, 1);
        assert!(slow.passed() >= 2 && later.passed() >= 2, "both were met");
        assert_eq!(other.stop().await, Some(0));
    });
}

/// The process dies after the counter moved and before COMMIT: the value goes to the next caller.
#[test]
fn c11_a_death_before_commit_gives_the_value_to_the_next() {
    prove(async |app| {
        series(app).await;
        for (n, point) in ["after_lock", "after_write", "before_commit"].into_iter().enumerate() {
            let doomed = app.doomed_gateway(&format!("{point}:1")).await;
            let url = format!("{}/v1/series/invoices/numbers", doomed.base);
            let request = app.first.http.post(url).bearer_auth(&app.first.key).header("Idempotency-Key", format!("lost-{n}"));
            assert!(request.json(&json!({})).send().await.is_err(), "{point}: a dead gateway answers nothing");
            assert!(doomed.died().await, "{point}");
            let next = app.first.issue("invoices", &format!("next-{n}"), json!({})).await.expect(201);
            assert_eq!(next.value(), i64::try_from(n).unwrap() + 1, "{point}: the value was not lost");
        }
        let again = app.first.issue("invoices", "lost-0", json!({})).await.expect(201);
        assert_eq!((again.value(), again.replayed()), (4, false), "the dead gateway's key took nothing");
    });
}

/// The process dies after COMMIT and before the answer: the repeated key gives that number.
#[test]
fn c61_a_death_after_commit_is_found_by_the_key() {
    prove(async |app| {
        series(app).await;
        let doomed = app.doomed_gateway("after_commit:1").await;
        // The first COMMIT of a gateway's may be the directory's; so the series is made known beforehand.
        let url = format!("{}/v1/series/invoices/numbers", doomed.base);
        let request = app.first.http.post(url).bearer_auth(&app.first.key).header("Idempotency-Key", "k");
        assert!(request.json(&json!({"document_ref": "order-1"})).send().await.is_err());
        assert!(doomed.died().await);
        let again = app.first.issue("invoices", "k", json!({"document_ref": "order-1"})).await.expect(201);
        let fresh = app.first.issue("invoices", "other", json!({})).await.expect(201).value();
        assert_eq!((again.value(), fresh), (1, 2));
    });
}

/// A connection lost at each point: the caller gets one number all the same, and the next the next.
#[test]
fn a_connection_lost_at_any_point_is_no_more_than_a_delay() {
    prove(async |app| {
        series(app).await;
        for (n, (point, name)) in (1..).zip(POINTS) {
            let fault = arm(point, app.first_id, Action::Lose, 1);
            let reply = app.first.issue("invoices", name, json!({})).await.expect(201);
            assert_eq!(reply.value(), n, "{name}");
            assert!(fault.passed() >= 1, "{name} was met");
        }
    });
}

/// Lost at every attempt: the answer says that repeating the key finds out, and it does.
#[test]
fn an_answer_that_could_not_be_had_is_not_made_up() {
    prove(async |app| {
        series(app).await;
        let fault = arm(Point::BeforeCommit, app.first_id, Action::Lose, 0);
        let reply = app.first.issue("invoices", "k", json!({})).await.problem(503, "shard-unavailable");
        assert_eq!(reply.headers["retry-after"], "1");
        assert!(fault.passed() > 3, "it was tried again and again");
        drop(fault);
        assert_eq!(app.first.issue("invoices", "k", json!({})).await.expect(201).value(), 1);

        let fault = arm(Point::AfterCommit, app.first_id, Action::Lose, 0);
        let reply = app.first.issue("invoices", "l", json!({})).await.expect(201);
        assert!(reply.replayed(), "the second attempt found what the first had done");
        assert_eq!(reply.value(), 2);
        drop(fault);
    });
}

/// A client leaves while its transaction stands still at a named point; its key finds the number.
#[test]
fn a_client_that_leaves_at_any_point_changes_nothing() {
    prove(async |app| {
        series(app).await;
        for (n, (point, name)) in (1..).zip(POINTS) {
            let fault = arm(point, app.first_id, Action::Wait(Duration::from_millis(150)), 1);
            let request = leaving::request(&app.first, &Method::POST, "/v1/series/invoices/numbers", name, &json!({}));
            let client = leaving::until(&app.first, &request, request.len()).await;
            while fault.passed() == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            drop(client);
            assert_eq!(app.first.issue("invoices", name, json!({})).await.expect(201).value(), n, "{name}");
        }
    });
}
