//! A number that never left the house goes back, and is given again.

use serde_json::{Value, json};
use testkit::{Api, Reply, prove};

use crate::together::all;

async fn series(api: &Api, more: Value) {
    let mut settings = json!({"reset": "never", "release": "last_unsent"});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    api.create_series("a", "a-{seq:4}", settings).await.expect(201);
}

async fn reserve(api: &Api, key: &str, reference: &str) -> Reply {
    api.post("/v1/series/a/reservations", key, json!({"document_ref": reference})).await
}

async fn step(api: &Api, number: &str, verb: &str, body: Value) -> Reply {
    api.post(&format!("/v1/series/a/numbers/{number}/{verb}"), "unused", body).await
}

async fn walk(api: &Api, number: &str) -> Vec<String> {
    let explained = api.get(&format!("/v1/series/a/numbers/{number}")).await.expect(200);
    let history = explained.body["history"].as_array().unwrap();
    history.iter().map(|entry| entry["to"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn c17_a_released_number_is_the_next_one_again() {
    prove(async |app| {
        series(&app.first, json!({})).await;
        let first = reserve(&app.first, "k1", "order-1").await.expect(201);
        let released = step(&app.first, "a-0001", "release", json!({"reason": "the order was cancelled"})).await.expect(200);
        assert_eq!((&released.body["state"], &released.body["document_ref"]), (&json!("released"), &Value::Null));
        let again = step(&app.first, "a-0001", "release", json!({})).await.expect(200);
        assert_eq!(again.body, released.body, "done twice, it is done once");
        let audit = app.first.get("/v1/series/a/audit").await.expect(200);
        assert_eq!((&audit.body["states"], &audit.body["next"]), (&json!({"released": 1}), &json!(1)));
        assert_eq!(audit.body["complete"], true);
        let _ = reserve(&app.first, "k1", "order-1").await.problem(409, "number-released");

        let second = reserve(&app.first, "k2", "order-2").await.expect(201);
        assert_eq!((second.value(), &second.body["life"]), (1, &json!(2)));
        assert!(first.body.get("life").is_none());
        let replay = reserve(&app.first, "k2", "order-2").await.expect(201);
        assert_eq!((&replay.body, replay.replayed()), (&second.body, true));
        let _ = reserve(&app.first, "k1", "order-1").await.problem(409, "number-released");
        // Whoever repeats the release late does not take it from the second document.
        let late = step(&app.first, "a-0001", "release", json!({})).await.problem(409, "wrong-state");
        assert_eq!(late.body["state"], "reserved");
        // Nor does any other call that comes late: each means the first life, unless it says otherwise.
        for (verb, body) in [
            ("void", json!({"reason": "late"})),
            ("confirm", json!({})),
            ("fail", json!({})),
            ("void", json!({"reason": "late", "life": 1})),
        ] {
            let late = step(&app.first, "a-0001", verb, body).await.problem(409, "wrong-state");
            assert!(late.body["detail"].as_str().unwrap().contains("\"life\": 2"), "{}", late.text);
        }
        let path = "/v1/series/a/numbers/a-0001";
        let patch = async |body: Value| app.first.call(reqwest::Method::PATCH, path, None, Some(&body)).await;
        let _ = patch(json!({"metadata": {"late": true}, "reason": "late"})).await.problem(409, "wrong-state");
        assert_eq!(app.first.get(path).await.expect(200).body["metadata"], Value::Null);
        let _ = patch(json!({"metadata": {"late": false}, "reason": "meant", "life": 2})).await.expect(200);
        for (verb, life) in [("confirm", 0), ("void", -1), ("release", 0)] {
            let wrong = step(&app.first, "a-0001", verb, json!({"reason": "x", "life": life})).await.problem(422, "invalid");
            assert_eq!(wrong.body["errors"][0]["pointer"], "/life");
        }
        let _ = step(&app.first, "a-0001", "confirm", json!({"life": 2})).await.expect(200);
        assert_eq!(walk(&app.first, "a-0001").await, ["reserved", "released", "reserved", "reserved", "issued"], "both lives");
        let next = app.first.issue("a", "k3", json!({"document_ref": "order-1"})).await.expect(201);
        assert_eq!(next.value(), 2, "the document of the first life gets a number of its own");
    });
}

#[test]
fn c18_only_the_last_number_that_was_never_sent_goes_back() {
    prove(async |app| {
        series(&app.first, json!({})).await;
        for n in 1..=4 {
            let _ = reserve(&app.first, &format!("k{n}"), &format!("order-{n}")).await.expect(201);
        }
        let middle = step(&app.first, "a-0002", "release", json!({})).await.problem(409, "wrong-state");
        assert!(middle.body["detail"].as_str().unwrap().contains("void it"), "{}", middle.text);
        let _ = step(&app.first, "a-0004", "fail", json!({})).await.expect(200);
        let sent = step(&app.first, "a-0004", "release", json!({})).await.problem(409, "wrong-state");
        assert_eq!(sent.body["state"], "failed");
        let _ = step(&app.first, "a-0004", "void", json!({"reason": "the way that is left"})).await.expect(200);
        let _ = step(&app.first, "a-0005", "release", json!({})).await.problem(404, "not-found");
        app.first.create_series("b", "b-{seq:4}", json!({"reset": "never"})).await.expect(201);
        let _ = app.first.post("/v1/series/b/reservations", "k", json!({"document_ref": "x"})).await.expect(201);
        let never = app.first.post("/v1/series/b/numbers/b-0001/release", "unused", json!({})).await;
        assert_eq!(never.problem(409, "wrong-state").body["state"], "reserved");
    });
}

/// Several go back, last first, and one request takes all of them and more.
#[test]
fn released_numbers_are_given_again_in_order() {
    prove(async |app| {
        series(&app.first, json!({})).await;
        app.first.issue("a", "first", json!({"count": 2})).await.expect(201);
        for n in 3..=5 {
            let _ = reserve(&app.first, &format!("k{n}"), &format!("order-{n}")).await.expect(201);
        }
        for n in [5, 4, 3] {
            let _ = step(&app.first, &format!("a-{n:04}"), "release", json!({})).await.expect(200);
        }
        let some = app.first.issue("a", "some", json!({"count": 2})).await.expect(201);
        let told: Vec<_> =
            some.body["numbers"].as_array().unwrap().iter().map(|n| (n["value"].clone(), n["life"].clone())).collect();
        assert_eq!(told, [(json!(3), json!(2)), (json!(4), json!(2))]);
        let more = app.first.issue("a", "more", json!({"count": 3})).await.expect(201);
        let told: Vec<_> = more.body["numbers"].as_array().unwrap().iter().map(|n| n["value"].clone()).collect();
        assert_eq!(told, [5, 6, 7]);
        let replay = app.first.issue("a", "more", json!({"count": 3})).await.expect(201);
        assert_eq!(replay.body, more.body);
        let _ = reserve(&app.first, "k4", "order-4").await.problem(409, "number-released");
    });
}

/// In a strict series a released number takes its date along.
#[test]
fn a_released_date_holds_nobody_back() {
    prove(async |app| {
        series(&app.first, json!({"chronology": "strict"})).await;
        let dated = |reference: &str, date: &str| json!({"document_ref": reference, "document_date": date});
        let path = "/v1/series/a/reservations";
        let _ = app.first.post(path, "k1", dated("order-1", "2026-01-10")).await.expect(201);
        let _ = app.first.post(path, "k2", dated("order-2", "2026-03-01")).await.expect(201);
        let _ = app.first.post(path, "k3", dated("order-3", "2026-02-01")).await.problem(422, "chronology");
        let _ = step(&app.first, "a-0002", "release", json!({})).await.expect(200);
        let _ = app.first.post(path, "k4", dated("order-3", "2026-01-09")).await.problem(422, "chronology");
        let third = app.first.post(path, "k5", dated("order-3", "2026-02-01")).await.expect(201);
        assert_eq!((third.value(), &third.body["document_date"]), (2, &json!("2026-02-01")));
    });
}

/// Reserving, releasing and issuing at once: what anybody was told they hold, nobody else does.
#[test]
fn releases_among_issues() {
    prove(async |app| {
        series(&app.first, json!({})).await;
        let held = all((0..24).map(|n| {
            let api = app.first.clone();
            async move {
                let mut held = Vec::new();
                for round in 0..8 {
                    let (key, reference) = (format!("k{n}-{round}"), format!("order-{n}-{round}"));
                    let mine = reserve(&api, &key, &reference).await.expect(201);
                    let (number, life) = (mine.body["number"].as_str().unwrap().to_owned(), mine.body["life"].clone());
                    let verb = ["release", "confirm", "release"][(n + round) % 3];
                    let reply = step(&api, &number, verb, json!({"life": if life.is_null() { json!(1) } else { life }})).await;
                    match (verb, reply.status) {
                        ("release", 200) => {
                            let _ = reserve(&api, &key, &reference).await.problem(409, "number-released");
                        }
                        ("confirm", 200) | ("release", 409) => held.push(mine.value()),
                        _ => panic!("{verb}: {}", reply.text),
                    }
                }
                held
            }
        }))
        .await;
        let mut held: Vec<_> = held.into_iter().flatten().collect();
        held.sort_unstable();
        let all_of_them: Vec<_> = (1..=i64::try_from(held.len()).unwrap()).collect();
        assert_eq!(held, all_of_them, "each value is held once, and none is missing");
    });
}
