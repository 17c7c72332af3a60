//! Lists, exports, and the same question to every series.

use serde_json::{Value, json};
use testkit::prove;

use crate::together::all;

async fn numbers(api: &testkit::Api, query: &str) -> (Vec<String>, Option<String>) {
    let page = api.get(&format!("/v1/series/a/numbers?{query}")).await.expect(200);
    let items = page.body["items"].as_array().unwrap();
    let numbers = items.iter().map(|item| item["number"].as_str().unwrap().to_owned());
    (numbers.collect(), page.body["next_cursor"].as_str().map(str::to_owned))
}

#[test]
fn a_list_is_stable_while_numbers_are_issued() {
    prove(async |app| {
        app.first.create_series("a", "{yyyy}{mm}-{seq:4}", json!({"reset": "monthly"})).await.expect(201);
        let mut before = Vec::new();
        for month in ["2026-03", "2026-01", "2026-02"] {
            let body = json!({"count": 7, "document_date": format!("{month}-05")});
            app.first.issue("a", month, body).await.expect(201);
            before.extend((1..=7).map(|n| format!("{}-{n:04}", month.replace('-', ""))));
        }
        before.sort();
        let (mut seen, mut query, mut n) = (Vec::new(), "limit=4".to_owned(), 0);
        loop {
            let (page, cursor) = numbers(&app.first, &query).await;
            seen.extend(page);
            n += 1;
            let month = ["2026-01", "2026-02", "2026-03"][n % 3];
            let body = json!({"document_date": format!("{month}-06")});
            if n < 9 {
                app.first.issue("a", &format!("k{n}"), body).await.expect(201);
            }
            let Some(cursor) = cursor else { break };
            query = format!("limit=4&cursor={cursor}");
        }
        assert!(seen.is_sorted_by(|a, b| a < b), "in order and none twice: {seen:?}");
        assert!(before.iter().all(|number| seen.contains(number)), "all that were there at the beginning");
    });
}

#[test]
fn filters_and_what_is_wrong_with_them() {
    prove(async |app| {
        app.first.create_series("a", "{yyyy}-{seq:4}", json!({})).await.expect(201);
        app.first.create_series("b", "b{yyyy}-{seq:4}", json!({})).await.expect(201);
        for (n, date) in ["2025-01-01", "2026-01-01", "2026-01-02"].iter().enumerate() {
            let body = json!({"document_ref": format!("order {n}"), "document_date": date, "metadata": {"n": n}});
            let _ = app.first.post("/v1/series/a/reservations", &format!("k{n}"), body).await.expect(201);
        }
        let _ = app.first.post("/v1/series/a/numbers/2026-0001/confirm", "unused", json!({})).await.expect(200);
        assert_eq!(numbers(&app.first, "").await.0, ["2025-0001", "2026-0001", "2026-0002"]);
        assert_eq!(numbers(&app.first, "state=reserved").await.0, ["2025-0001", "2026-0002"]);
        assert_eq!(numbers(&app.first, "state=issued").await.0, ["2026-0001"]);
        assert_eq!(numbers(&app.first, "period=2026").await.0, ["2026-0001", "2026-0002"]);
        assert_eq!(numbers(&app.first, "period=2026&state=reserved").await.0, ["2026-0002"]);
        assert_eq!(numbers(&app.first, "document_ref=order%201").await.0, ["2026-0001"]);
        assert_eq!(numbers(&app.first, "document_ref=order%201&state=reserved").await.0, [""; 0]);
        assert_eq!(numbers(&app.first, "period=2031").await.0, [""; 0]);
        let page = app.first.get("/v1/series/a/numbers?limit=1").await.expect(200);
        assert_eq!(
            page.body["items"][0],
            json!({"number": "2025-0001", "value": 1, "period": "2025", "part": 0, "series": "a", "state": "reserved",
                   "document_ref": "order 0", "document_date": "2025-01-01", "issued_at": null, "metadata": {"n": 0}})
        );
        let cursor = page.body["next_cursor"].as_str().unwrap();
        for foreign in [
            format!("b/numbers?cursor={cursor}"),
            format!("a/numbers?state=reserved&cursor={cursor}"),
            format!("a/periods?cursor={cursor}"),
        ] {
            let _ = app.first.get(&format!("/v1/series/{foreign}")).await.problem(400, "cursor-invalid");
        }
        for forged in ["x", "bnVtYmVycy9hLy8vZmFsc2U6eA", "%00", "bnVtYmVycy9hLy8vZmFsc2U6MC8yMDI2L25pbmU"] {
            let _ = app.first.get(&format!("/v1/series/a/numbers?cursor={forged}")).await.problem(400, "cursor-invalid");
        }
        for (query, pointer) in [
            ("state=gone", "/state"),
            ("period=x%20y", "/period"),
            ("limit=0", "/limit"),
            ("limit=1001", "/limit"),
            ("limit=many", "/limit"),
            ("format=xml", "/format"),
            ("format=csv&limit=5", "/limit"),
            ("document_ref=", "/document_ref"),
            ("colour=red", "/colour"),
        ] {
            let wrong = app.first.get(&format!("/v1/series/a/numbers?{query}")).await.problem(422, "invalid");
            assert_eq!(wrong.body["errors"][0]["pointer"], pointer, "{query}: {}", wrong.text);
        }
        let _ = app.first.get("/v1/series/none/numbers").await.problem(404, "not-found");
    });
}

