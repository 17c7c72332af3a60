//! Deadlines of reservations, and the loops that go on by themselves.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::Executor;
use testkit::{Api, App, Setup, TestClock, prove, prove_with};

use crate::together::all;

async fn series(api: &Api, name: &str, overdue: &str, seconds: i64) {
    let settings = json!({"reset": "never", "reservation_ttl_seconds": seconds, "reservation_overdue": overdue});
    let made = api.create_series(name, &format!("{name}-{{seq:4}}"), settings).await.expect(201);
    assert_eq!((&made.body["reservation_ttl_seconds"], &made.body["reservation_overdue"]), (&json!(seconds), &json!(overdue)));
}

async fn reserve(api: &Api, name: &str, count: usize) {
    for n in 1..=count {
        let body = json!({"document_ref": format!("order-{n}")});
        let _ = api.post(&format!("/v1/series/{name}/reservations"), &format!("k{n}"), body).await.expect(201);
    }
}

async fn audit(api: &Api, name: &str) -> Value {
    api.get(&format!("/v1/series/{name}/audit")).await.expect(200).body
}

/// Sweeps every shard; how many were voided.
async fn sweep(app: &App) -> i64 {
    let dispatcher = app.dispatcher();
    let mut voided = 0;
    for shard in app.superuser_shards().keys() {
        voided += dispatcher.sweep(shard).await.unwrap();
    }
    voided
}

#[test]
fn c19_an_overdue_reservation_is_reported_at_once_and_settled_as_its_series_wants() {
    let clock = TestClock::at("2026-03-01T12:00:00Z");
    prove_with(Setup { clock: Some(clock.clone()), ..Setup::default() }, async |app| {
        for (name, overdue) in [("stays", "alarm"), ("goes", "void")] {
            series(&app.first, name, overdue, 60).await;
            reserve(&app.first, name, 3).await;
            let confirm = format!("/v1/series/{name}/numbers/{name}-0002/confirm");
            let _ = app.first.post(&confirm, "unused", json!({})).await.expect(200);
        }
        clock.advance(59);
        assert_eq!(sweep(app).await, 0, "nothing is due");
        clock.advance(2);
        for name in ["stays", "goes"] {
            assert_eq!(audit(&app.first, name).await["overdue"], json!([format!("{name}-0001"), format!("{name}-0003")]));
        }
        assert_eq!(sweep(app).await, 2);
        assert_eq!(sweep(app).await, 0, "done twice, it is done once");
        let stays = audit(&app.first, "stays").await;
        assert_eq!(
            (&stays["states"], &stays["overdue"]),
            (&json!({"issued": 1, "reserved": 2}), &json!(["stays-0001", "stays-0003"]))
        );
        let goes = audit(&app.first, "goes").await;
        assert_eq!((&goes["states"], &goes["overdue"]), (&json!({"issued": 1, "voided": 2}), &json!([])));
        let story = app.first.get("/v1/series/goes/numbers/goes-0001").await.expect(200);
        let last = story.body["history"].as_array().unwrap().last().unwrap();
        assert_eq!(
            (&last["from"], &last["to"], &last["principal"], &last["reason"]),
            (
                &json!("reserved"),
                &json!("voided"),
                &json!("sweeper"),
                &json!("reserved until 2026-03-01T12:01:00Z and not settled by then")
            )
        );
        assert!(last["operation_id"].as_str().unwrap().starts_with("sweep-"), "{last}");
        let again = json!({"document_ref": "order-1"});
        let _ = app.first.post("/v1/series/goes/reservations", "again", again.clone()).await.problem(409, "document-voided");
        // The first answer is what it was; and one that stays can still be settled.
        let _ = app.first.post("/v1/series/goes/reservations", "k1", again).await.expect(201);
        let _ = app.first.post("/v1/series/stays/numbers/stays-0001/confirm", "unused", json!({})).await.expect(200);
    });
}

/// A deadline belongs to the reservation; one that was given again has its own.
#[test]
fn a_number_that_was_given_again_has_a_new_deadline() {
    let clock = TestClock::at("2026-03-01T12:00:00Z");
    prove_with(Setup { clock: Some(clock.clone()), ..Setup::default() }, async |app| {
        let settings =
            json!({"reset": "never", "release": "last_unsent", "reservation_ttl_seconds": 60, "reservation_overdue": "void"});
        app.first.create_series("a", "a-{seq:4}", settings).await.expect(201);
        reserve(&app.first, "a", 1).await;
        clock.advance(50);
        let _ = app.first.post("/v1/series/a/numbers/a-0001/release", "unused", json!({})).await.expect(200);
        let second = json!({"document_ref": "second"});
        let _ = app.first.post("/v1/series/a/reservations", "second", second).await.expect(201);
        clock.advance(50);
        assert_eq!(sweep(app).await, 0);
        clock.advance(11);
        assert_eq!(sweep(app).await, 1);
        let explained = app.first.get("/v1/series/a/numbers/a-0001").await.expect(200);
        let walk: Vec<_> = explained.body["history"].as_array().unwrap().iter().map(|entry| entry["to"].clone()).collect();
        assert_eq!(walk, ["reserved", "released", "reserved", "voided"]);
    });
}

