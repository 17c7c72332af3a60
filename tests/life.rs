//! What becomes of a number after it was taken.

use serde_json::{Value, json};
use testkit::{Api, Reply, prove};

use crate::together::all;

async fn series(api: &Api, name: &str) {
    api.create_series(name, &format!("{name}-{{seq:4}}"), json!({"reset": "never"})).await.expect(201);
}

async fn reserve(api: &Api, key: &str, reference: &str) -> Reply {
    api.post("/v1/series/a/reservations", key, json!({"document_ref": reference})).await
}

async fn step(api: &Api, number: &str, verb: &str, body: Value) -> Reply {
    api.post(&format!("/v1/series/a/numbers/{number}/{verb}"), "unused", body).await
}

/// The states that a number went through.
async fn walk(api: &Api, number: &str) -> Vec<String> {
    let explained = api.get(&format!("/v1/series/a/numbers/{number}")).await.expect(200);
    let history = explained.body["history"].as_array().unwrap();
    let first = history.iter().map(|entry| entry["to"].as_str().unwrap().to_owned());
    let states: Vec<String> = first.collect();
    for (entry, before) in history.iter().skip(1).zip(&states) {
        assert_eq!(entry["from"], **before, "each step begins where the last one ended");
    }
    assert_eq!(explained.body["state"], *states.last().unwrap());
    states
}

#[test]
fn c12_a_reservation_whose_caller_died_is_there_for_the_document() {
    prove(async |app| {
        series(&app.first, "a").await;
        let reserved = reserve(&app.first, "k", "order-1").await.expect(201);
        assert_eq!((&reserved.body["state"], &reserved.body["issued_at"]), (&json!("reserved"), &Value::Null));
        let again = reserve(&app.first, "another", "order-1").await.expect(200);
        assert_eq!(again.body, reserved.body, "the same document, the same number");
        let replay = reserve(&app.first, "k", "order-1").await.expect(201);
        assert_eq!((&replay.body, replay.replayed()), (&reserved.body, true));
        let audit = app.first.get("/v1/series/a/audit").await.expect(200);
        assert_eq!(audit.body["states"], json!({"reserved": 1}));
        let _ = reserve(&app.first, "third", "order-2").await.expect(201);
        let issued = app.first.issue("a", "issue", json!({"document_ref": "order-1"})).await.expect(200);
        assert_eq!((issued.value(), &issued.body["state"]), (1, &json!("issued")), "to issue is to reserve and to confirm");
        assert_eq!(walk(&app.first, "a-0001").await, ["reserved", "issued"]);
        // First answers do not change with what became of the number.
        let replay = reserve(&app.first, "k", "order-1").await.expect(201);
        assert_eq!(replay.body, reserved.body);
        let _ = step(&app.first, "a-0001", "void", json!({"reason": "a mistake"})).await.expect(200);
        let replay = app.first.issue("a", "issue", json!({"document_ref": "order-1"})).await.expect(200);
        assert_eq!((&replay.body, replay.replayed()), (&issued.body, true));
    });
}

#[test]
fn c13_and_c16_one_value_for_a_whole_life() {
    prove(async |app| {
        series(&app.first, "a").await;
        let reserved = reserve(&app.first, "k1", "order-1").await.expect(201);
        let failed = step(&app.first, "a-0001", "fail", json!({"reason": "the integrator said no"})).await.expect(200);
        assert_eq!(failed.body["state"], "failed");
        let again = reserve(&app.first, "k2", "order-1").await.expect(200);
        assert_eq!((again.value(), &again.body["state"]), (reserved.value(), &json!("failed")));
        let confirmed = step(&app.first, "a-0001", "confirm", json!({})).await.expect(200);
        assert_eq!(confirmed.body["state"], "issued");
        let repeated = step(&app.first, "a-0001", "confirm", json!({})).await.expect(200);
        assert_eq!(repeated.body, confirmed.body, "done twice, it is done once");
        assert_eq!(walk(&app.first, "a-0001").await, ["reserved", "failed", "issued"]);
        let next = reserve(&app.first, "k3", "order-2").await.expect(201);
        assert_eq!(next.value(), 2, "exactly one value was used");
    });
}