#[test]
fn an_export_has_everything_once() {
    prove(async |app| {
        app.first.create_series("a", "a-{seq:6}", json!({"reset": "never"})).await.expect(201);
        let body = json!({"document_ref": "a \"quoted\", one", "metadata": {"line": "two\nlines"}});
        app.first.issue("a", "odd", body).await.expect(201);
        let _ = all((0..5).map(|n| {
            let api = app.first.clone();
            async move { api.issue("a", &format!("k{n}"), json!({"count": 1000})).await.expect(201) }
        }))
        .await;
        let csv = app.first.get("/v1/series/a/numbers?format=csv").await.expect(200);
        assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8; header=present");
        let mut lines = csv.text.lines();
        assert_eq!(lines.next().unwrap(), "number,value,period,part,series,state,document_ref,document_date,issued_at,metadata");
        let first = lines.next().unwrap();
        assert!(first.starts_with("a-000001,1,all,0,a,issued,\"a \"\"quoted\"\", one\","), "{first}");
        assert_eq!(lines.count(), 5_000);
        let jsonl = app.first.get("/v1/series/a/numbers?format=jsonl").await.expect(200);
        let values: Vec<_> =
            jsonl.text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["value"].clone()).collect();
        assert_eq!(values, (1..=5_001).map(Value::from).collect::<Vec<_>>());
        let empty = app.first.get("/v1/series/a/numbers?format=csv&state=voided").await.expect(200);
        assert_eq!(empty.text.lines().count(), 1, "a head and no rows");
    });
}

#[test]
fn every_series_is_asked_for_a_text_and_for_a_document() {
    prove(async |app| {
        // One on each shard, whose texts could be the same: their issuers differ.
        for name in ["a", "b", "c"] {
            let pattern = if name == "c" { "C{seq:4}" } else { "N{seq:4}" };
            app.first.create_series(name, pattern, json!({"reset": "never", "issuer": name})).await.expect(201);
        }
        app.first.issue("a", "k", json!({"document_ref": "order-1"})).await.expect(201);
        app.first.issue("c", "k", json!({"document_ref": "order-1"})).await.expect(201);
        let told = async |query: &str| {
            let found = app.first.get(&format!("/v1/numbers?{query}")).await.expect(200);
            let items = found.body["items"].as_array().unwrap();
            items.iter().map(|i| format!("{} {} {}", i["series"], i["number"], i["state"]).replace('"', "")).collect::<Vec<_>>()
        };
        assert_eq!(told("text=N0001").await, ["a N0001 issued", "b N0001 unused"]);
        assert_eq!(told("text=C0001").await, ["c C0001 issued"]);
        assert_eq!(told("text=Z1").await, [""; 0]);
        assert_eq!(told("text=%E2%82%AC").await, [""; 0]);
        assert_eq!(told("document_ref=order-1").await, ["a N0001 issued", "c C0001 issued"]);
        assert_eq!(told("document_ref=order-2").await, [""; 0]);
        for bad in ["", "?text=a&document_ref=b", "?document_ref=", "?name=x"] {
            let _ = app.first.get(&format!("/v1/numbers{bad}")).await.problem(422, "invalid");
        }
        let other = app.tenant("other").await;
        assert_eq!(other.get("/v1/numbers?text=N0001").await.expect(200).body["items"], json!([]));
    });
}

