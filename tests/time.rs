//! Years, time zones, fiscal years, widths and dates: the places at which numbering systems fail on the first of January.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use testkit::{App, Setup, TestClock, prove, prove_with};

use crate::together::all;

/// A test on a clock that it moves.
fn at(instant: &str, test: impl AsyncFnOnce(&App, &TestClock)) {
    let clock = TestClock::at(instant);
    prove_with(Setup { clock: Some(clock.clone()), ..Setup::default() }, async |app| test(app, &clock).await);
}

async fn one(app: &App, series: &str, key: &str) -> (String, String, i64) {
    let reply = app.first.issue(series, key, json!({})).await.expect(201);
    let text = |field: &str| reply.body[field].as_str().unwrap().to_owned();
    (text("period"), text("number"), reply.value())
}

async fn dated(app: &App, series: &str, date: &str) -> (String, String, i64) {
    let reply = app.first.issue(series, &new_key(), json!({"document_date": date})).await.expect(201);
    let text = |field: &str| reply.body[field].as_str().unwrap().to_owned();
    (text("period"), text("number"), reply.value())
}

/// Another key each time.
fn new_key() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("dated-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn told(period: &str, number: &str, value: i64) -> (String, String, i64) {
    (period.to_owned(), number.to_owned(), value)
}

#[test]
fn c22_and_c23_and_c32_one_instant_decides_year_month_and_value() {
    at("2026-12-31T20:59:59Z", async |app, clock| {
        app.first.create_series("ist", "I{yyyy}{seq:4}", json!({})).await.expect(201);
        let monthly = json!({"reset": "monthly", "time_zone": "Asia/Jakarta"});
        app.first.create_series("jkt", "J{yyyy}{mm}{seq:4}", monthly).await.expect(201);
        assert_eq!(one(app, "ist", "a").await, told("2026", "I20260001", 1));
        clock.set("2026-12-31T21:30:00Z");
        assert_eq!(one(app, "ist", "b").await, told("2027", "I20270001", 1), "it is 00:30 in Istanbul");
        clock.set("2026-01-31T16:59:00Z");
        assert_eq!(one(app, "jkt", "c").await, told("2026-01", "J2026010001", 1));
        clock.set("2026-01-31T23:48:00Z");
        assert_eq!(one(app, "jkt", "d").await, told("2026-02", "J2026020001", 1), "it is 06:48 of 1 February in Jakarta");
    });
}

#[test]
fn c24_and_c26_and_c33_a_documents_date_decides() {
    at("2026-06-30T12:00:00Z", async |app, _| {
        app.first.create_series("m", "M{yyyy}{mm}{seq:4}", json!({"reset": "monthly"})).await.expect(201);
        assert_eq!(dated(app, "m", "2026-07-15").await, told("2026-07", "M2026070001", 1), "next month's, all of it");
        app.first.create_series("y", "Y{yyyy}{seq:4}", json!({})).await.expect(201);
        for n in 1..=8 {
            assert_eq!(dated(app, "y", "2026-01-01").await.2, n);
        }
        assert_eq!(dated(app, "y", "2022-05-05").await, told("2022", "Y20220001", 1));
        assert_eq!(dated(app, "y", "2026-01-01").await, told("2026", "Y20260009", 9));
        app.first.create_series("d", "D{yyyy}{mm}{dd}{seq:4}", json!({"reset": "daily"})).await.expect(201);
        assert_eq!(dated(app, "d", "2024-02-29").await, told("2024-02-29", "D202402290001", 1));
        assert_eq!(dated(app, "d", "2024-03-01").await, told("2024-03-01", "D202403010001", 1));
        let no_such_day = json!({"document_date": "2026-02-29"});
        let _ = app.first.issue("d", "none", no_such_day).await.problem(422, "invalid");
    });
}

/// While 200 are on their way, the clock passes midnight in Istanbul.
#[test]
fn c25_200_issues_over_midnight_give_two_whole_years() {
    at("2026-12-31T20:59:58Z", async |app, clock| {
        app.first.create_series("a", "A{yyyy}{seq:4}", json!({})).await.expect(201);
        let numbers = all((0..200).map(|n| {
            let (api, clock) = (app.first.clone(), clock.clone());
            async move {
                if n == 100 {
                    clock.set("2026-12-31T21:00:00Z");
                }
                let reply = api.issue("a", &format!("k{n}"), json!({})).await.expect(201);
                (
                    reply.body["period"].as_str().unwrap().to_owned(),
                    reply.value(),
                    reply.body["number"].as_str().unwrap().to_owned(),
                )
            }
        }))
        .await;
        let mut years: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for (period, value, number) in numbers {
            assert_eq!(number, format!("A{period}{value:04}"));
            years.entry(period).or_default().push(value);
        }
        assert!(years.keys().all(|year| ["2026", "2027"].contains(&year.as_str())) && years.contains_key("2027"), "{years:?}");
        assert_eq!(years.values().map(Vec::len).sum::<usize>(), 200);
        for values in years.into_values() {
            crate::together::contiguous(values, 1);
        }
    });
}

