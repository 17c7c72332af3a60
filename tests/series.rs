//! Series.

use serde_json::json;
use testkit::{Setup, TestClock, prove, prove_with};

use crate::together::all;

#[test]
fn c05_one_code_is_created_once() {
    prove(async |app| {
        let replies = all((0..20).map(|n| {
            let api = app.first.clone();
            let body = json!({"series": "invoices", "pattern": "ABC{yyyy}{seq:9}"});
            async move { api.post("/v1/series", &format!("k{n}"), body).await }
        }))
        .await;
        let (made, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 201);
        assert_eq!((made.len(), refused.len()), (1, 19));
        for reply in refused {
            reply.problem(409, "series-exists");
        }
        assert_eq!(app.first.issue("invoices", "k", json!({})).await.expect(201).value(), 1);
    });
}

#[test]
fn c34_a_date_is_missing_or_right() {
    let setup = Setup { clock: Some(TestClock::at("2026-12-31T21:30:00Z")), ..Setup::default() };
    prove_with(setup, async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:6}", json!({})).await.expect(201);
        for date in ["0000-00-00", "20261-01-01", "2026-02-30", "2026-2-1", "20260201", "yesterday", "", "2026-01-01T00:00:00Z"] {
            let reply = app.first.issue("invoices", "k", json!({"document_date": date})).await.problem(422, "invalid");
            assert_eq!(reply.body["errors"][0]["pointer"], "/document_date");
        }
        for not_text in [json!(20_260_101), json!(true), json!(["2026-01-01"])] {
            app.first.issue("invoices", "k", json!({"document_date": not_text})).await.problem(422, "invalid");
        }
        // It is half past midnight of New Year in Istanbul.
        let issued = app.first.issue("invoices", "k", json!({})).await.expect(201);
        assert_eq!((&issued.body["document_date"], &issued.body["period"]), (&json!("2027-01-01"), &json!("2027")));
        assert_eq!(issued.body["number"], "A2027000001");
        let leap = app.first.issue("invoices", "leap", json!({"document_date": "2024-02-29"})).await.expect(201);
        assert_eq!(leap.body["document_date"], "2024-02-29");
    });
}

#[test]
fn every_field_is_present_with_its_default() {
    prove(async |app| {
        let body = json!({"series": "invoices", "pattern": "ABC{yyyy}{seq:9}"});
        let made = app.first.post("/v1/series", "k", body).await.expect(201);
        let expected = json!({"series": "invoices", "issuer": "default", "pattern": "ABC{yyyy}{seq:9}", "reset": "yearly",
            "fiscal_year": null, "time_zone": "Europe/Istanbul", "first": 1, "gapless": true, "overflow": "refuse",
            "max_length": 16, "chronology": "none", "max_days_ahead": null, "release": "never",
            "reservation_ttl_seconds": null, "parts": 1, "authorisations": [], "rule_pack": null, "integrator": null,
            "status": "active", "version": 1});
        assert_eq!(made.body, expected);
        assert_eq!(
            (&made.headers["etag"], &made.headers["location"]),
            (&"\"1\"".parse().unwrap(), &"/v1/series/invoices".parse().unwrap())
        );
        let read = app.first.get("/v1/series/invoices").await.expect(200);
        assert_eq!((read.body, &read.headers["etag"]), (expected, &made.headers["etag"]));
    });
}

#[test]
fn what_can_not_work_is_refused_with_its_place() {
    prove(async |app| {
        for (more, pointer) in [
            (json!({"series": "No"}), "/series"),
            (json!({"pattern": "no sequence"}), "/pattern"),
            (json!({"pattern": "{seq:4}"}), "/pattern"),
            (json!({"pattern": "АВС{yyyy}{seq}"}), "/pattern"),
            (json!({"reset": "weekly"}), "/reset"),
            (json!({"time_zone": "Europe/Atlantis"}), "/time_zone"),
            (json!({"first": -1}), "/first"),
            (json!({"first": 1.5}), "/first"),
            (json!({"max_length": 65}), "/max_length"),
            (json!({"parts": 2}), "/parts"),
            (json!({"rule_pack": "fr"}), "/rule_pack"),
            (json!({"colour": "red"}), "/colour"),
        ] {
            let mut body = json!({"series": "invoices", "pattern": "A{yyyy}{seq:4}"});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let reply = app.first.post("/v1/series", "k", body).await.problem(422, "invalid");
            assert_eq!(reply.body["errors"][0]["pointer"], pointer, "{}", reply.text);
        }
        app.first.create_series("invoices", "A{yyyy}{seq:4}", json!({})).await.expect(201);
    });
}