#[test]
fn c47_what_is_kept_with_a_number_changes_and_the_number_does_not() {
    prove(async |app| {
        app.first.create_series("a", "a-{seq:4}", json!({"reset": "never"})).await.expect(201);
        let first = json!({"document_ref": "order-1", "metadata": {"customer": "Acme"}});
        let issued = app.first.issue("a", "k", first).await.expect(201);
        // The same document with other metadata has its number.
        let again =
            app.first.issue("a", "k2", json!({"document_ref": "order-1", "metadata": {"customer": "Zeta"}})).await.expect(200);
        assert_eq!(again.body, issued.body);
        let path = "/v1/series/a/numbers/a-0001";
        let patch = async |body: Value| app.first.call(reqwest::Method::PATCH, path, None, Some(&body)).await;
        let changed = patch(json!({"metadata": {"customer": "Zeta"}, "reason": "a new name"})).await.expect(200);
        assert_eq!((&changed.body["metadata"], &changed.body["number"]), (&json!({"customer": "Zeta"}), &issued.body["number"]));
        // Erasure: nothing of the document is left but its number, and who erased it.
        let erase = json!({"metadata": null, "document_ref": null, "reason": "asked to be forgotten"});
        let erased = patch(erase.clone()).await.expect(200);
        assert_eq!((&erased.body["metadata"], &erased.body["document_ref"]), (&Value::Null, &Value::Null));
        assert_eq!((&erased.body["number"], &erased.body["state"]), (&json!("a-0001"), &json!("issued")));
        let history = erased.body["history"].as_array().unwrap();
        assert_eq!(history.len(), 3, "{}", erased.text);
        assert_eq!(history[2]["reason"], "metadata erased, document_ref erased: asked to be forgotten");
        assert_eq!(patch(erase).await.expect(200).body, erased.body, "done twice, it is done once");
        assert!(!app.first.get("/v1/series/a/numbers?format=csv").await.expect(200).text.contains("order-1"));
        let audit = app.first.get("/v1/series/a/audit").await.expect(200);
        assert_eq!((&audit.body["complete"], &audit.body["states"]), (&json!(true), &json!({"issued": 1})));
        for bad in [
            json!({"reason": "x"}),
            json!({"metadata": null}),
            json!({"metadata": null, "reason": ""}),
            json!({"document_ref": "other", "reason": "x"}),
            json!({"metadata": 1, "reason": "x"}),
            json!({"metadata": {"n": 9_007_199_254_740_993_u64}, "reason": "x"}),
            json!({"state": "voided", "reason": "x"}),
        ] {
            let _ = patch(bad).await.problem(422, "invalid");
        }
        // By its reference an open number is found again.
        let _ = app.first.post("/v1/series/a/reservations", "k3", json!({"document_ref": "order-2"})).await.expect(201);
        let open = json!({"document_ref": null, "reason": "x"});
        let open = app.first.call(reqwest::Method::PATCH, "/v1/series/a/numbers/a-0002", None, Some(&open)).await;
        assert_eq!(open.problem(409, "wrong-state").body["state"], "reserved");
    });
}
