//! Who may do what, and that another tenant's things do not exist.

use reqwest::Method;
use serde_json::json;
use testkit::{Api, Reply, prove, unknown_key};

/// Every operation of a tenant, with a body where it takes one.
const OPERATIONS: &[(&str, &str)] = &[
    ("POST", "/v1/keys"),
    ("GET", "/v1/keys"),
    ("DELETE", "/v1/keys/0190b5a0-0000-7000-8000-000000000000"),
    ("POST", "/v1/series"),
    ("GET", "/v1/series"),
    ("GET", "/v1/series/invoices"),
    ("POST", "/v1/series/invoices/preview"),
    ("POST", "/v1/series/invoices/numbers"),
    ("POST", "/v1/series/invoices/reservations"),
    ("POST", "/v1/series/invoices/numbers/A0001/confirm"),
    ("POST", "/v1/series/invoices/numbers/A0001/fail"),
    ("POST", "/v1/series/invoices/numbers/A0001/void"),
    ("GET", "/v1/series/invoices/numbers/A0001"),
    ("POST", "/v1/series/invoices/numbers/A0001/release"),
    ("PATCH", "/v1/series/invoices/numbers/A0001"),
    ("GET", "/v1/series/invoices/numbers"),
    ("GET", "/v1/numbers"),
    ("GET", "/v1/series/invoices/periods"),
    ("PATCH", "/v1/series/invoices"),
    ("GET", "/v1/events"),
    ("POST", "/v1/series/invoices/periods/all/next"),
    ("POST", "/v1/series/invoices/periods/all/close"),
    ("GET", "/v1/series/invoices/audit"),
];
const OPERATOR: &[(&str, &str)] = &[
    ("POST", "/v1/tenants"),
    ("GET", "/v1/tenants"),
    ("GET", "/v1/tenants/0190b5a0-0000-7000-8000-000000000000"),
    ("PATCH", "/v1/tenants/0190b5a0-0000-7000-8000-000000000000"),
];

async fn call(api: &Api, (method, path): (&str, &str)) -> Reply {
    let body = json!({});
    let body = (method != "GET").then_some(&body);
    api.call(Method::from_bytes(method.as_bytes()).unwrap(), path, Some("k"), body).await
}

#[test]
fn nobody_gets_in_without_a_good_key() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:4}", json!({"reset": "never"})).await.expect(201);
        let good = &app.first.key;
        let typo = format!("{}{}", &good[..good.len() - 1], if good.ends_with('x') { 'y' } else { 'x' });
        let unknown = unknown_key();
        for operation in OPERATIONS.iter().chain(OPERATOR) {
            for key in [&typo, &unknown, &String::new(), &"x".repeat(5000)] {
                let reply = call(&app.first.with_key(key), *operation).await.problem(401, "unauthenticated");
                assert!(reply.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
            }
        }
        for header in ["", "Basic abc", good, "Bearer"] {
            let request = app.first.http.get(format!("{}/v1/series", app.base)).header("Authorization", header);
            Reply::of(request).await.problem(401, "unauthenticated");
        }
        Reply::of(app.first.http.get(format!("{}/v1/series", app.base))).await.problem(401, "unauthenticated");
    });
}

#[test]
fn each_operation_needs_its_scope() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:4}", json!({"reset": "never"})).await.expect(201);
        let body = json!({"name": "only documents", "scopes": ["documents:read"]});
        let made = app.first.post("/v1/keys", "k", body).await.expect(201);
        let narrow = app.first.with_key(made.body["secret"].as_str().unwrap());
        for operation in OPERATIONS {
            call(&narrow, *operation).await.problem(403, "scope-missing");
            call(&app.operator, *operation).await.problem(403, "scope-missing");
        }
        for operation in OPERATOR {
            call(&app.first, *operation).await.problem(403, "scope-missing");
        }
        assert_eq!(app.first.issue("invoices", "k", json!({})).await.expect(201).value(), 1);
    });
}

#[test]
fn another_tenants_things_do_not_exist() {
    prove(async |app| {
        let second = app.tenant("second").await;
        app.first.create_series("invoices", "A{seq:4}", json!({"reset": "never"})).await.expect(201);
        app.first.issue("invoices", "k", json!({"document_ref": "r"})).await.expect(201);
        let key = app.first.get("/v1/keys").await.expect(200).body["items"][0]["id"].as_str().unwrap().to_owned();
        for path in [
            "/v1/series/invoices",
            "/v1/series/invoices/audit",
            "/v1/series/invoices/numbers/A0001",
            "/v1/series/invoices/numbers",
            "/v1/series/invoices/numbers?format=csv",
            "/v1/series/invoices/periods",
        ] {
            let theirs = second.get(path).await.problem(404, "not-found");
            let missing = second.get(&path.replace("invoices", "missings")).await.problem(404, "not-found");
            let same = |reply: &Reply| reply.body["detail"].as_str().unwrap().replace("missings", "invoices");
            assert_eq!(same(&theirs), same(&missing), "it answers as if it were not there");
        }
        second.issue("invoices", "k", json!({})).await.problem(404, "not-found");
        second.post("/v1/series/invoices/preview", "k", json!({})).await.problem(404, "not-found");
        second.call(Method::DELETE, &format!("/v1/keys/{key}"), None, None).await.problem(404, "not-found");
        assert_eq!(second.get("/v1/series").await.expect(200).body["items"], json!([]));
        assert_eq!(app.first.issue("invoices", "next", json!({})).await.expect(201).value(), 2);
    });
}

#[test]
fn operators_see_tenants_and_no_secrets() {
    prove(async |app| {
        app.tenant("second").await;
        let listed = app.operator.get("/v1/tenants").await.expect(200);
        let names: Vec<_> = listed.body["items"].as_array().unwrap().iter().map(|t| t["name"].clone()).collect();
        assert_eq!(names, ["first", "second"]);
        assert!(!listed.text.contains("srt_") && !listed.text.contains("admin_key"));
        let id = listed.body["items"][0]["id"].as_str().unwrap();
        assert_eq!(app.operator.get(&format!("/v1/tenants/{id}")).await.expect(200).body["status"], "active");
        for missing in ["nonsense", "0190b5a0-0000-7000-8000-000000000000"] {
            app.operator.get(&format!("/v1/tenants/{missing}")).await.problem(404, "not-found");
        }
        app.operator.post("/v1/tenants", "k", json!({"name": "x", "mode": "trial"})).await.problem(422, "invalid");
        app.operator.post("/v1/tenants", "k", json!({"name": ""})).await.problem(422, "invalid");
    });
}

#[test]
fn a_suspended_tenant_is_told_so_everywhere_within_two_seconds() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:4}", json!({"reset": "never"})).await.expect(201);
        let mut db = app.superuser("directory").await;
        let set = async |db: &mut sqlx::PgConnection, status| {
            sqlx::query("update tenant set status = $1").bind(status).execute(db).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
        };
        set(&mut db, "suspended").await;
        for operation in OPERATIONS {
            call(&app.first, *operation).await.problem(403, "tenant-suspended");
        }
        set(&mut db, "active").await;
        assert_eq!(app.first.issue("invoices", "k", json!({})).await.expect(201).value(), 1);
    });
}
