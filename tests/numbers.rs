//! Issuing.

use serde_json::{Value, json};
use sqlx::Row;
use testkit::{Setup, TestClock, prove, prove_with};

use crate::together::{all, contiguous};

fn never() -> Value {
    json!({"reset": "never"})
}

#[test]
fn c01_200_parallel_issues_are_distinct_and_contiguous() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        let replies = all((0..200).map(|n| {
            let api = app.first.clone();
            async move { api.issue("invoices", &format!("k{n}"), json!({})).await.expect(201) }
        }));
        contiguous(replies.await.iter().map(testkit::Reply::value).collect(), 1);
    });
}

#[test]
fn c02_the_same_date_and_instant_give_distinct_numbers() {
    let setup = Setup { clock: Some(TestClock::at("2026-12-01T09:30:00.123456Z")), ..Setup::default() };
    prove_with(setup, async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        let replies = all((0..20).map(|n| {
            let api = app.first.clone();
            async move { api.issue("invoices", &format!("k{n}"), json!({"document_date": "2026-12-01"})).await.expect(201) }
        }))
        .await;
        assert!(replies.iter().all(|reply| reply.body["issued_at"] == "2026-12-01T09:30:00.123456Z"));
        contiguous(replies.iter().map(testkit::Reply::value).collect(), 1);
    });
}

#[test]
fn c03_two_counts_at_once_are_each_contiguous() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        let replies = all((0..2).map(|n| {
            let api = app.first.clone();
            async move { api.issue("invoices", &format!("k{n}"), json!({"count": 100})).await.expect(201) }
        }))
        .await;
        for reply in &replies {
            let values = reply.values();
            contiguous(values.clone(), values[0]);
        }
        contiguous(replies.iter().flat_map(testkit::Reply::values).collect(), 1);
    });
}

#[test]
fn c06_the_schema_refuses_a_duplicate_and_a_gap_and_a_deletion() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:4}", never()).await.expect(201);
        app.first.issue("invoices", "k", json!({"count": 2})).await.expect(201);
        let mut db = app.superuser(&app.shard_of("invoices").await).await;
        let copy = |value: &str, prev: &str, text: &str| {
            format!(
                "insert into number (tenant_id, series, part, period, value, prev, number, state, document_date, config_version,
                                     at, principal, operation_id)
                 select tenant_id, series, part, period, {value}, {prev}, {text}, state, document_date, config_version,
                        at, principal, operation_id from number where value = 1"
            )
        };
        // Each by the guard of that name, even for a superuser.
        for (sql, guard) in [
            (copy("2", "1", "'A9999'"), "number_pkey"),
            (copy("3", "2", "'A0001'"), "number_text"),
            (copy("4", "3", "'A0004'"), "number_follows"),
            (copy("4", "null", "'A0004'"), "number_head"),
            (copy("4", "2", "'A0004'"), "number_check"),
            ("delete from number where value = 2".to_owned(), "append-only"),
            ("update history set reason = 'x'".to_owned(), "append-only"),
            ("delete from run".to_owned(), "append-only"),
            ("truncate number cascade".to_owned(), "append-only"),
        ] {
            let refused = sqlx::query(sqlx::AssertSqlSafe(sql.clone())).execute(&mut db).await.unwrap_err().to_string();
            assert!(refused.contains(guard), "{sql}: {refused}");
        }
    });
}

#[test]
fn c07_one_document_with_two_keys_has_one_number() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        for round in 0..20 {
            let replies = all((0..2).map(|n| {
                let api = app.first.clone();
                let body = json!({"document_ref": format!("order-{round}"), "document_date": "2026-03-01"});
                async move { api.issue("invoices", &format!("k{round}-{n}"), body).await }
            }))
            .await;
            let mut statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
            statuses.sort_unstable();
            assert_eq!(statuses, [200, 201]);
            assert_eq!(replies[0].body, replies[1].body);
        }
        assert_eq!(app.first.issue("invoices", "last", json!({"document_date": "2026-03-01"})).await.value(), 21);
    });
}

#[test]
fn one_document_under_two_dates_at_once_has_one_number() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        for round in 0..20 {
            // Two periods, so two counters: only the unique index on the reference stands between them.
            let replies = all(["2025-12-31", "2026-01-01"].map(|date| {
                let api = app.first.clone();
                let body = json!({"document_ref": format!("order-{round}"), "document_date": date});
                async move { api.issue("invoices", &format!("k{round}-{date}"), body).await }
            }))
            .await;
            let (won, lost): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 201);
            let lost = lost.into_iter().next().unwrap().problem(409, "document-conflict");
            assert!(lost.body["detail"].as_str().unwrap().contains(won[0].body["number"].as_str().unwrap()));
        }
    });
}

