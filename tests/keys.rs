//! API keys.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use testkit::{Setup, TestClock, prove, prove_with};

#[test]
fn a_key_is_shown_once_and_stored_as_a_hash() {
    prove(async |app| {
        let made = app.first.post("/v1/keys", "k", json!({"name": "till 1", "scopes": ["series:read"]})).await.expect(201);
        let secret = made.body["secret"].as_str().unwrap().to_owned();
        assert!(secret.starts_with("srt_live_") && secret.len() == 45);
        app.first.with_key(&secret).get("/v1/series").await.expect(200);
        let listed = app.first.get("/v1/keys").await.expect(200);
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 2);
        assert!(!listed.text.contains(&secret[10..]));
        let mut db = app.superuser("directory").await;
        let stored: Vec<String> =
            sqlx::query_scalar("select row_to_json(k)::text from api_key k").fetch_all(&mut db).await.unwrap();
        assert!(stored.iter().all(|row| !row.contains(&secret[10..40])));
    });
}

#[test]
fn a_key_gives_no_more_than_it_has() {
    prove(async |app| {
        let scopes = json!({"name": "keys only", "scopes": ["keys:manage", "series:read"]});
        let made = app.first.post("/v1/keys", "k", scopes).await.expect(201);
        let narrow = app.first.with_key(made.body["secret"].as_str().unwrap());
        narrow.post("/v1/keys", "a", json!({"name": "n", "scopes": ["numbers:void"]})).await.problem(403, "scope-missing");
        narrow.post("/v1/keys", "a", json!({"name": "n", "scopes": ["series:read"]})).await.expect(201);
        for scopes in [json!([]), json!(["tenants:manage"]), json!(["everything"]), json!(["series:read", "series:read"])] {
            app.first.post("/v1/keys", "b", json!({"name": "n", "scopes": scopes})).await.problem(422, "invalid");
        }
    });
}

#[test]
fn a_revoked_key_is_refused_here_at_once_and_elsewhere_soon() {
    prove(async |app| {
        let made = app.first.post("/v1/keys", "k", json!({"name": "lost", "scopes": ["series:read"]})).await.expect(201);
        let lost = app.first.with_key(made.body["secret"].as_str().unwrap());
        let elsewhere = app.gateway_process().await;
        for base in [&app.base, &elsewhere.base] {
            lost.at(base).get("/v1/series").await.expect(200);
        }
        let path = format!("/v1/keys/{}", made.body["id"].as_str().unwrap());
        app.first.call(Method::DELETE, &path, None, None).await.expect(204);
        lost.get("/v1/series").await.problem(401, "unauthenticated");
        let revoked = Instant::now();
        while lost.at(&elsewhere.base).get("/v1/series").await.status != 401 {
            assert!(revoked.elapsed() < Duration::from_secs(10), "it still works at another gateway");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        app.first.call(Method::DELETE, &path, None, None).await.expect(204);
    });
}

#[test]
fn an_expired_key_is_refused() {
    let clock = TestClock::at("2026-06-01T12:00:00Z");
    let setup = Setup { clock: Some(clock.clone()), ..Setup::default() };
    prove_with(setup, async |app| {
        let body = json!({"name": "short", "scopes": ["series:read"], "expires_at": "2026-06-01T12:30:00Z"});
        let made = app.first.post("/v1/keys", "k", body).await.expect(201);
        let short = app.first.with_key(made.body["secret"].as_str().unwrap());
        short.get("/v1/series").await.expect(200);
        clock.set("2026-06-01T12:30:00Z");
        short.get("/v1/series").await.problem(401, "unauthenticated");
        let past = json!({"name": "n", "scopes": ["series:read"], "expires_at": "2026-06-01T12:00:00Z"});
        app.first.post("/v1/keys", "past", past).await.problem(422, "invalid");
    });
}