#[test]
fn c15_drafts_that_never_ask_use_nothing() {
    prove(async |app| {
        series(&app.first, "a").await;
        for n in 0..10 {
            let next = app.first.post("/v1/series/a/preview", "unused", json!({"count": 3})).await.expect(200);
            assert_eq!(next.body["numbers"][0]["number"], "a-0001");
            let draft = format!("/v1/series/a/numbers?document_ref=draft-{n}");
            assert_eq!(app.first.get(&draft).await.expect(200).body["items"], json!([]));
            let drafted = json!({"document_ref": format!("draft-{n}"), "document_date": "not yet"});
            let _ = app.first.post("/v1/series/a/reservations", &format!("k{n}"), drafted).await.problem(422, "invalid");
            let unused = app.first.get("/v1/series/a/numbers/a-0001").await.expect(200);
            assert_eq!(unused.body["state"], "unused");
        }
        let audit = app.first.get("/v1/series/a/audit").await.expect(200);
        assert_eq!((&audit.body["states"], &audit.body["complete"]), (&json!({}), &json!(true)));
        assert_eq!(app.first.issue("a", "k", json!({})).await.expect(201).value(), 1);
    });
}

#[test]
fn c21_two_producers_of_one_document_get_one_number() {
    prove(async |app| {
        series(&app.first, "a").await;
        let replies = all((0..24).map(|n| {
            let api = app.first.clone();
            async move {
                let (path, key) = (["numbers", "reservations"][n % 2], format!("k{n}"));
                let body = json!({"document_ref": format!("order-{}", n / 8)});
                let reply = api.post(&format!("/v1/series/a/{path}"), &key, body).await;
                assert!(matches!(reply.status, 200 | 201), "{}", reply.text);
                (n / 8, reply.value(), reply.status)
            }
        }))
        .await;
        for document in 0..3 {
            let of_one: Vec<_> = replies.iter().filter(|(of, ..)| *of == document).collect();
            assert!(of_one.iter().all(|(_, value, _)| *value == of_one[0].1), "{of_one:?}");
            assert_eq!(of_one.iter().filter(|(.., status)| *status == 201).count(), 1, "one made it, the others found it");
        }
        let audit = app.first.get("/v1/series/a/audit").await.expect(200);
        assert_eq!(audit.body["states"], json!({"issued": 3}), "whoever issued also confirmed");
    });
}