#[test]
fn texts_of_one_issuer_never_collide() {
    prove(async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:4}", json!({})).await.expect(201);
        let refused =
            app.first.create_series("copies", "A{seq:8}", json!({"reset": "never"})).await.problem(409, "pattern-overlaps");
        assert!(refused.body["detail"].as_str().unwrap().contains("series invoices"));
        app.first.create_series("copies", "A{seq:8}", json!({"reset": "never", "issuer": "second"})).await.expect(201);
        // Two at once that meet only each other.
        for round in 0..10 {
            let replies = all(["x", "y"].map(|name| {
                let api = app.first.clone();
                let pattern = format!("R{round}-{{seq:3}}");
                async move { api.create_series(&format!("{name}{round}"), &pattern, json!({"reset": "never"})).await }
            }))
            .await;
            let mut statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
            statuses.sort_unstable();
            assert_eq!(statuses, [201, 409]);
        }
    });
}

#[test]
fn monthly_and_daily_series_restart_when_they_should() {
    prove(async |app| {
        app.first.create_series("monthly", "M{yyyy}{mm}-{seq:3}", json!({"reset": "monthly"})).await.expect(201);
        app.first.create_series("daily", "D{yy}{mm}{dd}-{seq}", json!({"reset": "daily"})).await.expect(201);
        for (n, (date, month, day)) in [
            ("2026-01-30", "M202601-001", "D260130-1"),
            ("2026-01-31", "M202601-002", "D260131-1"),
            ("2026-02-01", "M202602-001", "D260201-1"),
            ("2026-01-31", "M202601-003", "D260131-2"),
        ]
        .into_iter()
        .enumerate()
        {
            for (series, text) in [("monthly", month), ("daily", day)] {
                let issued = app.first.issue(series, &format!("k{n}"), json!({"document_date": date})).await.expect(201);
                assert_eq!(issued.body["number"], text);
            }
        }
    });
}

#[test]
fn series_are_listed_in_pages_and_spread_over_both_shards() {
    prove(async |app| {
        for n in 0..7 {
            app.first.create_series(&format!("s{n}"), &format!("S{n}-{{seq:3}}"), json!({"reset": "never"})).await.expect(201);
        }
        let mut names = Vec::new();
        let mut path = "/v1/series?limit=3".to_owned();
        loop {
            let page = app.first.get(&path).await.expect(200);
            names.extend(
                page.body["items"].as_array().unwrap().iter().map(|series| series["series"].as_str().unwrap().to_owned()),
            );
            let Some(cursor) = page.body["next_cursor"].as_str() else { break };
            path = format!("/v1/series?limit=3&cursor={cursor}");
        }
        assert_eq!(names, (0..7).map(|n| format!("s{n}")).collect::<Vec<_>>());
        let mut shards = Vec::new();
        for n in 0..2 {
            shards.push(app.shard_of(&format!("s{n}")).await);
        }
        shards.sort();
        assert_eq!(shards, ["shard_1", "shard_2"]);
        app.first.get("/v1/series?cursor=nonsense").await.problem(400, "cursor-invalid");
        app.first.get("/v1/series?limit=0").await.problem(422, "invalid");
        app.first.get("/v1/series?colour=red").await.problem(422, "invalid");
    });
}

#[test]
fn a_series_whose_making_was_cut_between_two_databases_is_whole() {
    prove(async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:4}", json!({})).await.expect(201);
        let shard = app.shard_of("invoices").await;
        let mut db = app.superuser(&shard).await;
        // As if the process had died after the directory's commit.
        let gone = "set session_replication_role = replica; delete from series_version; delete from series";
        sqlx::raw_sql(gone).execute(&mut db).await.unwrap();
        let other = app.gateway_process().await;
        let api = app.first.at(&other.base);
        assert_eq!(api.issue("invoices", "k", json!({})).await.expect(201).value(), 1);
        assert!(api.create_series("invoices", "A{yyyy}{seq:4}", json!({})).await.expect(201).replayed());
        assert_eq!(other.stop().await, Some(0));
    });
}