#[test]
fn c27_and_c30_fiscal_years() {
    at("2026-04-02T12:00:00Z", async |app, _| {
        for (name, starts, label) in [("start", "04-01", "start"), ("end", "04-01", "end"), ("oct", "10-01", "end")] {
            let settings =
                json!({"reset": "fiscal_year", "fiscal_year": {"starts": starts, "label": label}, "time_zone": "Asia/Kolkata"});
            let made = app.first.create_series(name, &format!("{name}/{{fy}}/{{seq:4}}"), settings).await.expect(201);
            assert_eq!(made.body["fiscal_year"], json!({"starts": starts, "label": label}));
        }
        assert_eq!(one(app, "start", "a").await, told("FY2026", "start/2026/0001", 1));
        assert_eq!(dated(app, "start", "2026-03-31").await, told("FY2025", "start/2025/0001", 1), "the old year goes on");
        assert_eq!(dated(app, "start", "2026-03-31").await.2, 2);
        assert_eq!(one(app, "start", "b").await.2, 2);
        assert_eq!(one(app, "end", "a").await, told("FY2027", "end/2027/0001", 1));
        assert_eq!(dated(app, "oct", "2026-09-30").await, told("FY2026", "oct/2026/0001", 1));
        assert_eq!(dated(app, "oct", "2026-10-01").await, told("FY2027", "oct/2027/0001", 1));
        let explained = app.first.get("/v1/series/oct/numbers/oct%2F2027%2F0009").await.expect(200);
        assert_eq!((&explained.body["period"], &explained.body["value"]), (&json!("FY2027"), &json!(9)));
        let audit = app.first.get("/v1/series/oct/audit?period=FY2027").await.expect(200);
        assert_eq!(audit.body["last"], 1);
        let _ = app.first.get("/v1/series/oct/audit?period=2027").await.problem(422, "invalid");
    });
}

#[test]
fn c28_and_c29_reset_and_pattern_must_fit() {
    prove(async |app| {
        let refused = app.first.create_series("a", "A{seq:4}", json!({"reset": "yearly"})).await.problem(422, "invalid");
        assert!(refused.body["errors"][0]["detail"].as_str().unwrap().contains("repeat"));
        let fiscal = json!({"reset": "fiscal_year", "fiscal_year": {"starts": "04-01", "label": "end"}});
        let _ = app.first.create_series("a", "A{yyyy}{seq:4}", fiscal).await.problem(422, "invalid");
        let _ = app.first.create_series("a", "A{fy}{seq:4}", json!({})).await.problem(422, "invalid");
        let warned = app.first.create_series("w", "W{yyyy}{seq:4}", json!({"reset": "never"})).await.expect(201);
        assert!(warned.body["warnings"][0].as_str().unwrap().contains("goes on"), "{}", warned.text);
        app.first.issue("w", "k", json!({"document_date": "2025-12-31"})).await.expect(201);
        assert_eq!(
            app.first.issue("w", "l", json!({"document_date": "2026-01-01"})).await.expect(201).body["number"],
            "W20260002"
        );
    });
}

#[test]
fn c31_each_reset_comes_when_it_should_and_once() {
    at("2025-11-20T00:30:00Z", async |app, clock| {
        let fiscal = json!({"starts": "04-01", "label": "start"});
        let series = [
            ("never", "N{seq}", json!({"reset": "never"})),
            ("yearly", "Y{yyyy}-{seq}", json!({"reset": "yearly"})),
            ("monthly", "M{yyyy}{mm}-{seq}", json!({"reset": "monthly"})),
            ("fiscal", "F{fy}-{seq}", json!({"reset": "fiscal_year", "fiscal_year": fiscal})),
        ];
        for (name, pattern, mut settings) in series.clone() {
            settings["time_zone"] = json!("America/New_York");
            app.first.create_series(name, pattern, settings).await.expect(201);
        }
        let mut last: BTreeMap<(&str, String), i64> = BTreeMap::new();
        for step in 0..60 {
            for (name, ..) in &series {
                let (period, _, value) = one(app, name, &format!("k{step}")).await;
                let before = last.insert((name, period), value).unwrap_or(0);
                assert_eq!(value, before + 1, "{name} in step {step}");
            }
            // 400 days, in steps that meet no month's length.
            clock.advance(400 * 86_400 / 60);
        }
        let periods =
            |name: &str| last.keys().filter(|(of, _)| *of == name).map(|(_, period)| period.as_str()).collect::<Vec<_>>();
        assert_eq!(periods("never"), ["all"]);
        assert_eq!(periods("yearly"), ["2025", "2026"]);
        assert_eq!(periods("fiscal"), ["FY2025", "FY2026"]);
        assert_eq!(periods("monthly").len(), 14, "{:?}", periods("monthly"));
    });
}

