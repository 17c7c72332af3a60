//! What is not right: each its problem and status, and nothing used up.

use reqwest::Method;
use serde_json::json;
use testkit::{Reply, prove};

#[test]
fn bodies_that_are_not_right() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:4}", json!({"reset": "never"})).await.expect(201);
        let url = format!("{}/v1/series/invoices/numbers", app.base);
        let send = async |kind: &str, body: Vec<u8>| {
            let request = app.first.http.post(&url).bearer_auth(&app.first.key).header("Idempotency-Key", "k");
            Reply::of(request.header("Content-Type", kind).body(body)).await
        };
        let json_body = "application/json";
        for malformed in [
            "",
            "{",
            "{]",
            "nonsense",
            "{\"a\":1,}",
            "{} {}",
            r#"{"document_ref":"a","document_ref":"b"}"#,
            r#"{"metadata":{"x":1,"x":2}}"#,
            r#"{"document_ref":"\ud800"}"#,
            r#"{"metadata":{"x":"\u0000"}}"#,
            "\u{feff}{}",
        ] {
            send(json_body, malformed.into()).await.problem(400, "malformed-json");
        }
        send(json_body, vec![b'"', 0xff, b'"']).await.problem(400, "malformed-json");
        send(json_body, "[".repeat(200_000).into()).await.problem(400, "malformed-json");
        for (invalid, pointer) in [
            ("[]", ""),
            ("[null,null,null,null,null]", ""),
            (r#"{"items":[["r","2026-01-01",null]]}"#, "/items/0"),
            (r#"{"document_ref":7}"#, "/document_ref"),
            (r#"{"document_ref":""}"#, "/document_ref"),
            (r#"{"document_ref":" a"}"#, "/document_ref"),
            (r#"{"count":0}"#, "/count"),
            (r#"{"count":1001}"#, "/count"),
            (r#"{"count":-1}"#, "/count"),
            (r#"{"count":"3"}"#, "/count"),
            (r#"{"count":2,"document_ref":"a"}"#, "/document_ref"),
            (r#"{"count":2,"items":[{}]}"#, "/count"),
            (r#"{"items":[]}"#, "/items"),
            (r#"{"items":{}}"#, "/items"),
            (r#"{"items":[{}],"document_ref":"a"}"#, "/items"),
            (r#"{"items":[{"x":1}]}"#, "/items/0/x"),
            (r#"{"metadata":[]}"#, "/metadata"),
            (r#"{"number":"A0001"}"#, "/number"),
        ] {
            let reply = send(json_body, invalid.into()).await.problem(422, "invalid");
            assert_eq!(reply.body["errors"][0]["pointer"], pointer, "{invalid}: {}", reply.text);
        }
        let many = json!({"items": vec![json!({}); 1001]}).to_string();
        send(json_body, many.into()).await.problem(422, "invalid");
        let huge = json!({"metadata": {"x": "y".repeat(3_000_000)}}).to_string();
        send(json_body, huge.into()).await.problem(413, "too-large");
        let large = json!({"metadata": {"x": "y".repeat(20_000)}}).to_string();
        send(json_body, large.into()).await.problem(422, "invalid");
        send("text/plain", "{}".into()).await.problem(415, "media-type");
        send("application/x-www-form-urlencoded", "count=1".into()).await.problem(415, "media-type");
        // Nothing was used by any of it.
        assert_eq!(app.first.issue("invoices", "k", json!({})).await.expect(201).value(), 1);
    });
}

#[test]
fn keys_and_paths_that_are_not_right() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:4}", json!({"reset": "never"})).await.expect(201);
        let path = "/v1/series/invoices/numbers";
        let body = json!({});
        app.first.call(Method::POST, path, None, Some(&body)).await.problem(400, "idempotency-key-required");
        for key in [&"k".repeat(300), "", "\"\"", "with space"] {
            app.first.call(Method::POST, path, Some(key), Some(&body)).await.problem(400, "idempotency-key-invalid");
        }
        let twice = app.first.http.post(format!("{}{path}", app.base)).bearer_auth(&app.first.key).json(&body);
        let twice = twice.header("Idempotency-Key", "a").header("Idempotency-Key", "b");
        Reply::of(twice).await.problem(400, "idempotency-key-invalid");
        for series in ["%00%ff", "missing", "INVOICES", "in%20voices", "%00", "..%2f..", &"a".repeat(70)] {
            app.first.issue(series, "k", json!({})).await.problem(404, "not-found");
            app.first.get(&format!("/v1/series/{series}")).await.problem(404, "not-found");
            app.first.get(&format!("/v1/series/{series}/audit")).await.problem(404, "not-found");
            app.first.get(&format!("/v1/series/{series}/numbers/A0001")).await.problem(404, "not-found");
            app.first.post(&format!("/v1/series/{series}/preview"), "k", json!({})).await.problem(404, "not-found");
        }
        app.first.get("/nowhere").await.problem(404, "not-found");
        app.first.get("/v1/series/invoices/numbers/A0001/more/and/more").await.problem(404, "not-found");
        let wrong = app.first.call(Method::DELETE, "/v1/series", None, None).await.problem(405, "method-not-allowed");
        assert!(wrong.headers.contains_key("allow"));
        app.first.get("/v1/series/invoices/audit?period=").await.problem(422, "invalid");
        app.first.get("/v1/series/invoices/audit?period=%00").await.problem(422, "invalid");
        app.first.get("/v1/series/invoices/audit?period=1066").await.problem(422, "invalid");
        let limit = app.first.get("/v1/series?limit=a").await.problem(422, "invalid");
        assert_eq!(limit.body["errors"][0]["pointer"], "/limit", "{}", limit.text);
        for key in ["\"half", "two words", ""] {
            let refused = app.first.issue("invoices", key, json!({})).await.problem(400, "idempotency-key-invalid");
            assert!(refused.body["detail"].as_str().unwrap().starts_with("the Idempotency-Key "), "{}", refused.text);
        }
        assert_eq!(app.first.issue("invoices", "k", json!({})).await.expect(201).value(), 1);
    });
}

#[test]
fn every_answer_carries_an_operation_id() {
    prove(async |app| {
        let named = async |id: &str| {
            let request = app.first.http.get(format!("{}/healthz", app.base)).header("Operation-Id", id);
            Reply::of(request).await.expect(200).headers["operation-id"].to_str().unwrap().to_owned()
        };
        assert_eq!(named("mine-1").await, "mine-1");
        for bad in ["", "two words", &"x".repeat(65), "a\"b"] {
            assert_ne!(named(bad).await, bad);
        }
        assert_eq!(app.first.get("/readyz").await.expect(200).body["status"], "ok");
        assert_eq!(app.first.get("/v1/series").await.expect(200).headers["cache-control"], "no-store");
    });
}
