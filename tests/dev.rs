//! `seriatim dev`: one command from nothing to numbers.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use testkit::{Reply, program, run_program};
use tokio::process::{Child, Command};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("seriatim-test-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// A `seriatim dev` that serves, on a data folder of its own.
struct Serving {
    data: PathBuf,
    ready_file: PathBuf,
    child: Child,
}

impl Serving {
    async fn start(name: &str) -> Self {
        let data = folder(name);
        let ready_file = data.with_extension("ready");
        let _ = fs::remove_file(&ready_file);
        let mut command = Command::new(program());
        command.args(["dev", "--port", "0", "--data", data.to_str().unwrap(), "--ready-file", ready_file.to_str().unwrap()]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut this = Self { data, ready_file, child };
        soon("it serves", async || {
            assert!(this.child.try_wait().unwrap().is_none(), "it ended");
            this.ready_file.exists().then_some(())
        })
        .await;
        this
    }

    fn ready(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(&self.ready_file).unwrap()).unwrap()
    }

    fn pid(&self, of: &str) -> u32 {
        self.ready()["pids"][of].as_u64().unwrap().try_into().unwrap()
    }

    /// The number for this key, asked for until there is an answer.
    async fn number(&self, key: &str) -> Value {
        let ready = self.ready();
        let (base, secret) = (ready["base_url"].as_str().unwrap(), ready["admin_key"].as_str().unwrap());
        let http = reqwest::Client::new();
        let issue = || http.post(format!("{base}/v1/series/invoices/numbers")).bearer_auth(secret).header("Idempotency-Key", key);
        let answer = soon("a number", async || {
            let answer = issue().json(&json!({"document_date": "2026-05-01"})).send().await.unwrap();
            (answer.status() == 201).then_some(answer)
        });
        answer.await.json::<Value>().await.unwrap()["number"].clone()
    }

    /// The keepers that watch this folder.
    fn keepers(&self) -> Vec<u32> {
        let data = self.data.to_str().unwrap();
        let found = processes().into_iter().filter(|process| process.words.contains(&"seriatim-keeper".to_owned()));
        found.filter(|process| process.words.iter().any(|word| word == data)).map(|process| process.pid).collect()
    }

    /// Its end, which must come by itself, and what it said.
    async fn ended(self) -> Output {
        let output = tokio::time::timeout(Duration::from_mins(1), self.child.wait_with_output()).await;
        let _ = fs::remove_file(&self.ready_file);
        let _ = fs::remove_dir_all(&self.data);
        output.expect("it ends").unwrap()
    }
}

struct Process {
    pid: u32,
    parent: u32,
    words: Vec<String>,
}

/// All processes of the machine; those of a killed test that nobody waited for have no words.
fn processes() -> Vec<Process> {
    let look = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name, in parentheses, may hold anything; the state and the parent come after it.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        Some(Process { pid, parent, words })
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(look).collect()
}

/// Whether it runs and was not only left unreaped.
fn runs(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

async fn kill(pids: &[u32]) {
    let pids = pids.iter().map(u32::to_string);
    assert!(Command::new("kill").arg("-9").args(pids).status().await.unwrap().success());
}

/// Looks until there is something.
async fn soon<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "not after a minute: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A statement that keeps its process of the server busy for four seconds by the clock, whatever becomes of the server.
async fn keep_busy(database: &str) -> u32 {
    let mut busy = PgConnection::connect(database).await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut busy).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "it ends with the server")]
    tokio::spawn(async move {
        let spin = "do $$ declare till timestamptz := clock_timestamp() + '4 s'; begin
                      while clock_timestamp() < till loop perform 1; end loop; end $$";
        let _ = sqlx::raw_sql(spin).execute(&mut busy).await;
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    pid.try_into().unwrap()
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
        assert!(!ready_file.exists(), "what is not ready any more does not say so");
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

/// The server is killed while everything serves, and one of its processes does not notice for a while.
#[test]
fn a_killed_server_is_started_again_where_it_was() {
    block_on(async {
        let dev = Serving::start("revive").await;
        assert_eq!(dev.number("before").await, "INV2026000011");
        let before = dev.ready();
        let (server, keepers) = (dev.pid("postgres"), dev.keepers());
        let orphan = keep_busy(before["shard_urls"]["shard_1"].as_str().unwrap()).await;
        kill(&[server]).await;
        assert!(runs(orphan), "a process of the old server is still at work");
        assert_eq!(dev.number("after").await, "INV2026000012");
        assert_eq!(dev.number("before").await, "INV2026000011");
        soon("the ready file names the new server", async || (dev.pid("postgres") != server).then_some(())).await;
        let mut after = dev.ready();
        after["pids"] = before["pids"].clone();
        assert_eq!(after, before, "every address and key is as it was");
        let now = dev.keepers();
        assert!(now.len() == 1 && now != keepers, "one keeper, the new server's: {keepers:?}, then {now:?}");

        let (new, keeper) = (dev.pid("postgres"), now[0]);
        let _ = Command::new("kill").args(["-TERM", &dev.pid("seriatim").to_string()]).status().await.unwrap();
        let output = dev.ended().await;
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let told = "PostgreSQL ended without being asked (signal: 9 (SIGKILL)); starting it again";
        assert_eq!(said.lines().filter(|line| line.contains(told)).count(), 1, "{said}");
        assert!(!runs(new) && !runs(keeper));
    });
}

#[test]
fn a_server_that_ends_again_and_again_ends_the_program() {
    block_on(async {
        let mut dev = Serving::start("again").await;
        let mut killed = 0;
        soon("it gives up", async || {
            // Its ready file goes with it.
            let server = if dev.ready_file.exists() { dev.pid("postgres") } else { killed };
            if server != killed && runs(server) {
                kill(&[server]).await;
                killed = server;
            }
            dev.child.try_wait().unwrap()
        })
        .await;
        let output = dev.ended().await;
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("PostgreSQL ended 5 times within a minute, so it is not started again"), "{said}");
    });
}

/// The machine dies: no process is left to tidy up. After the reboot the pid in the server's pid file is somebody
/// else's, who has the same account. Besides, a process of the old server still works on the data: a reboot would
/// not leave one, a kill of everything but it does, and the new server must wait for it.
#[test]
fn after_the_machine_died_nobody_else_is_taken_for_the_server() {
    block_on(async {
        let mut dev = Serving::start("reboot").await;
        assert_eq!(dev.number("before").await, "INV2026000011");
        let orphan = keep_busy(dev.ready()["shard_urls"]["shard_1"].as_str().unwrap()).await;
        let server = dev.pid("postgres");
        let children = processes().into_iter().filter(|process| process.parent == server && process.pid != orphan);
        // Keeper and program first, or they would act.
        let all: Vec<_> = dev.keepers().into_iter().chain([dev.pid("seriatim"), server]).collect();
        kill(&all).await;
        for child in children {
            // It may have noticed by itself already.
            let _ = Command::new("kill").args(["-9", &child.pid.to_string()]).stderr(Stdio::null()).status().await;
        }
        dev.child.wait().await.unwrap();

        let owner = fs::metadata(dev.data.join("postgres")).unwrap();
        let mut stranger = Command::new("sleep");
        let mut stranger = stranger.arg("300").uid(owner.uid()).gid(owner.gid()).kill_on_drop(true).spawn().unwrap();
        let pid_file = dev.data.join("postgres/postmaster.pid");
        let text = fs::read_to_string(&pid_file).unwrap();
        let (_, rest) = text.split_once('\n').unwrap();
        fs::write(&pid_file, format!("{}\n{rest}", stranger.id().unwrap())).unwrap();

        assert!(runs(orphan), "a process of the old server is still at work");
        let again = run_program(&["dev", "--once", "--data", dev.data.to_str().unwrap()], &[]).await;
        assert!(stranger.try_wait().unwrap().is_none(), "the stranger was ended");
        let said = String::from_utf8_lossy(&again.stderr).into_owned();
        assert!(again.status.success(), "{said}");
        let log = fs::read_to_string(dev.data.join("postgres.log")).unwrap();
        assert!(log.contains("pre-existing shared memory block"), "PostgreSQL made its own check: {log}");
        let done = String::from_utf8_lossy(&again.stdout).into_owned();
        assert!(done.contains("15 documents, 0 new numbers, 15 known already"), "{done}");
        assert!(done.contains("total             16 numbers"), "{done}");
        stranger.kill().await.unwrap();
        let _ = dev.ended().await;
    });
}

/// A file that a dying machine left empty (or that somebody removed) is made anew, and the data is as it was.
#[test]
fn lost_passwords_are_drawn_anew() {
    block_on(async {
        let data = folder("passwords");
        let arguments = ["dev", "--once", "--data", data.to_str().unwrap()];
        assert!(run_program(&arguments, &[]).await.status.success());
        fs::write(data.join("passwords"), "").unwrap();
        fs::write(data.join("postgres/postmaster.pid"), "").unwrap();
        let again = run_program(&arguments, &[]).await;
        let (done, said) = (String::from_utf8_lossy(&again.stdout), String::from_utf8_lossy(&again.stderr));
        assert!(again.status.success() && done.contains("15 documents, 0 new numbers, 15 known already"), "{done}\n{said}");
        fs::remove_dir_all(&data).unwrap();
    });
}

/// Not even root may make a folder there.
#[test]
fn a_folder_that_can_not_be_written_is_a_sentence() {
    block_on(async {
        if !Path::new("/sys/kernel").exists() {
            return;
        }
        let done = run_program(&["dev", "--once", "--data", "/sys/kernel/seriatim"], &[]).await;
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success() && said.contains("choose a folder that this account may write"), "{said}");
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

/// Killed while its folder is being filled, before there is a server: nothing is kept all the same.
#[test]
fn an_ephemeral_one_killed_during_set_up_keeps_nothing() {
    block_on(async {
        let temporary = folder("sitter");
        fs::create_dir(&temporary).unwrap();
        fs::set_permissions(&temporary, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = Command::new(program());
        command.args(["dev", "--ephemeral", "--once"]).env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = command.kill_on_drop(true).spawn().unwrap();
        let inside = || fs::read_dir(&temporary).unwrap().flatten().next();
        let filled = || inside().is_some_and(|made| fs::read_dir(made.path()).is_ok_and(|files| files.count() > 1));
        while !filled() {
            assert!(running.try_wait().unwrap().is_none(), "it ended");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        running.kill().await.unwrap();
        let mut waited = 0;
        while inside().is_some() {
            waited += 1;
            assert!(waited < 200, "the folder is still there");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        fs::remove_dir(&temporary).unwrap();
    });
}