#[test]
fn c14_a_thousand_previews_use_nothing() {
    prove(async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        let path = "/v1/series/invoices/preview";
        for _ in 0..250 {
            let replies = all((0..4).map(|_| {
                let api = app.first.clone();
                async move { api.post(path, "unused", json!({"document_date": "2026-05-05"})).await.expect(200) }
            }));
            for reply in replies.await {
                assert_eq!(reply.body["numbers"], json!([{"number": "ABC2026000000001", "value": 1}]));
            }
        }
        let issued = app.first.issue("invoices", "k", json!({"document_date": "2026-05-05"})).await.expect(201);
        assert_eq!(issued.body["number"], "ABC2026000000001");
        let next = app.first.post(path, "unused", json!({"document_date": "2026-05-05", "count": 2})).await.expect(200);
        assert_eq!(next.body["numbers"][1], json!({"number": "ABC2026000000003", "value": 3}));
    });
}

#[test]
fn c38_values_are_64_bit_and_end_where_json_does() {
    prove(async |app| {
        let more = json!({"reset": "never", "first": 2_147_483_647_i64, "overflow": "widen"});
        app.first.create_series("large", "L{seq}", more).await.expect(201);
        for (key, number) in [("a", "L2147483647"), ("b", "L2147483648")] {
            assert_eq!(app.first.issue("large", key, json!({})).await.expect(201).body["number"], number);
        }
        let more = json!({"reset": "never", "first": 9_007_199_254_740_991_i64, "max_length": 64});
        app.first.create_series("largest", "M{seq}", more).await.expect(201);
        app.first.issue("largest", "two", json!({"count": 2})).await.problem(409, "series-exhausted");
        assert_eq!(app.first.issue("largest", "one", json!({})).await.expect(201).value(), 9_007_199_254_740_991);
        app.first.issue("largest", "more", json!({})).await.problem(409, "series-exhausted");
        let beyond = json!({"reset": "never", "first": 9_007_199_254_740_992_i64});
        app.first.create_series("beyond", "B{seq}", beyond).await.problem(422, "invalid");
    });
}

#[test]
fn c41_a_text_keeps_its_zeros_and_a_value_is_an_integer() {
    prove(async |app| {
        app.first.create_series("zeros", "{seq:6}", never()).await.expect(201);
        let issued = app.first.issue("zeros", "k", json!({"document_ref": "r"})).await.expect(201);
        assert!(issued.text.contains(r#""number":"000001""#) && issued.text.contains(r#""value":1,"#), "{}", issued.text);
        let read = app.first.get("/v1/series/zeros/numbers/000001").await.expect(200);
        assert_eq!((&read.body["number"], &read.body["value"]), (&json!("000001"), &json!(1)));
    });
}

#[test]
fn an_issued_number_has_every_member_of_the_contract() {
    let setup = Setup { clock: Some(TestClock::at("2026-12-01T09:30:00.123456789Z")), ..Setup::default() };
    prove_with(setup, async |app| {
        app.first.create_series("invoices", "ABC{yyyy}{seq:9}", json!({})).await.expect(201);
        let body = json!({"document_ref": "order-10248", "document_date": "2026-12-01"});
        let issued = app.first.issue("invoices", "k", body).await.expect(201);
        let expected = json!({"number": "ABC2026000000001", "value": 1, "period": "2026", "part": 0, "series": "invoices",
            "state": "issued", "document_ref": "order-10248", "document_date": "2026-12-01",
            "issued_at": "2026-12-01T09:30:00.123456Z"});
        assert_eq!(issued.body, expected);
        assert_eq!(issued.headers["location"], "/v1/series/invoices/numbers/ABC2026000000001");
    });
}

#[test]
fn documents_that_have_numbers_keep_them_among_new_ones() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:4}", never()).await.expect(201);
        let item = |reference: &str| json!({"document_ref": reference, "document_date": "2026-01-05"});
        app.first.issue("invoices", "one", item("b")).await.expect(201);
        let mixed = app.first.issue("invoices", "mixed", json!({"items": [item("a"), item("b"), item("c")]})).await.expect(201);
        assert_eq!(mixed.values(), [2, 1, 3]);
        let again = app.first.issue("invoices", "mixed", json!({"items": [item("a"), item("b"), item("c")]})).await.expect(201);
        assert!(again.replayed());
        assert_eq!(again.text, mixed.text);
        let known = app.first.issue("invoices", "known", json!({"items": [item("c"), item("b")]})).await.expect(200);
        assert_eq!(known.values(), [3, 1]);
        let undated = app.first.issue("invoices", "undated", json!({"document_ref": "b"})).await.expect(200);
        assert_eq!(undated.body["number"], "A0001");
        assert_eq!(app.first.issue("invoices", "next", json!({})).await.value(), 4);
    });
}

#[test]
fn metadata_is_kept_and_read_back() {
    prove(async |app| {
        app.first.create_series("invoices", "A{seq:4}", never()).await.expect(201);
        let metadata = json!({"customer": "Ümit", "lines": [1, 2.5, null], "big": 12_345_678_901_i64});
        app.first.issue("invoices", "k", json!({"metadata": metadata})).await.expect(201);
        assert_eq!(app.first.get("/v1/series/invoices/numbers/A0001").await.expect(200).body["metadata"], metadata);
    });
}

