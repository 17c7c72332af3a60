//! Real orders through the command line.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::{Value, json};
use testkit::{App, prove, run_program};

/// 830 orders of the years 1996 to 1998. They lie beside the project; a project on its own makes as many.
fn orders() -> PathBuf {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/orders.csv");
    if beside.exists() {
        return beside;
    }
    let mut text = "order_id,order_date\n".to_owned();
    for (year, count) in [(1996, 152), (1997, 408), (1998, 270)] {
        for n in 0..count {
            text.push_str(&format!("{year}-{n},{year}-{:02}-{:02}\n", n % 12 + 1, n % 28 + 1));
        }
    }
    let made = std::env::temp_dir().join(format!("seriatim-orders-{}.csv", std::process::id()));
    fs::write(&made, text).expect("a file of orders");
    made
}

async fn issue(app: &App) -> Vec<Value> {
    let file = orders();
    let args = [
        "issue",
        "--series",
        "orders",
        "--from-csv",
        file.to_str().unwrap(),
        "--ref-column",
        "order_id",
        "--date-column",
        "order_date",
        "--json",
    ];
    let done = run_program(&args, &[("SERIATIM_URL", &app.base), ("SERIATIM_API_KEY", &app.first.key)]).await;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    if file.starts_with(std::env::temp_dir()) {
        fs::remove_file(&file).unwrap();
    }
    String::from_utf8(done.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_orders_of_three_years_are_numbered_once() {
    prove(async |app| {
        app.first.create_series("orders", "ORD{yyyy}{seq:6}", json!({})).await.expect(201);
        let first = issue(app).await;
        assert_eq!(first.len(), 830);
        assert!(first.iter().all(|row| row["new"] == true));
        let texts: BTreeSet<_> = first.iter().map(|row| row["number"].as_str().unwrap()).collect();
        assert_eq!(texts.len(), 830);
        let again = issue(app).await;
        assert!(again.iter().all(|row| row["new"] == false), "a second run issues nothing");
        let numbers = |rows: &[Value]| rows.iter().map(|row| row["number"].clone()).collect::<Vec<_>>();
        assert_eq!(numbers(&first), numbers(&again));
        let audit = app.first.get("/v1/series/orders/audit").await.expect(200);
        let periods = audit.body["periods"].as_array().unwrap();
        let counts: Vec<_> = periods
            .iter()
            .map(|p| (p["period"].as_str().unwrap(), p["first"].as_i64().unwrap(), p["last"].as_i64().unwrap()))
            .collect();
        assert_eq!(counts, [("1996", 1, 152), ("1997", 1, 408), ("1998", 1, 270)]);
        assert_eq!((&audit.body["states"], &audit.body["complete"]), (&json!({"issued": 830}), &json!(true)));
    });
}

#[test]
fn a_file_that_can_not_be_right_issues_nothing_and_says_where() {
    prove(async |app| {
        app.first.create_series("orders", "ORD{yyyy}{seq:6}", json!({})).await.expect(201);
        let file = std::env::temp_dir().join(format!("seriatim-bad-{}.csv", std::process::id()));
        let environment = [("SERIATIM_URL", app.base.as_str()), ("SERIATIM_API_KEY", app.first.key.as_str())];
        for (text, column, said) in [
            ("id,date\n1,2026-01-01\n", "order", "there is no column order; there are id, date"),
            ("id,date\n1,2026-01-01\n,2026-01-02\n", "id", "line 3"),
            ("id,date\n1,2026-01-32\n", "id", "line 2 (1): /document_date must be a date that exists"),
        ] {
            fs::write(&file, text).unwrap();
            let args = [
                "issue",
                "--series",
                "orders",
                "--from-csv",
                file.to_str().unwrap(),
                "--ref-column",
                column,
                "--date-column",
                "date",
            ];
            let done = run_program(&args, &environment).await;
            let error = String::from_utf8(done.stderr).unwrap();
            assert!(!done.status.success() && error.contains(said), "{error}");
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(app.first.get("/v1/series/orders/audit").await.expect(200).body["states"], json!({}));
    });
}