#[test]
fn c10_a_date_does_not_go_back_in_a_strict_series() {
    prove(async |app| {
        app.first.create_series("a", "A{yyyy}{seq:4}", json!({"chronology": "strict"})).await.expect(201);
        app.first.issue("a", "k", json!({"document_date": "2026-05-05"})).await.expect(201);
        let back = app.first.issue("a", "l", json!({"document_date": "2026-05-04"})).await.problem(422, "chronology");
        assert!(back.body["detail"].as_str().unwrap().contains("2026-05-05"), "it names the last date");
        assert_eq!(app.first.issue("a", "m", json!({"document_date": "2026-05-05"})).await.expect(201).value(), 2);
        // Crossing each other, from many sides: the dates follow the values all the same.
        let replies = all((0..40).map(|n| {
            let api = app.first.clone();
            async move {
                let date = format!("2026-06-{:02}", 1 + (n * 7) % 28);
                let reply = api.issue("a", &format!("x{n}"), json!({"document_date": date})).await;
                (reply.status, reply.body["value"].as_i64(), date)
            }
        }))
        .await;
        let mut given: Vec<_> =
            replies.into_iter().filter_map(|(status, value, date)| (status == 201).then_some((value, date))).collect();
        given.sort();
        assert!(given.is_sorted_by(|a, b| a.1 <= b.1), "{given:?}");
    });
}

/// A series that becomes strict begins with the latest date that a number has, and keeps it when a number is given back.
#[test]
fn a_series_becomes_strict_where_it_is() {
    prove(async |app| {
        let settings = json!({"reset": "never", "release": "last_unsent"});
        app.first.create_series("a", "A{seq:4}", settings).await.expect(201);
        let reserve = async |n: i64, date: &str| {
            let body = json!({"document_ref": format!("order-{n}"), "document_date": date});
            app.first.post("/v1/series/a/reservations", &format!("{n}-{date}"), body).await
        };
        let release = async |n: i64, life: i64| {
            let path = format!("/v1/series/a/numbers/A{n:04}/release");
            let _ = app.first.post(&path, "unused", json!({"reason": "not wanted", "life": life})).await.expect(200);
        };
        let _ = reserve(1, "2026-06-01").await.expect(201);
        let _ = reserve(2, "2026-01-01").await.expect(201);
        let _ = reserve(3, "2030-01-01").await.expect(201);
        release(3, 1).await;
        let strict = app.first.http.patch(format!("{}/v1/series/a", app.first.base)).bearer_auth(&app.first.key);
        let strict = strict.header("If-Match", "\"1\"").json(&json!({"chronology": "strict"}));
        let _ = testkit::Reply::of(strict).await.expect(200);
        let no = reserve(4, "2026-05-31").await.problem(422, "chronology");
        assert!(no.text.contains("2026-06-01"), "the date of 2030 went with its number: {}", no.text);
        let _ = reserve(5, "2026-07-01").await.expect(201);
        release(3, 2).await;
        let _ = reserve(6, "2026-05-31").await.problem(422, "chronology");
        let _ = reserve(7, "2026-06-01").await.expect(201);
        let audit = app.first.get("/v1/series/a/audit").await.expect(200);
        assert_eq!(audit.body["complete"], true, "what was dated before it became strict is as it is: {}", audit.text);
        // Where nothing can be released, the latest date is known.
        app.first.create_series("b", "B{seq:4}", json!({"reset": "never"})).await.expect(201);
        for date in ["2026-06-01", "2026-01-01"] {
            app.first.issue("b", date, json!({"document_date": date})).await.expect(201);
        }
        let strict = app.first.http.patch(format!("{}/v1/series/b", app.first.base)).bearer_auth(&app.first.key);
        let strict = strict.header("If-Match", "\"1\"").json(&json!({"chronology": "strict"}));
        let _ = testkit::Reply::of(strict).await.expect(200);
        let _ = app.first.issue("b", "back", json!({"document_date": "2026-05-31"})).await.problem(422, "chronology");
        let _ = app.first.issue("b", "on", json!({"document_date": "2026-06-01"})).await.expect(201);
    });
}