/// Every verb in every state that a caller can bring about: what the table says, and the state where it says no.
#[test]
fn the_verbs_in_their_states() {
    prove(async |app| {
        series(&app.first, "a").await;
        let why = || json!({"reason": "why not"});
        let mut n = 0;
        for (state, way) in [("reserved", &[][..]), ("failed", &["fail"]), ("issued", &["confirm"]), ("voided", &["void"])] {
            for (verb, becomes) in [("confirm", "issued"), ("fail", "failed"), ("void", "voided")] {
                n += 1;
                let number = format!("a-{n:04}");
                let _ = reserve(&app.first, &format!("k{n}"), &format!("order-{n}")).await.expect(201);
                for verb in way {
                    let _ = step(&app.first, &number, verb, why()).await.expect(200);
                }
                let reply = step(&app.first, &number, verb, why()).await;
                if matches!((state, verb), ("voided", "confirm" | "fail") | ("issued", "fail")) {
                    let problem = reply.problem(409, "wrong-state");
                    assert_eq!(problem.body["state"], state);
                } else {
                    assert_eq!(reply.expect(200).body["state"], becomes, "{verb} of {state}");
                }
            }
        }
        // What only a dispatcher brings about.
        let mut db = app.superuser(&app.shard_of("a").await).await;
        let mut becomes = async |value: i64, from: &str, to: &str| {
            let note = "with moved as (update number set state = $3 where value = $1 and state = $2 returning *)
              insert into history (tenant_id, series, part, period, value, at, \"from\", \"to\", principal, operation_id)
              select tenant_id, series, part, period, value, now(), $2, $3, 'dispatcher', 'planted' from moved";
            sqlx::query(note).bind(value).bind(from).bind(to).execute(&mut db).await.unwrap();
        };
        for n in [13, 14] {
            let _ = reserve(&app.first, &format!("k{n}"), &format!("order-{n}")).await.expect(201);
            becomes(n, "reserved", "sending").await;
        }
        for verb in ["confirm", "fail", "void", "release"] {
            let sending = step(&app.first, "a-0013", verb, why()).await.problem(409, "wrong-state");
            assert_eq!(sending.body["state"], "sending");
        }
        for n in [13, 14] {
            becomes(n, "sending", "in_doubt").await;
        }
        for (verb, body, status) in [("fail", why(), 409), ("release", why(), 409), ("confirm", json!({}), 422)] {
            assert_eq!(step(&app.first, "a-0013", verb, body).await.status, status, "{verb} in doubt");
        }
        let known = step(&app.first, "a-0013", "confirm", json!({"reason": "the portal shows it"})).await.expect(200);
        assert_eq!(known.body["state"], "issued");
        // What nobody knows is decided only by whoever may override.
        let scopes = json!({"name": "clerk", "scopes": ["numbers:issue", "numbers:void"]});
        let clerk = app.first.post("/v1/keys", "clerk", scopes).await.expect(201);
        let clerk = app.first.with_key(clerk.body["secret"].as_str().unwrap());
        let refused = step(&clerk, "a-0014", "void", why()).await.problem(409, "wrong-state");
        assert_eq!(refused.body["state"], "in_doubt");
        assert_eq!(step(&app.first, "a-0014", "void", why()).await.expect(200).body["state"], "voided");
        let voided = reserve(&app.first, "after", "order-10").await.problem(409, "document-voided");
        assert!(voided.body["detail"].as_str().unwrap().contains("a-0010"), "{}", voided.text);
    });
}

/// Confirmed and voided by many at once: one outcome, and whoever is too late hears it.
#[test]
fn reordered_callers_see_one_outcome() {
    prove(async |app| {
        series(&app.first, "a").await;
        for round in 1..=10 {
            let number = format!("a-{round:04}");
            let _ = reserve(&app.first, &format!("k{round}"), &format!("order-{round}")).await.expect(201);
            let replies = all((0..12).map(|n| {
                let (api, number) = (app.first.clone(), number.clone());
                async move {
                    let verb = ["fail", "void", "confirm"][n % 3];
                    (verb, step(&api, &number, verb, json!({"reason": "at once"})).await.status)
                }
            }))
            .await;
            assert!(replies.iter().all(|(_, status)| matches!(status, 200 | 409)), "{replies:?}");
            let walked = walk(&app.first, &number).await;
            assert_eq!(walked.last().unwrap(), "voided", "void is allowed from everywhere here, and final");
            assert!(walked.iter().filter(|state| *state == "voided").count() == 1);
        }
    });
}

#[test]
fn bad_verbs_are_told_what_would_be_right() {
    prove(async |app| {
        for name in ["a", "b"] {
            series(&app.first, name).await;
            app.first.issue(name, "k", json!({"document_ref": "order-1"})).await.expect(201);
        }
        let _ = step(&app.first, "a-0001", "void", json!({})).await.problem(422, "invalid");
        for reason in ["", "   ", &"x".repeat(10_000)] {
            let reply = step(&app.first, "a-0001", "void", json!({"reason": reason})).await.problem(422, "invalid");
            assert_eq!(reply.body["errors"][0]["pointer"], "/reason");
        }
        let _ = step(&app.first, "a-0001", "confirm", json!({"why": "x"})).await.problem(422, "invalid");
        let _ = step(&app.first, "b-0001", "confirm", json!({})).await.problem(404, "not-found");
        let _ = step(&app.first, "a-0002", "confirm", json!({})).await.problem(404, "not-found");
        let _ = app.first.post("/v1/series/a/reservations", "none", json!({})).await.problem(422, "invalid");
        let other = app.tenant("other").await;
        let _ = step(&other, "a-0001", "confirm", json!({})).await.problem(404, "not-found");
        let by_query = app.first.post("/v1/series/a/numbers/-/void?number=a-0001", "unused", json!({"reason": "x"})).await;
        assert_eq!(by_query.expect(200).body["state"], "voided");
        let conflict = json!({"document_ref": "order-2", "document_date": "2026-01-31"});
        let _ = app.first.post("/v1/series/a/reservations", "dated", conflict).await.expect(201);
        let other_date = json!({"document_ref": "order-2", "document_date": "2026-02-01"});
        let _ = app.first.post("/v1/series/a/reservations", "again", other_date).await.problem(409, "document-conflict");
    });
}
