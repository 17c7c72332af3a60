//! The audit sees what must not be.

use serde_json::json;
use sqlx::Executor;
use testkit::{Setup, TestClock, prove, prove_with};

/// A way to break the ledger, as a superuser with the guards off.
struct Fault {
    what: &'static str,
    plant: &'static str,
    undo: &'static str,
    /// What the audit says.
    audited: &'static str,
    /// What the proof at the end of each test would say; some it leaves to the audit.
    proved: &'static str,
}

const FAULTS: &[Fault] = &[
    Fault {
        what: "gap",
        plant: "create table kept as select * from number where value = 3; delete from number where value = 3",
        undo: "insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                 metadata, config_version, at, principal, operation_id, trace_id)
               select tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                 metadata, config_version, at, principal, operation_id, trace_id from kept; drop table kept",
        audited: r#"[{"from":3,"period":"2026","to":3}]"#,
        proved: "a value does not follow",
    },
    Fault {
        what: "gap at the beginning",
        plant: "create table kept as select * from number where value <= 2; delete from number where value <= 2",
        undo: "insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                 metadata, config_version, at, principal, operation_id, trace_id)
               select tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                 metadata, config_version, at, principal, operation_id, trace_id from kept; drop table kept",
        audited: r#"[{"from":1,"period":"2026","to":2}]"#,
        proved: "a value does not follow",
    },
    Fault {
        what: "one text twice",
        plant: "drop index number_text; update number set number = 'A20260001' where value = 2",
        undo: "update number set number = 'A20260002' where value = 2;
               create unique index number_text on number (tenant_id, series, number) where number is not null",
        audited: r#""duplicates":["A20260001"]"#,
        proved: "stands on two documents",
    },
    Fault {
        what: "one document twice",
        plant: "drop index number_document_ref; update number set document_ref = 'same' where value in (1, 2)",
        undo: "update number set document_ref = null where value in (1, 2);
               create unique index number_document_ref on number (tenant_id, series, document_ref) where document_ref is not null",
        audited: "document same has two numbers",
        proved: "a document has two numbers",
    },
    Fault {
        what: "counter behind",
        plant: "update counter set last = 4",
        undo: "update counter set last = 6",
        audited: "the counter stands at 4, the last number is 6",
        proved: "counter is not where",
    },
    Fault {
        what: "counter ahead",
        plant: "update counter set last = 9",
        undo: "update counter set last = 6",
        audited: "the counter stands at 9, the last number is 6",
        proved: "counter is not where",
    },
    Fault {
        what: "no counter",
        plant: "create table kept as select * from counter; delete from counter",
        undo: "insert into counter select * from kept; drop table kept",
        audited: "6 numbers belong to no counter",
        proved: "counter is not where",
    },
    Fault {
        what: "claim too long",
        plant: "update claim set count = 7 where key = 'k'",
        undo: "update claim set count = 5 where key = 'k'",
        audited: "a claim took values 1 to 7, which are not all there",
        proved: "a claim took values that are not there",
    },
    Fault {
        what: "claim of a period that is not there",
        plant: "update claim set period = '2031' where key = 'l'",
        undo: "update claim set period = '2026' where key = 'l'",
        audited: "a claim took values 6 to 6, which are not all there",
        proved: "a claim took values that are not there",
    },
    Fault {
        what: "claims share a value",
        plant: "update claim set count = 6 where key = 'k'",
        undo: "update claim set count = 5 where key = 'k'",
        audited: "2 claims took value 6, which was given 1 times",
        proved: "two claims took one value",
    },
    Fault {
        what: "claim answers with what is not there",
        plant: r#"update claim set answer = '[["2026", 0, 77, "issued", 1]]' where key = 'l'"#,
        undo: "update claim set answer = null where key = 'l'",
        audited: "a claim answers with value 77, which is not there",
        proved: "a claim answers with a number that is not there",
    },
    Fault {
        what: "a head that opens no run",
        plant: "update number set prev = null where value = 4",
        undo: "update number set prev = 3 where value = 4",
        audited: "value 4 follows none and opens no run",
        proved: "",
    },
    Fault {
        what: "a value before its run",
        plant: "update run set first = 2",
        undo: "update run set first = 1",
        audited: "value 1 is before every run",
        proved: "a value does not follow",
    },
    Fault {
        what: "released below the counter",
        plant: "update number set state = 'released' where value = 2;
                insert into history (tenant_id, series, part, period, value, at, \"from\", \"to\", principal, operation_id)
                select tenant_id, series, part, period, value, at, 'reserved', 'released', 'x', 'planted' from number where value = 2",
        undo: "update number set state = 'issued' where value = 2; delete from history where operation_id = 'planted'",
        audited: "value 2 is released, and the counter stands at 6",
        proved: "a released number is not above its counter",
    },
    Fault {
        what: "open in a closed period",
        plant: "update counter set gate = 'closed', closed_at = now(), closed_by = 'x'; update number set state = 'reserved' where value = 6",
        undo: "update counter set gate = 'open', closed_at = null, closed_by = null; update number set state = 'issued' where value = 6",
        audited: "the period is closed, and has 1 open numbers",
        proved: "a closed period has an open number",
    },
    Fault {
        what: "voided and nobody noted it",
        plant: "update number set state = 'voided' where value = 5",
        undo: "update number set state = 'issued' where value = 5",
        audited: "value 5 is voided in its life 1, and its history is empty",
        proved: "a number is not where its history ended",
    },
    Fault {
        what: "not where its history ended",
        plant: "insert into history (tenant_id, series, part, period, value, at, \"from\", \"to\", principal, operation_id)
                select tenant_id, series, part, period, value, at, 'issued', 'voided', 'x', 'planted' from number where value = 5",
        undo: "delete from history where operation_id = 'planted'",
        audited: "value 5 is issued, and its history ended with voided",
        proved: "a number is not where its history ended",
    },
    Fault {
        what: "a broken history",
        plant: "insert into history (tenant_id, series, part, period, value, at, \"from\", \"to\", principal, operation_id)
                select tenant_id, series, part, period, value, at, 'reserved', 'failed', 'x', 'planted' from number where value = 5;
                insert into history (tenant_id, series, part, period, value, at, \"from\", \"to\", principal, operation_id)
                select tenant_id, series, part, period, value, at, 'in_doubt', 'issued', 'x', 'planted' from number where value = 5",
        undo: "delete from history where operation_id = 'planted'",
        audited: "a step in the history of value 5 does not begin where the last one ended",
        proved: "a step in a history does not begin",
    },
    Fault {
        what: "a history of a number that is not there",
        plant: "insert into history (tenant_id, series, part, period, value, at, \"from\", \"to\", principal, operation_id)
                select tenant_id, series, part, period, 99, at, 'issued', 'voided', 'x', 'planted' from number where value = 5",
        undo: "delete from history where operation_id = 'planted'",
        audited: "value 99 is not there, and its history ended with voided",
        proved: "",
    },
    Fault {
        what: "a life that nobody noted",
        plant: "update number set life = 2 where value = 5",
        undo: "update number set life = 1 where value = 5",
        audited: "numbers were given again 1 times, and histories tell of 0",
        proved: "a number is not where its history ended",
    },
    Fault {
        what: "a date that goes back in a strict series",
        plant: r#"update series set chronology = 'strict'; update series_version set settings = settings || '{"chronology": "strict"}';
                  update number set document_date = '2025-12-31' where value in (4, 6)"#,
        undo: r#"update series set chronology = 'none'; update series_version set settings = settings || '{"chronology": "none"}';
                 update number set document_date = '2026-01-01'"#,
        audited: "the series is strict, and value 4 is dated before a lower one",
        proved: "",
    },
    Fault {
        what: "a guard that is gone",
        plant: "alter table number drop constraint number_follows",
        undo: "alter table number add constraint number_follows foreign key (tenant_id, series, part, period, prev) references number",
        audited: "the database's guard number_follows is gone",
        proved: "a guard is gone",
    },
    Fault {
        what: "row-level security that is off",
        plant: "alter table history no force row level security",
        undo: "alter table history force row level security",
        audited: "the database's guard history is gone",
        proved: "",
    },
];

/// Each is found by the audit over everything, and undone again, so that the proof at the end of the test holds.
#[test]
fn planted_impossible_states_of_every_kind_are_found() {
    prove(async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:4}", json!({})).await.expect(201);
        app.first.issue("invoices", "k", json!({"count": 5, "document_date": "2026-01-01"})).await.expect(201);
        app.first.issue("invoices", "l", json!({"document_date": "2026-01-01"})).await.expect(201);
        let mut db = app.superuser(&app.shard_of("invoices").await).await;
        db.execute("set session_replication_role = replica").await.unwrap();
        for Fault { what, plant, undo, audited, proved } in FAULTS {
            db.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(*plant))).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            let audit = app.first.get("/v1/series/invoices/audit").await.expect(200);
            assert_eq!(audit.body["complete"], false, "{what}: {}", audit.text);
            assert!(audit.body.to_string().contains(audited), "{what}: {}", audit.text);
            let found = app.findings().await.join("\n");
            assert!(found.contains(proved), "{what}: {found}");
            db.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(*undo))).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            let audit = app.first.get("/v1/series/invoices/audit").await.expect(200);
            assert_eq!(audit.body["complete"], true, "{what} undone: {}", audit.text);
        }
    });
}