#[test]
fn dates_may_be_only_so_far_ahead() {
    at("2026-02-27T22:00:00Z", async |app, clock| {
        app.first.create_series("a", "A{seq:4}", json!({"reset": "never", "max_days_ahead": 2})).await.expect(201);
        assert_eq!(dated(app, "a", "2026-03-02").await.2, 1, "it is the 28th in Istanbul");
        let ahead = app.first.issue("a", "k", json!({"document_date": "2026-03-03"})).await.problem(422, "invalid");
        assert_eq!(ahead.body["errors"][0]["pointer"], "/document_date");
        clock.advance(86_400);
        assert_eq!(dated(app, "a", "2026-03-03").await.2, 2);
    });
}

#[test]
fn c35_to_c37_and_c39_widths() {
    prove(async |app| {
        let values = async |series: &str, count: usize| {
            let mut last = Value::Null;
            for n in 0..count {
                last = app.first.issue(series, &format!("k{n}"), json!({})).await.expect(201).body["number"].clone();
            }
            last
        };
        app.first.create_series("plain", "P{seq}", json!({"reset": "never"})).await.expect(201);
        assert_eq!(values("plain", 11).await, "P11");
        for (name, overflow) in [("narrow", "refuse"), ("wide", "widen")] {
            let settings = json!({"reset": "never", "overflow": overflow, "first": 9999});
            app.first.create_series(name, &format!("{name}{{seq:4}}"), settings).await.expect(201);
        }
        assert_eq!(values("narrow", 1).await, "narrow9999");
        app.first.issue("narrow", "next", json!({})).await.problem(409, "series-exhausted");
        app.first.issue("narrow", "two", json!({"count": 2})).await.problem(409, "series-exhausted");
        assert_eq!(values("wide", 2).await, "wide10000");
        // A text that can grow past its longest ends at the last number that fits.
        let settings = json!({"reset": "never", "max_length": 4, "first": 98});
        app.first.create_series("grows", "GR{seq}", settings).await.expect(201);
        app.first.issue("grows", "three", json!({"count": 3})).await.problem(409, "series-exhausted");
        assert_eq!(values("grows", 2).await, "GR99");
        let _ = app.first.create_series("long", "LONG-{seq:14}", json!({"reset": "never"})).await.problem(422, "invalid");
        // The Turkish form: three letters, the year, nine digits.
        app.first.create_series("gib", "GIB{yyyy}{seq:9}", json!({"first": 999_999_999})).await.expect(201);
        let dated = json!({"document_date": "2026-01-01"});
        assert_eq!(app.first.issue("gib", "a", dated.clone()).await.expect(201).body["number"], "GIB2026999999999");
        app.first.issue("gib", "b", dated).await.problem(409, "series-exhausted");
    });
}

#[test]
fn c45_and_c46_patterns_that_are_none() {
    prove(async |app| {
        app.first.create_series("abc", "ABC{seq:4}", json!({"reset": "never"})).await.expect(201);
        let _ = app.first.create_series("low", "abc{seq:4}", json!({"reset": "never"})).await.problem(409, "pattern-overlaps");
        let lookalikes = ["АВС{seq}", "ABC\u{200b}{seq}", "e\u{301}{seq}", "é{seq}", " ABC{seq}", "ABC{seq} "];
        let long = "x".repeat(10_000);
        for bad in
            lookalikes.into_iter().chain(["ABC", "{seq}{seq}", "{seq}{what}", "{seq", "seq}", "{}", "{check:mod97}{seq}", &long])
        {
            let refused = app.first.create_series("bad", bad, json!({"reset": "never"})).await.problem(422, "invalid");
            assert_eq!(refused.body["errors"][0]["pointer"], "/pattern", "{bad}");
            assert!(refused.body["errors"][0]["detail"].as_str().unwrap().contains("at character"), "{}", refused.text);
        }
        for bad in ["ABC", "abc ", "а", "a\u{200b}", ""] {
            let body = json!({"series": bad, "pattern": "Z{seq}", "reset": "never"});
            let refused = app.first.post("/v1/series", &new_key(), body).await.problem(422, "invalid");
            assert_eq!(refused.body["errors"][0]["pointer"], "/series", "{bad:?}");
        }
        let checked = json!({"reset": "never", "max_length": 30});
        app.first.create_series("checked", "RF{seq:6}{check:mod97}", checked).await.expect(201);
        let made = app.first.issue("checked", "k", json!({})).await.expect(201).body["number"].as_str().unwrap().to_owned();
        assert_eq!(app.first.get(&format!("/v1/series/checked/numbers/{made}")).await.expect(200).body["state"], "issued");
        let wrong = format!("{}{}", &made[..made.len() - 1], if made.ends_with('1') { '2' } else { '1' });
        let _ = app.first.get(&format!("/v1/series/checked/numbers/{wrong}")).await.problem(404, "not-found");
    });
}