/// Sweepers at once, beside callers who settle the same reservations: each has one outcome.
#[test]
fn many_sweepers_and_callers_settle_each_reservation_once() {
    let clock = TestClock::at("2026-03-01T12:00:00Z");
    prove_with(Setup { clock: Some(clock.clone()), ..Setup::default() }, async |app| {
        series(&app.first, "a", "void", 60).await;
        reserve(&app.first, "a", 60).await;
        clock.advance(61);
        let shard = app.shard_of("a").await;
        let sweepers: Vec<_> = (0..4).map(|_| app.dispatcher()).collect();
        let sweeping = all(sweepers.into_iter().map(|dispatcher| {
            let shard = shard.clone();
            // Where there is no connection for now, as when the machine is busy, the next round has one.
            async move {
                while dispatcher.sweep(&shard).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }));
        let confirming = all((1..=60).map(|n| {
            let api = app.first.clone();
            async move { api.post(&format!("/v1/series/a/numbers/a-{n:04}/confirm"), "unused", json!({})).await.status }
        }));
        let (_, confirmed) = tokio::join!(sweeping, confirming);
        let confirmed = i64::try_from(confirmed.iter().filter(|status| **status == 200).count()).unwrap();
        sweep(app).await;
        let states = audit(&app.first, "a").await["states"].clone();
        assert_eq!(states["issued"].as_i64().unwrap_or(0), confirmed);
        assert_eq!(states["voided"].as_i64().unwrap_or(0), 60 - confirmed);
    });
}

/// A lease is held by one; whoever was killed loses it with time, and what was half done is done by the next.
#[test]
fn a_killed_sweeper_is_followed_by_another() {
    prove(async |app| {
        for n in 0..4 {
            let name = format!("s{n}");
            series(&app.first, &name, "void", 1).await;
            reserve(&app.first, &name, 5).await;
        }
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        for fault in ["before_commit:3", "after_commit:4", "before_commit:6"] {
            let doomed = app.dispatcher_process(Some(fault)).await;
            assert!(doomed.died().await, "{fault}");
            for shard in app.superuser_shards().keys() {
                let mut db = app.superuser(shard).await;
                db.execute("update job set until = now() - interval '1 second'").await.unwrap();
            }
        }
        let second = app.dispatcher_process(None).await;
        let other = app.dispatcher_process(None).await;
        let mut voided = 0;
        for _ in 0..200 {
            voided = 0;
            for n in 0..4 {
                voided += audit(&app.first, &format!("s{n}")).await["states"]["voided"].as_i64().unwrap_or(0);
            }
            if voided == 20 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(voided, 20);
        assert_eq!((second.stop().await, other.stop().await), (Some(0), Some(0)));
    });
}

/// The auditor goes over all series; what it finds is told, in this round and in the next, until a round finds nothing.
#[test]
fn the_auditor_goes_round_and_tells_what_it_found() {
    prove(async |app| {
        let other = app.tenant("other").await;
        for n in 0..3 {
            for api in [&app.first, &other] {
                api.create_series(&format!("s{n}"), &format!("s{n}-{{seq:4}}"), json!({"reset": "never"})).await.expect(201);
                api.issue(&format!("s{n}"), "k", json!({"count": 3})).await.expect(201);
            }
        }
        let round = async || {
            let dispatcher = app.dispatcher();
            let mut found = Vec::new();
            for shard in app.superuser_shards().keys() {
                let lease = format!(
                    "insert into job (kind, holder, until) values ('audit', '{}', now())
                  on conflict (kind) do update set holder = excluded.holder",
                    dispatcher.name()
                );
                app.superuser(shard).await.execute(sqlx::AssertSqlSafe(lease)).await.unwrap();
                while let Some(audited) = dispatcher.audit_next(shard).await.unwrap() {
                    found.push((audited.series.to_string(), audited.impossible));
                }
            }
            found.sort();
            found
        };
        let clean: Vec<_> = ["s0", "s0", "s1", "s1", "s2", "s2"].map(|name| (name.to_owned(), 0)).into();
        assert_eq!(round().await, clean, "each series of each tenant, once");
        let mut db = app.superuser(&app.shard_of("s1").await).await;
        db.execute("update counter set last = 2 where series = 's1'").await.unwrap();
        let found = round().await;
        assert_eq!(found.iter().map(|(_, impossible)| impossible).sum::<usize>(), round_of(&mut db).await);
        assert!(found.iter().all(|(name, impossible)| name == "s1" || *impossible == 0), "{found:?}");
        db.execute("update counter set last = 3 where series = 's1'").await.unwrap();
        assert_eq!(round().await, clean);
    });
}

/// How many counters of `s1` are on this shard.
async fn round_of(db: &mut sqlx::PgConnection) -> usize {
    let count: i64 = sqlx::query_scalar("select count(*) from counter where series = 's1'").fetch_one(db).await.unwrap();
    usize::try_from(count).unwrap()
}