/// What waits for somebody is listed, and nothing is wrong with it.
#[test]
fn overdue_and_stuck_numbers_are_listed() {
    let clock = TestClock::at("2026-03-01T12:00:00Z");
    prove_with(Setup { clock: Some(clock.clone()), ..Setup::default() }, async |app| {
        let settings = json!({"reset": "never", "reservation_ttl_seconds": 60});
        app.first.create_series("a", "a-{seq:4}", settings).await.expect(201);
        for n in 1..=3 {
            let body = json!({"document_ref": format!("order-{n}")});
            let _ = app.first.post("/v1/series/a/reservations", &format!("k{n}"), body).await.expect(201);
        }
        let mut db = app.superuser(&app.shard_of("a").await).await;
        for (value, from, to) in [(2, "reserved", "sending"), (3, "reserved", "sending"), (3, "sending", "in_doubt")] {
            let step = "with moved as (update number set state = $3 where value = $1 and state = $2 returning *)
              insert into history (tenant_id, series, part, period, value, at, \"from\", \"to\", principal, operation_id)
              select tenant_id, series, part, period, value, at, $2, $3, 'dispatcher', 'planted' from moved";
            sqlx::query(step).bind(value).bind(from).bind(to).execute(&mut db).await.unwrap();
        }
        let listed = async |overdue: serde_json::Value, stuck: serde_json::Value| {
            let audit = app.first.get("/v1/series/a/audit").await.expect(200);
            assert_eq!((&audit.body["overdue"], &audit.body["stuck"]), (&overdue, &stuck), "{}", audit.text);
            assert_eq!(audit.body["complete"], true);
        };
        listed(json!([]), json!([])).await;
        clock.advance(61);
        listed(json!(["a-0001"]), json!([])).await;
        clock.advance(15 * 60);
        listed(json!(["a-0001"]), json!(["a-0002", "a-0003"])).await;
    });
}

#[test]
fn an_audit_can_be_followed() {
    prove(async |app| {
        app.first.create_series("a", "a-{seq:6}", json!({"reset": "never"})).await.expect(201);
        app.first.issue("a", "k", json!({"count": 7})).await.expect(201);
        let alone = app.first.get("/v1/series/a/audit").await.expect(200);
        let followed = app.first.get("/v1/series/a/audit?format=jsonl").await.expect(200);
        assert_eq!(followed.headers["content-type"], "application/jsonl");
        let lines: Vec<serde_json::Value> = followed.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (last, steps) = lines.split_last().unwrap();
        assert_eq!(last["audit"], alone.body);
        assert!(steps.iter().all(|step| step["progress"]["of"] == 21), "{}", followed.text);
        let _ = app.first.get("/v1/series/a/audit?format=csv").await.problem(422, "invalid");
        let _ = app.first.get("/v1/series/b/audit?format=jsonl").await.problem(404, "not-found");
        let _ = app.first.get("/v1/series/a/audit?format=jsonl&period=2026").await.problem(422, "invalid");
    });
}

#[test]
fn an_audit_over_all_periods_and_of_one() {
    prove(async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:4}", json!({})).await.expect(201);
        let empty = app.first.get("/v1/series/invoices/audit").await.expect(200);
        assert_eq!((&empty.body["periods"], &empty.body["complete"]), (&json!([]), &json!(true)));
        app.first.issue("invoices", "a", json!({"count": 3, "document_date": "2025-01-01"})).await.expect(201);
        app.first.issue("invoices", "b", json!({"count": 2, "document_date": "2026-01-01"})).await.expect(201);
        let all = app.first.get("/v1/series/invoices/audit").await.expect(200);
        assert_eq!((&all.body["states"], &all.body["first"]), (&json!({"issued": 5}), &json!(null)));
        assert_eq!(all.body["periods"].as_array().unwrap().len(), 2);
        let one = app.first.get("/v1/series/invoices/audit?period=2025").await.expect(200);
        for (member, value) in [
            ("first", json!(1)),
            ("last", json!(3)),
            ("next", json!(4)),
            ("gaps", json!([])),
            ("duplicates", json!([])),
            ("overdue", json!([])),
            ("impossible", json!([])),
            ("period", json!("2025")),
            ("series", json!("invoices")),
        ] {
            assert_eq!(one.body[member], value, "{member}");
        }
        assert!(one.body.get("periods").is_none());
    });
}

#[test]
fn a_period_that_can_not_be_has_no_clean_bill() {
    prove(async |app| {
        for (series, reset, good, bad) in [
            ("never", "never", "all", ["ALL", "2026"]),
            ("yearly", "yearly", "2031", ["2026-13", "all"]),
            ("monthly", "monthly", "2026-12", ["2026-13", "2026"]),
        ] {
            app.first
                .create_series(series, &format!("{series}-{{yyyy}}{{mm}}-{{seq:3}}"), json!({"reset": reset, "max_length": 30}))
                .await
                .expect(201);
            let audit = app.first.get(&format!("/v1/series/{series}/audit?period={good}")).await.expect(200);
            assert_eq!(audit.body["complete"], true);
            for bad in bad {
                let refused = app.first.get(&format!("/v1/series/{series}/audit?period={bad}")).await.problem(422, "invalid");
                assert_eq!(refused.body["errors"][0]["pointer"], "/period", "{}", refused.text);
            }
        }
    });
}