/// Random series over ten years of random instants: unique texts, contiguous periods, and the periods that the zone's
/// calendar says.
#[test]
fn ten_years_in_eight_zones() {
    const ZONES: [&str; 8] = [
        "Europe/Istanbul",
        "America/New_York",
        "Asia/Kolkata",
        "Pacific/Auckland",
        "Pacific/Kiritimati",
        "America/St_Johns",
        "Europe/London",
        "Pacific/Pago_Pago",
    ];
    let clock = TestClock::at("2020-01-01T00:00:00Z");
    prove_with(Setup { clock: Some(clock.clone()), ..Setup::default() }, async |app| {
        let mut seed = 0x5eed_u64;
        let mut draw = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let shapes = [
            ("never", "{seq}"),
            ("yearly", "{yyyy}-{seq}"),
            ("quarterly", "{yy}{q}-{seq:6}"),
            ("monthly", "{yyyy}{mm}-{seq}"),
            ("daily", "{yyyy}{mm}{dd}-{seq:5}"),
            ("fiscal_year", "{fy}-{seq}"),
        ];
        let (mut last, mut texts) = (BTreeMap::<(String, String), i64>::new(), HashSet::new());
        for (zone_at, zone) in ZONES.iter().enumerate() {
            for (reset, shape) in shapes {
                let name = format!("z{zone_at}-{reset}");
                let mut settings = json!({"reset": reset, "time_zone": zone, "max_length": 60});
                if reset == "fiscal_year" {
                    settings["fiscal_year"] = json!({"starts": "04-01", "label": "end"});
                }
                app.first.create_series(&name, &format!("Z{zone_at}{}-{shape}", &reset[..2]), settings).await.expect(201);
            }
        }
        // Instants where calendars are odd: year ends, leap days, the hours at which clocks are changed; and any others.
        let odd = [
            "2020-02-29",
            "2024-02-29",
            "2020-12-31",
            "2021-12-31",
            "2023-12-31",
            "2025-03-09",
            "2025-11-02",
            "2026-03-29",
            "2026-10-25",
            "2028-02-29",
        ];
        for n in 0..60 {
            let day: jiff::Timestamp = if n % 2 == 0 {
                format!("{}T00:00:00Z", odd[usize::try_from(draw(10)).unwrap()]).parse().unwrap()
            } else {
                jiff::Timestamp::from_second(1_577_836_800 + i64::try_from(draw(315_532_800)).unwrap()).unwrap()
            };
            let instant = jiff::Timestamp::from_second(day.as_second() + i64::try_from(draw(93_600)).unwrap()).unwrap();
            clock.set(&instant.to_string());
            let first = &app.first;
            let issued = all(ZONES.iter().enumerate().flat_map(|(zone_at, zone)| {
                shapes.iter().copied().map(move |(reset, _)| {
                    let (api, name) = (first.clone(), format!("z{zone_at}-{reset}"));
                    async move {
                        let reply = api.issue(&name, &format!("k{n}"), json!({})).await.expect(201);
                        (name, reset, *zone, reply)
                    }
                })
            }))
            .await;
            for (name, reset, zone, reply) in issued {
                let local = instant.to_zoned(jiff::tz::TimeZone::get(zone).unwrap());
                let (y, m, d) = (local.year(), local.month(), local.day());
                let period = match reset {
                    "never" => "all".to_owned(),
                    "yearly" => local.strftime("%Y").to_string(),
                    "quarterly" => format!("{y}-Q{}", (m + 2) / 3),
                    "monthly" => local.strftime("%Y-%m").to_string(),
                    "daily" => local.strftime("%Y-%m-%d").to_string(),
                    _ => format!("FY{}", if m >= 4 { y + 1 } else { y }),
                };
                assert_eq!(reply.body["period"], period, "{name} at {instant}");
                assert_eq!(reply.body["document_date"], format!("{y:04}-{m:02}-{d:02}"));
                let before = last.insert((name.clone(), period), reply.value()).unwrap_or(0);
                assert_eq!(reply.value(), before + 1, "{name} at {instant}");
                assert!(texts.insert(reply.body["number"].as_str().unwrap().to_owned()), "{name}: {} twice", reply.text);
            }
        }
    });
}
