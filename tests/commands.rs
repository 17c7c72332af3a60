//! The command line as an administrator uses it.

use std::{fs, process::Output};

use serde_json::{Value, json};
use testkit::{App, prove, run_program};

async fn run(app: &App, words: &[&str]) -> Output {
    run_program(words, &[("SERIATIM_URL", &app.first.base), ("SERIATIM_API_KEY", &app.first.key)]).await
}

/// What it says where it does what is asked.
async fn said(app: &App, words: &[&str]) -> String {
    let output = run(app, words).await;
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What it says where it does not.
async fn complaint(app: &App, words: &[&str]) -> String {
    let output = run(app, words).await;
    assert!(!output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_series_is_made_looked_at_and_changed_by_files() {
    prove(async |app| {
        let folder = std::env::temp_dir().join(format!("seriatim-commands-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("invoices.yaml");
        let file = file.to_str().unwrap();
        fs::write(file, "series: invoices\npattern: \"INV{yyyy}-{seq:6}\"\nmax_length: 20\n").unwrap();
        let made = said(app, &["series", "create", "--file", file]).await;
        assert!(made.contains("reset: yearly") && made.contains("version: 1"), "{made}");
        said(app, &["series", "create", "--series", "notes", "pattern=N-{seq:4}", "reset=never", "time_zone=UTC"]).await;
        let listed = said(app, &["series", "list"]).await;
        assert!(listed.lines().count() == 2 && listed.contains("INV{yyyy}-{seq:6}") && listed.contains("N-{seq:4}"), "{listed}");

        // Shown into a file, changed there, and the difference is seen before it is applied.
        said(app, &["series", "show", "invoices", "--file", file]).await;
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains("INV{yyyy}-{seq:6}") && text.contains("chronology: none"), "{text}");
        fs::write(file, text.replace("INV{yyyy}", "RE{yyyy}").replace("chronology: none", "chronology: strict")).unwrap();
        let seen = said(app, &["series", "set", "invoices", "--file", file, "--dry-run"]).await;
        assert!(seen.contains("- pattern: \"INV{yyyy}-{seq:6}\"\n+ pattern: \"RE{yyyy}-{seq:6}\""), "{seen}");
        assert!(seen.contains("the next number: INV20") && seen.contains("-> RE20"), "{seen}");
        let asks = complaint(app, &["series", "set", "invoices", "--file", file]).await;
        assert!(asks.contains("--yes"), "{asks}");
        assert_eq!(app.first.get("/v1/series/invoices").await.expect(200).body["version"], 1, "nothing was changed");
        let set = said(app, &["series", "set", "invoices", "--file", file, "--yes"]).await;
        assert!(set.ends_with("invoices is active (version 2)\n"), "{set}");

        // The file says version 1: made again it is late, and is told; beside others' changes it may go.
        let again = complaint(app, &["series", "set", "invoices", "--file", file, "release=last_unsent", "--yes"]).await;
        assert!(again.contains("release: was \"never\", you want \"last_unsent\", it is \"never\""), "{again}");
        said(app, &["series", "show", "invoices", "--file", file]).await;
        said(app, &["series", "set", "invoices", "max_days_ahead=30", "--yes"]).await;
        let merged = said(app, &["series", "set", "invoices", "--file", file, "release=last_unsent", "--yes", "--merge"]).await;
        assert!(merged.ends_with("invoices is active (version 4)\n"), "{merged}");
        let now = app.first.get("/v1/series/invoices").await.expect(200).body;
        assert_eq!((&now["max_days_ahead"], &now["release"]), (&json!(30), &json!("last_unsent")), "what others did is kept");

        let next =
            said(app, &["series", "preview", "invoices", "--date", "2026-05-01", "--count", "2", "pattern=X{yyyy}-{seq:3}"])
                .await;
        assert_eq!(next, "period 2026\nX2026-001\nX2026-002\n");
        let meets = said(app, &["series", "preview", "invoices", "pattern=N-{seq:4}", "reset=never"]).await;
        assert!(meets.contains("would be refused (pattern-overlaps)"), "{meets}");

        assert_eq!(said(app, &["series", "pause", "invoices"]).await, "invoices is paused (version 5)\n");
        assert_eq!(said(app, &["series", "pause", "invoices"]).await, "invoices is paused (version 5)\n");
        let _ = app.first.issue("invoices", "k", json!({})).await.problem(409, "series-paused");
        assert_eq!(said(app, &["series", "resume", "invoices"]).await, "invoices is active (version 6)\n");
        let _ = app.first.issue("invoices", "k", json!({})).await.expect(201);
        fs::remove_dir_all(&folder).unwrap();
    });
}

/// What is wrong is said for a person, and whole for a program; and at once where waiting is no use.
#[test]
fn what_a_command_can_not_do_is_said() {
    prove(async |app| {
        let typo = complaint(app, &["series", "create", "--series", "a", "patern=A{seq}"]).await;
        assert!(typo.contains("unknown field `patern`"), "{typo}");
        let bad = complaint(app, &["series", "create", "--series", "a", "pattern=A{seq}", "first=-1", "time_zone=Mars"]).await;
        assert!(bad.contains("/time_zone must be an IANA") && bad.contains("/first must be from 0"), "{bad}");
        let fixed = complaint(app, &["series", "show", "a"]).await;
        assert!(fixed.contains("series a"), "{fixed}");
        let program: Value = serde_json::from_str(&complaint(app, &["series", "show", "a", "--json"]).await).unwrap();
        assert_eq!((&program["type"], &program["status"]), (&json!("/problems/not-found"), &json!(404)));
        let begun = std::time::Instant::now();
        let nowhere = complaint(app, &["series", "list", "--url", "nowhere"]).await;
        assert!(nowhere.contains("no answer from nowhere"), "{nowhere}");
        assert!(begun.elapsed().as_secs() < 15, "an address that is none is not tried again");
    });
}