#[test]
fn a_number_is_explained_whether_it_exists_or_not() {
    prove(async |app| {
        app.first.create_series("invoices", "INV/{yyyy}/{seq:4}", json!({"first": 10})).await.expect(201);
        let body = json!({"document_ref": "r", "document_date": "2026-06-01"});
        let request = app.first.http.post(format!("{}/v1/series/invoices/numbers", app.base)).bearer_auth(&app.first.key);
        let request = request.header("Idempotency-Key", "k").header("Operation-Id", "my-call-1").json(&body);
        let issued = testkit::Reply::of(request).await.expect(201);
        assert_eq!(issued.headers["operation-id"], "my-call-1");
        assert_eq!(issued.headers["location"], "/v1/series/invoices/numbers/INV%2F2026%2F0010");
        let read = app.first.get("/v1/series/invoices/numbers/INV%2F2026%2F0010").await.expect(200);
        let first = &read.body["history"][0];
        assert_eq!((&first["to"], &first["operation_id"]), (&json!("issued"), &json!("my-call-1")));
        assert_eq!(read.body["history"].as_array().unwrap().len(), 1);
        for (text, why) in [
            ("INV%2F2026%2F0011", "not reached yet: the last value of period 2026 is 10"),
            ("INV%2F2026%2F0009", "before the start"),
            ("INV%2F2025%2F0010", "no number of period 2025"),
        ] {
            let unused = app.first.get(&format!("/v1/series/invoices/numbers/{text}")).await.expect(200);
            assert_eq!(unused.body["state"], "unused");
            assert!(unused.body["history"][0]["reason"].as_str().unwrap().contains(why), "{}", unused.text);
        }
        for text in ["INV%2F2026%2F11", "XYZ", "INV%2F2026%2F00%30%00", "%FF"] {
            app.first.get(&format!("/v1/series/invoices/numbers/{text}")).await.problem(404, "not-found");
        }
    });
}

#[test]
fn a_series_may_begin_anywhere_under_the_same_guards() {
    prove(async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:6}", json!({})).await.expect(201);
        // What an import of "the last used was 15421" writes: a counter and a run that says who and why.
        let mut db = app.superuser(&app.shard_of("invoices").await).await;
        sqlx::raw_sql(
            "insert into counter (tenant_id, series, part, period, last, config_version, epoch)
               select tenant_id, series, 0, '2026', 15421, version, epoch from series;
             insert into run (tenant_id, series, part, period, first, why, principal, at)
               select tenant_id, series, 0, '2026', 15422, 'takeover', 'test', now() from series",
        )
        .execute(&mut db)
        .await
        .unwrap();
        let issue = async |key, date| app.first.issue("invoices", key, json!({"document_date": date})).await.expect(201).value();
        assert_eq!(issue("a", "2026-05-01").await, 15_422);
        assert_eq!(issue("b", "2026-05-01").await, 15_423);
        assert_eq!(issue("c", "2027-05-01").await, 1, "the takeover is of one period");
        let head: i64 = sqlx::query("select head from number where value = 15422").fetch_one(&mut db).await.unwrap().get(0);
        assert_eq!(head, 15_422);
        let audit = app.first.get("/v1/series/invoices/audit?period=2026").await.expect(200);
        assert_eq!((&audit.body["first"], &audit.body["complete"]), (&json!(15422), &json!(true)));
        assert_eq!(audit.body["runs"][0]["why"], "takeover");
    });
}

/// A year of two digits can't say its century, so a slip like 1926 would take this year's texts for good.
#[test]
fn a_date_that_the_pattern_can_not_tell_apart_is_refused() {
    prove(async |app| {
        app.first.create_series("short", "Y{yy}-{seq:3}", json!({})).await.expect(201);
        for year in ["1926", "2126"] {
            let body = json!({"document_date": format!("{year}-05-05")});
            let refused = app.first.issue("short", &format!("k{year}"), body).await.problem(422, "invalid");
            assert_eq!(refused.body["errors"][0]["pointer"], "/document_date", "{}", refused.text);
            assert!(refused.body["detail"].as_str().unwrap().contains("{yyyy}"), "{}", refused.text);
            let body = json!({"document_date": format!("{year}-05-05"), "count": 1});
            let path = "/v1/series/short/preview";
            app.first.call(reqwest::Method::POST, path, None, Some(&body)).await.problem(422, "invalid");
        }
        let items = json!({"items": [{"document_date": "2026-05-05"}, {"document_date": "1926-05-05"}]});
        let refused = app.first.issue("short", "items", items).await.problem(422, "invalid");
        assert_eq!(refused.body["errors"][0]["pointer"], "/items/1/document_date", "{}", refused.text);
        let issued = app.first.issue("short", "k", json!({"document_date": "2026-05-05"})).await.expect(201);
        assert_eq!(issued.body["number"], "Y26-001");
    });
}
