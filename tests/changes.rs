//! Series that change: versions, conflicts, pause and close, new prefixes, raised values, and the trail of it all.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Api, Reply, prove};

use crate::together::all;

async fn patch(api: &Api, path: &str, version: i64, body: Value) -> Reply {
    let request = api.http.patch(format!("{}{path}", api.base)).bearer_auth(&api.key);
    Reply::of(request.header("If-Match", format!("\"{version}\"")).json(&body)).await
}

async fn series(api: &Api, name: &str, pattern: &str, more: Value) {
    let mut settings = json!({"reset": "never", "max_length": 30});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    api.create_series(name, pattern, settings).await.expect(201);
}

/// The trail, once it has so many events: one is shown when no transaction on the server is running that began before it,
/// and other tests have theirs.
async fn events(api: &Api, count: usize) -> Vec<Value> {
    for _ in 0..500 {
        let page = api.get("/v1/events?limit=1000").await.expect(200);
        let items = page.body["items"].as_array().unwrap();
        if items.len() >= count {
            return items.clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there are fewer than {count} events");
}

#[test]
fn c42_a_new_prefix_leaves_what_was_issued() {
    prove(async |app| {
        series(&app.first, "a", "OLD-{seq:4}", json!({})).await;
        let before = app.first.issue("a", "k", json!({"count": 10})).await.expect(201);
        let changed = patch(&app.first, "/v1/series/a", 1, json!({"pattern": "NEW-{seq:4}"})).await.expect(200);
        assert_eq!((&changed.body["version"], changed.headers["etag"].to_str().unwrap()), (&json!(2), "\"2\""));
        let next = app.first.issue("a", "next", json!({})).await.expect(201);
        assert_eq!((next.value(), &next.body["number"]), (11, &json!("NEW-0011")));
        let replay = app.first.issue("a", "k", json!({"count": 10})).await.expect(201);
        assert_eq!(replay.text, before.text, "byte for byte");
        let old = app.first.get("/v1/series/a/numbers/OLD-0003").await.expect(200);
        assert_eq!((&old.body["state"], &old.body["value"]), (&json!("issued"), &json!(3)));
        // Back again: the same pattern goes on with other values.
        let _ = patch(&app.first, "/v1/series/a", 2, json!({"pattern": "OLD-{seq:4}"})).await.expect(200);
        assert_eq!(app.first.issue("a", "back", json!({})).await.expect(201).body["number"], "OLD-0012");
    });
}

/// What would make a text twice is refused: another series' pattern, or an earlier one of its own.
#[test]
fn a_change_never_makes_a_text_twice() {
    prove(async |app| {
        series(&app.first, "a", "A{yyyy}{mm}{seq:4}", json!({"reset": "yearly"})).await;
        series(&app.first, "b", "B{seq:4}", json!({})).await;
        let other = patch(&app.first, "/v1/series/a", 1, json!({"pattern": "B{seq}", "reset": "never"})).await;
        assert!(other.problem(409, "pattern-overlaps").body["detail"].as_str().unwrap().contains("series b"));
        // Upper and lower case look alike.
        let _ = patch(&app.first, "/v1/series/a", 1, json!({"pattern": "b{seq}", "reset": "never"}))
            .await
            .problem(409, "pattern-overlaps");
        // With no number yet, anything goes.
        let _ = patch(&app.first, "/v1/series/a", 1, json!({"reset": "monthly"})).await.expect(200);
        let _ = patch(&app.first, "/v1/series/a", 2, json!({"reset": "yearly"})).await.expect(200);
        app.first.issue("a", "k", json!({"document_date": "2026-03-01"})).await.expect(201);
        let own = patch(&app.first, "/v1/series/a", 3, json!({"reset": "monthly"})).await;
        assert!(own.problem(409, "pattern-overlaps").body["detail"].as_str().unwrap().contains("earlier"));
        let _ =
            patch(&app.first, "/v1/series/a", 3, json!({"reset": "monthly", "pattern": "A{yyyy}{mm}-{seq:4}"})).await.expect(200);
        let next = app.first.issue("a", "l", json!({"document_date": "2026-03-01"})).await.expect(201);
        assert_eq!((&next.body["number"], &next.body["period"]), (&json!("A202603-0001"), &json!("2026-03")));
    });
}

#[test]
fn c43_the_second_to_save_is_shown_what_came_between() {
    prove(async |app| {
        series(&app.first, "a", "A{seq:4}", json!({})).await;
        let _ = patch(&app.first, "/v1/series/a", 1, json!({"reservation_ttl_seconds": 60})).await.expect(200);
        let late = patch(&app.first, "/v1/series/a", 1, json!({"release": "last_unsent"})).await.problem(412, "version-conflict");
        assert_eq!(
            late.body["conflicts"],
            json!([{"field": "release", "base": "never", "yours": "last_unsent", "theirs": "never"},
                   {"field": "reservation_ttl_seconds", "base": null, "yours": null, "theirs": 60}])
        );
        // Apart from each other, both hold if that is asked for.
        let merged = patch(&app.first, "/v1/series/a?merge=true", 1, json!({"release": "last_unsent"})).await.expect(200);
        assert_eq!((&merged.body["release"], &merged.body["reservation_ttl_seconds"]), (&json!("last_unsent"), &json!(60)));
        assert_eq!(merged.body["version"], 3);
        // A whole series sent back, changed in one place: what is as it was in that version is no change.
        let whole = json!({"reservation_ttl_seconds": null, "release": "never", "max_length": 30, "max_days_ahead": 9});
        let whole = patch(&app.first, "/v1/series/a?merge=true", 1, whole).await.expect(200);
        assert_eq!((&whole.body["reservation_ttl_seconds"], &whole.body["max_days_ahead"]), (&json!(60), &json!(9)));
        // The same field, or one that decides numbers, is never merged.
        let same = json!({"reservation_ttl_seconds": 90});
        let _ = patch(&app.first, "/v1/series/a?merge=true", 1, same).await.problem(412, "version-conflict");
        let decides = json!({"pattern": "A{seq:5}"});
        let _ = patch(&app.first, "/v1/series/a?merge=true", 1, decides.clone()).await.problem(412, "version-conflict");
        let _ = patch(&app.first, "/v1/series/a", 9, decides.clone()).await.problem(412, "version-conflict");
        let without = app.first.call(Method::PATCH, "/v1/series/a", None, Some(&decides)).await;
        let _ = without.problem(428, "precondition-required");
        let kinds: Vec<_> = events(&app.first, 8).await.iter().map(|event| event["kind"].clone()).collect();
        assert_eq!(
            kinds,
            [
                "series.created",
                "series.changed",
                "series.conflict",
                "series.changed",
                "series.changed",
                "series.conflict",
                "series.conflict",
                "series.conflict"
            ]
        );
        let changed = &events(&app.first, 8).await[1];
        assert_eq!(
            (&changed["subject"], &changed["before"]["reservation_ttl_seconds"], &changed["after"]["reservation_ttl_seconds"]),
            (&json!("a"), &Value::Null, &json!(60))
        );
    });
}

/// Many save at once from one version: one is first, and all others are told.
#[test]
fn of_many_who_save_at_once_one_is_first() {
    prove(async |app| {
        series(&app.first, "a", "A{seq:4}", json!({})).await;
        let replies = all((0..16).map(|n| {
            let api = app.first.clone();
            async move { patch(&api, "/v1/series/a", 1, json!({"reservation_ttl_seconds": n + 1})).await.status }
        }))
        .await;
        assert_eq!(replies.iter().filter(|status| **status == 200).count(), 1, "{replies:?}");
        assert!(replies.iter().all(|status| matches!(status, 200 | 412)), "{replies:?}");
        assert_eq!(app.first.get("/v1/series/a").await.expect(200).body["version"], 2);
    });
}

#[test]
fn bad_changes_are_told_what_would_be_right() {
    prove(async |app| {
        series(&app.first, "a", "A{seq:4}", json!({})).await;
        for (body, pointer) in [
            (json!({}), ""),
            (json!({"status": "gone"}), "/status"),
            (json!({"pattern": "A{nope}"}), "/pattern"),
            (json!({"reset": "weekly"}), "/reset"),
            (json!({"max_days_ahead": -1}), "/max_days_ahead"),
            (json!({"reset": "fiscal_year"}), "/fiscal_year"),
            (json!({"fiscal_year": {"starts": "04-01", "label": "end"}}), "/fiscal_year"),
            (json!({"issuer": "other"}), "/issuer"),
            (json!({"series": "b"}), "/series"),
        ] {
            let wrong = patch(&app.first, "/v1/series/a", 1, body.clone()).await.problem(422, "invalid");
            assert_eq!(wrong.body["errors"][0]["pointer"], pointer, "{body}: {}", wrong.text);
        }
        let _ = patch(&app.first, "/v1/series/none", 1, json!({"status": "paused"})).await.problem(404, "not-found");
        for tag in ["1", "W/\"1\"", "*", "\"0\"", "\"one\"", "\"1\", \"2\""] {
            let request = app.first.http.patch(format!("{}/v1/series/a", app.base)).bearer_auth(&app.first.key);
            let _ = Reply::of(request.header("If-Match", tag).json(&json!({"status": "paused"})))
                .await
                .problem(428, "precondition-required");
        }
    });
}

#[test]
fn c48_a_paused_series_gives_nothing_and_a_resumed_one_goes_on() {
    prove(async |app| {
        let other = app.gateway_process().await;
        series(&app.first, "a", "A{seq:6}", json!({})).await;
        app.first.issue("a", "k", json!({})).await.expect(201);
        let (mut version, mut given) = (1, 1);
        for round in 0..6 {
            let issuing = all((0..12).map(|n| {
                let api = if n % 2 == 0 { app.first.clone() } else { app.first.at(&other.base) };
                async move {
                    let mut got = 0;
                    for k in 0..8 {
                        let reply = api.issue("a", &format!("{round}-{n}-{k}"), json!({})).await;
                        match reply.status {
                            201 => got += 1,
                            _ => drop(reply.problem(409, "series-paused")),
                        }
                    }
                    got
                }
            }));
            let pausing = async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                let _ = patch(&app.first, "/v1/series/a", version, json!({"status": "paused"})).await.expect(200);
                // After the answer nothing comes any more, wherever it is asked for.
                let audit = app.first.get("/v1/series/a/audit").await.expect(200);
                for api in [app.first.clone(), app.first.at(&other.base)] {
                    let _ = api.issue("a", &format!("{round}-after"), json!({})).await.problem(409, "series-paused");
                    let unbegun = json!({"document_date": "2031-01-01"});
                    let _ = api.issue("a", &format!("{round}-unbegun"), unbegun).await.problem(409, "series-paused");
                }
                audit.body["last"].as_i64().unwrap()
            };
            let (got, last) = tokio::join!(issuing, pausing);
            given += got.iter().sum::<i64>();
            assert_eq!(given, last, "round {round}: what was given after the pause was answered");
            version += 1;
            let _ = patch(&app.first, "/v1/series/a", version, json!({"status": "active"})).await.expect(200);
            version += 1;
            let next = app.first.at(&other.base).issue("a", &format!("{round}-resumed"), json!({})).await.expect(201);
            given += 1;
            assert_eq!(next.value(), given);
        }
        other.stop().await;
    });
}

/// On a gateway that knew the series before it was paused, in a period that nobody has begun.
#[test]
fn a_change_holds_at_once_for_a_period_that_has_not_begun() {
    prove(async |app| {
        let other = app.gateway_process().await;
        let there = app.first.at(&other.base);
        app.first.create_series("a", "{yyyy}-{seq:4}", json!({})).await.expect(201);
        there.issue("a", "k", json!({"document_date": "2025-01-01"})).await.expect(201);
        let _ = patch(&app.first, "/v1/series/a", 1, json!({"status": "paused"})).await.expect(200);
        there.issue("a", "l", json!({"document_date": "2026-01-01"})).await.problem(409, "series-paused");
        let _ = patch(&app.first, "/v1/series/a", 2, json!({"status": "active"})).await.expect(200);
        there.issue("a", "m", json!({"document_date": "2027-01-01"})).await.expect(201);
        let _ = patch(&app.first, "/v1/series/a", 3, json!({"status": "closed"})).await.expect(200);
        there.issue("a", "n", json!({"document_date": "2028-01-01"})).await.problem(409, "series-closed");
        there.issue("a", "o", json!({"document_date": "2025-01-01"})).await.problem(409, "series-closed");
        let _ = patch(&app.first, "/v1/series/a", 4, json!({"status": "active"})).await.problem(409, "series-closed");
        other.stop().await;
    });
}

#[test]
fn c44_the_next_value_only_goes_up_and_says_why() {
    prove(async |app| {
        series(&app.first, "a", "A{seq:4}", json!({"gapless": false})).await;
        series(&app.first, "b", "B{seq:4}", json!({})).await;
        for name in ["a", "b"] {
            app.first.issue(name, "k", json!({"count": 5})).await.expect(201);
        }
        let raise = async |name: &str, value: i64| {
            let body = json!({"value": value, "reason": "a new book"});
            app.first.post(&format!("/v1/series/{name}/periods/all/next"), "unused", body).await
        };
        for name in ["a", "b"] {
            let used = raise(name, 3).await.problem(409, "next-used");
            assert!(used.body["detail"].as_str().unwrap().contains("0003"), "it names the first that is met: {}", used.text);
        }
        let _ = raise("b", 100).await.problem(422, "invalid");
        let _ = raise("a", 10_000).await.problem(422, "invalid");
        let _ = raise("a", -1).await.problem(422, "invalid");
        let raised = raise("a", 100).await.expect(200);
        assert_eq!(raised.body["next"], 100);
        assert_eq!(raise("a", 100).await.expect(200).body, raised.body, "done twice, it is done once");
        let waiting = app.first.get("/v1/series/a/audit").await.expect(200);
        assert_eq!((&waiting.body["complete"], &waiting.body["next"]), (&json!(true), &json!(100)));
        let next = app.first.issue("a", "l", json!({"count": 2})).await.expect(201);
        assert_eq!(next.body["numbers"][1]["number"], "A0101");
        let audit = app.first.get("/v1/series/a/audit").await.expect(200);
        assert_eq!((&audit.body["complete"], &audit.body["gaps"]), (&json!(true), &json!([])));
        let runs: Vec<_> =
            audit.body["runs"].as_array().unwrap().iter().map(|run| (run["first"].clone(), run["why"].clone())).collect();
        assert_eq!(runs, [(json!(1), json!("start")), (json!(100), json!("raised"))]);
        let where_is_it = app.first.get("/v1/series/a/numbers/A0050").await.expect(200);
        assert_eq!(where_is_it.body["state"], "unused");
        let raised: Vec<_> = events(&app.first, 3).await.into_iter().filter(|event| event["kind"] == "period.raised").collect();
        assert_eq!((raised.len(), &raised[0]["after"]["reason"]), (1, &json!("a new book")));
    });
}

/// A change to what is so already is none; null is no value where a field must have one; a paused series can be looked at
/// as if it were resumed; a period that has not begun has a next value.
#[test]
fn small_things_are_right_too() {
    prove(async |app| {
        series(&app.first, "a", "A{seq:4}", json!({"gapless": false})).await;
        let same = patch(&app.first, "/v1/series/a", 1, json!({"pattern": "A{seq:4}"})).await.expect(200);
        assert_eq!(same.body["version"], 1);
        let null = patch(&app.first, "/v1/series/a", 1, json!({"first": null, "max_length": 31})).await.problem(422, "invalid");
        assert_eq!(null.body["errors"][0]["pointer"], "/first", "{}", null.text);
        let _ = patch(&app.first, "/v1/series/a", 1, json!({"release": "last_unsent"})).await.expect(200);
        let agreed = patch(&app.first, "/v1/series/a?merge=true", 1, json!({"release": "last_unsent"})).await.expect(200);
        assert_eq!(agreed.body["version"], 2, "others made it so already");
        let begun = json!({"value": 1, "reason": "the same"});
        let begun = app.first.post("/v1/series/a/periods/all/next", "unused", begun).await.expect(200);
        assert_eq!(begun.body["next"], 1);
        let _ = app.first.post("/v1/series/a/periods/all/next", "unused", json!({"value": 5, "reason": "r"})).await.expect(200);
        let down = app.first.post("/v1/series/a/periods/all/next", "unused", json!({"value": 3, "reason": "r"})).await;
        let down = down.problem(409, "next-used");
        assert!(down.text.contains("value 3 of period all is behind already; the next value"), "{}", down.text);
        let _ = app.first.issue("a", "k", json!({})).await.expect(201);
        let _ = patch(&app.first, "/v1/series/a", 2, json!({"status": "paused"})).await.expect(200);
        let asked = json!({"proposed": {"status": "active"}});
        let seen = app.first.post("/v1/series/a/preview", "unused", asked).await.expect(200);
        assert_eq!((&seen.body["numbers"][0]["number"], seen.body.get("refusals")), (&json!("A0006"), None), "{}", seen.text);
    });
}

#[test]
fn a_preview_of_a_proposal_shows_what_it_would_meet() {
    prove(async |app| {
        series(&app.first, "a", "A{seq:4}", json!({})).await;
        series(&app.first, "b", "B{seq:4}", json!({})).await;
        app.first.issue("a", "k", json!({"count": 3})).await.expect(201);
        let preview = async |proposed: Value| {
            let body = json!({"document_date": "2026-05-05", "count": 2, "proposed": proposed});
            app.first.post("/v1/series/a/preview", "unused", body).await
        };
        let good = preview(json!({"pattern": "N{yyyy}-{seq:5}"})).await.expect(200);
        assert_eq!(good.body["numbers"][0], json!({"number": "N2026-00004", "value": 4}));
        assert!(good.body["warnings"][0].as_str().unwrap().contains("reset never"), "{}", good.text);
        let meets = preview(json!({"pattern": "B{seq:4}"})).await.expect(200);
        assert_eq!(meets.body["refusals"][0]["slug"], "pattern-overlaps");
        let own = preview(json!({"pattern": "A{seq}"})).await.expect(200);
        assert!(own.body["refusals"][0]["detail"].as_str().unwrap().contains("earlier settings"), "{}", own.text);
        let paused = preview(json!({"status": "paused"})).await.expect(200);
        assert_eq!((&paused.body["refusals"][0]["slug"], &paused.body["numbers"]), (&json!("series-paused"), &json!([])));
        let _ = preview(json!({"pattern": "{seq"})).await.problem(422, "invalid");
        assert_eq!(app.first.issue("a", "l", json!({})).await.expect(201).body["number"], "A0004", "nothing was used");
        assert_eq!(app.first.get("/v1/series/a").await.expect(200).body["version"], 1);
    });
}

#[test]
fn the_trail_is_read_once_and_in_order() {
    prove(async |app| {
        series(&app.first, "a", "A{seq:4}", json!({})).await;
        series(&app.first, "b", "B{seq:4}", json!({})).await;
        for (version, status) in [(1, "paused"), (2, "active"), (3, "paused")] {
            for name in ["a", "b"] {
                let _ = patch(&app.first, &format!("/v1/series/{name}"), version, json!({"status": status})).await.expect(200);
            }
        }
        let _ = app.first.post("/v1/series/a/periods/all/close", "unused", json!({})).await.expect(200);
        let made = app.first.post("/v1/keys", "key", json!({"name": "x", "scopes": ["series:read"]})).await.expect(201);
        let key = made.body["id"].as_str().unwrap().to_owned();
        let _ = app.first.call(Method::DELETE, &format!("/v1/keys/{key}"), None, None).await.expect(204);
        assert_eq!(events(&app.first, 11).await.len(), 11);
        let (mut seen, mut query) = (Vec::new(), "limit=3".to_owned());
        for _ in 0..20 {
            let page = app.first.get(&format!("/v1/events?{query}")).await.expect(200);
            let items = page.body["items"].as_array().unwrap();
            seen.extend(items.iter().map(|event| format!("{} {}", event["kind"], event["subject"]).replace('"', "")));
            let Some(cursor) = page.body["next_cursor"].as_str() else { break };
            query = format!("limit=3&cursor={cursor}");
            if items.is_empty() && seen.len() >= 11 {
                break;
            }
        }
        let mut kinds = seen.clone();
        kinds.sort();
        assert_eq!(seen.len(), 11, "{seen:?}");
        assert_eq!(kinds.iter().filter(|kind| kind.starts_with("series.changed")).count(), 6);
        assert!(seen.contains(&"period.closed a/all".to_owned()) && seen.contains(&format!("key.revoked {key}")));
        assert!(!app.first.get("/v1/events").await.text.contains("srt_"), "no secret in the trail");
        for cursor in ["x", "ZXZlbnRzOng", "ZXZlbnRzOkA9MS54"] {
            let _ = app.first.get(&format!("/v1/events?cursor={cursor}")).await.problem(400, "cursor-invalid");
        }
        let other = app.tenant("other").await;
        assert_eq!(other.get("/v1/events").await.expect(200).body["items"], json!([]));
    });
}

#[test]
fn a_tenant_changes_under_its_version() {
    prove(async |app| {
        let path = format!("/v1/tenants/{}", app.first_id);
        let read = app.operator.get(&path).await.expect(200);
        assert_eq!((read.headers["etag"].to_str().unwrap(), &read.body["version"]), ("\"1\"", &json!(1)));
        let renamed = patch(&app.operator, &path, 1, json!({"name": "renamed"})).await.expect(200);
        assert_eq!((&renamed.body["name"], &renamed.body["version"]), (&json!("renamed"), &json!(2)));
        let late = patch(&app.operator, &path, 1, json!({"name": "other"})).await.problem(412, "version-conflict");
        assert_eq!(
            (&late.body["conflicts"][0]["yours"], &late.body["conflicts"][0]["theirs"]),
            (&json!("other"), &json!("renamed"))
        );
        let _ = patch(&app.operator, &path, 2, json!({"status": "gone"})).await.problem(422, "invalid");
        let _ = patch(&app.operator, &path, 2, json!({})).await.problem(422, "invalid");
        let _ = patch(&app.operator, &path, 2, json!({"status": "suspended"})).await.expect(200);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let _ = app.first.get("/v1/series").await.problem(403, "tenant-suspended");
        let _ = patch(&app.operator, &path, 3, json!({"status": "active"})).await.expect(200);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let kinds: Vec<_> = events(&app.first, 4).await.iter().map(|event| event["kind"].clone()).collect();
        assert_eq!(kinds, ["tenant.changed", "tenant.conflict", "tenant.changed", "tenant.changed"]);
    });
}
