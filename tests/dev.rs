//! `seriatim dev`: one command from nothing to numbers.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use serde_json::{Value, json};
use testkit::{Reply, program, run_program};
use tokio::process::Command;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("seriatim-test-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

#[test]
fn ephemeral_once_does_the_main_job_and_leaves_nothing() {
    block_on(async {
        let temporary = folder("ephemeral");
        fs::create_dir(&temporary).unwrap();
        // Another account's server must be able to enter it.
        fs::set_permissions(&temporary, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let done = run_program(&["dev", "--ephemeral", "--once"], &[("TMPDIR", temporary.to_str().unwrap())]).await;
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(said.contains("15 documents, 15 new numbers, 0 known already"), "{said}");
        assert!(said.contains("periods 2   gaps 0   duplicates 0   impossible 0"), "{said}");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "the data folder is gone");
        fs::remove_dir(&temporary).unwrap();
    });
}

#[test]
fn a_second_start_finds_its_data_and_everything_stops_on_sigterm() {
    block_on(async {
        let data = folder("data");
        let ready_file = data.with_extension("ready");
        let arguments = ["dev", "--once", "--data", data.to_str().unwrap()];
        let first = run_program(&arguments, &[]).await;
        assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));

        let mut command = Command::new(program());
        command.args(["dev", "--port", "0", "--data", data.to_str().unwrap(), "--ready-file", ready_file.to_str().unwrap()]);
        let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut waited = 0;
        while !ready_file.exists() {
            waited += 1;
            assert!(waited < 600, "it is not ready after a minute");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let ready: Value = serde_json::from_str(&fs::read_to_string(&ready_file).unwrap()).unwrap();
        let (base, key) = (ready["base_url"].as_str().unwrap(), ready["admin_key"].as_str().unwrap());
        let http = reqwest::Client::new();
        let issue = http.post(format!("{base}/v1/series/invoices/numbers")).bearer_auth(key).header("Idempotency-Key", "mine");
        let issued = Reply::of(issue.json(&json!({"document_date": "2026-05-01"}))).await.expect(201);
        assert_eq!(issued.body["number"], "INV2026000011", "the ten of the first start are there");
        let tenant = http.get(format!("{base}/v1/tenants/{}", ready["tenant"].as_str().unwrap()));
        Reply::of(tenant.bearer_auth(ready["operator_key"].as_str().unwrap())).await.expect(200);
        let mut database =
            <sqlx::PgConnection as sqlx::Connection>::connect(ready["directory_url"].as_str().unwrap()).await.unwrap();
        let tenants: i64 = sqlx::query_scalar("select count(*) from tenant").fetch_one(&mut database).await.unwrap();
        assert_eq!(tenants, 1);

        let second = run_program(&arguments, &[]).await;
        let refused = String::from_utf8(second.stderr).unwrap();
        assert!(!second.status.success() && refused.contains("another program is using"), "{refused}");
        let port = base.rsplit(':').next().unwrap();
        let busy = run_program(&["dev", "--ephemeral", "--port", port], &[]).await;
        let refused = String::from_utf8(busy.stderr).unwrap();
        assert!(!busy.status.success() && refused.contains("choose another port, for example --port"), "{refused}");

        let pids: Vec<i64> = ready["pids"].as_object().unwrap().values().map(|pid| pid.as_i64().unwrap()).collect();
        let ended =
            tokio::process::Command::new("kill").args(["-TERM", &running.id().unwrap().to_string()]).status().await.unwrap();
        assert!(ended.success());
        let output = running.wait_with_output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("15 documents, 0 new numbers, 15 known already"), "{said}");
        assert!(said.contains("curl -s http://127.0.0.1:"), "{said}");
        for pid in pids {
            assert!(!PathBuf::from(format!("/proc/{pid}")).exists(), "{pid} still runs");
        }
        fs::remove_file(&ready_file).unwrap();
        fs::remove_dir_all(&data).unwrap();
    });
}

#[test]
fn without_postgresql_it_says_what_to_type() {
    block_on(async {
        let done = run_program(&["dev", "--ephemeral", "--once"], &[("SERIATIM_PG_BIN", "/nonexistent")]).await;
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success());
        assert!(said.contains("PostgreSQL (version 15 or later) was not found") && said.contains("SERIATIM_PG_BIN"), "{said}");
    });
}

/// A signal at any moment of the start: exit 0, and no server is left.
#[test]
fn a_signal_during_the_start_leaves_nothing_running() {
    block_on(async {
        for millis in [300, 1_200, 2_500] {
            let data = folder(&format!("signal-{millis}"));
            let mut command = Command::new(program());
            command.args(["dev", "--port", "0", "--data", data.to_str().unwrap()]).stdout(Stdio::null()).stderr(Stdio::piped());
            let running = command.kill_on_drop(true).spawn().unwrap();
            tokio::time::sleep(Duration::from_millis(millis)).await;
            let _ = Command::new("kill").args(["-INT", &running.id().unwrap().to_string()]).status().await.unwrap();
            let output = running.wait_with_output().await.unwrap();
            assert!(output.status.success(), "after {millis} ms: {}", String::from_utf8_lossy(&output.stderr));
            assert!(!data.join("postgres/postmaster.pid").exists(), "after {millis} ms the server still runs");
            let _ = fs::remove_dir_all(&data);
        }
    });
}

/// The program is killed outright: the keeper stops the server, and the next start finds the data.
#[test]
fn after_a_kill_the_server_stops_and_the_next_start_works() {
    block_on(async {
        let data = folder("kill");
        let ready_file = data.with_extension("ready");
        let mut command = Command::new(program());
        command.args(["dev", "--port", "0", "--data", data.to_str().unwrap(), "--ready-file", ready_file.to_str().unwrap()]);
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        while !ready_file.exists() {
            assert!(running.try_wait().unwrap().is_none(), "it ended");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        running.kill().await.unwrap();
        let again = run_program(&["dev", "--once", "--data", data.to_str().unwrap()], &[]).await;
        let said = String::from_utf8_lossy(&again.stdout).into_owned();
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
        assert!(said.contains("15 documents, 0 new numbers, 15 known already"), "{said}");
        fs::remove_file(&ready_file).unwrap();
        fs::remove_dir_all(&data).unwrap();
    });
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    block_on(async {
        let data = folder("foreign");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("thesis.txt"), "years of work").unwrap();
        let before = fs::metadata(&data).unwrap().permissions();
        let done = run_program(&["dev", "--once", "--data", data.to_str().unwrap()], &[]).await;
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success() && said.contains("has other files in it; choose a new or an empty folder"), "{said}");
        assert_eq!(fs::metadata(&data).unwrap().permissions(), before);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
        fs::remove_dir_all(&data).unwrap();
    });
}
