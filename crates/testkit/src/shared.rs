//! One cluster for the whole test program, and its databases cloned for each test.
//!
//! A static is never dropped; the cluster's keeper stops the server and removes its folder when the test
//! program is gone, also after a kill.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use cluster::{Cluster, Options};
use directory::Owner;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::sync::OnceCell;

/// The shards of every test.
pub(crate) const SHARDS: [&str; 2] = ["shard_1", "shard_2"];

static CLUSTER: OnceCell<Arc<Mutex<Cluster>>> = OnceCell::const_new();
static NEXT: AtomicU32 = AtomicU32::new(1);

/// The databases of one test.
#[derive(Clone, Debug)]
pub(crate) struct Databases {
    set: u32,
    cluster: Arc<Mutex<Cluster>>,
}

async fn start() -> Arc<Mutex<Cluster>> {
    // Not durable: kills of any process are survived all the same, and tests do not wait for the disk.
    let options = Options { folder: None, durable: false, max_connections: 400, settings: &[] };
    let cluster = tokio::task::spawn_blocking(move || Cluster::start(&options, &|_| {})).await;
    let cluster = cluster.expect("no panic").expect("PostgreSQL for the tests");
    // The databases that a cluster is made with become the templates. Two shards are alike, so one will do.
    ledger::migrate(&cluster.url("seriatim_owner", "shard_1")).await.expect("the shard's migrations");
    let mut owner = Owner::connect(&cluster.url("seriatim_owner", "directory")).await.expect("the directory");
    owner.migrate().await.expect("the directory's migrations");
    owner.register_shards(&SHARDS.map(str::to_owned)).await.expect("shards are registered");
    owner.close().await.expect("the owner leaves");
    Arc::new(Mutex::new(cluster))
}

impl Databases {
    /// On the server that all tests share.
    pub(crate) async fn clone_set() -> Self {
        Self::on(CLUSTER.get_or_init(start).await.clone()).await
    }

    /// On a server of its own, which the test may kill.
    pub(crate) async fn on_own_server() -> Self {
        Self::on(start().await).await
    }

    async fn on(cluster: Arc<Mutex<Cluster>>) -> Self {
        let this = Self { set: NEXT.fetch_add(1, Ordering::Relaxed), cluster };
        let mut admin = this.admin().await;
        for (name, template) in [("directory", "directory"), ("shard_1", "shard_1"), ("shard_2", "shard_1")] {
            let sql = format!("create database {} template {template} owner seriatim_owner", this.database(name));
            admin.execute(AssertSqlSafe(sql)).await.expect("a database for the test");
        }
        this
    }

    pub(crate) async fn drop_set(self) {
        let mut admin = self.admin().await;
        for name in ["directory", "shard_1", "shard_2"] {
            let sql = format!("drop database {} with (force)", self.database(name));
            admin.execute(AssertSqlSafe(sql)).await.expect("the test's database goes");
        }
    }

    fn database(&self, name: &str) -> String {
        format!("t{}_{name}", self.set)
    }

    pub(crate) fn url(&self, role: &str, name: &str) -> String {
        self.cluster().url(role, &self.database(name))
    }

    pub(crate) fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shard_urls(&self, role: &str) -> BTreeMap<String, String> {
        SHARDS.map(|shard| (shard.to_owned(), self.url(role, shard))).into()
    }

    /// Kills what is to be killed and starts again what does not do so by itself.
    pub(crate) async fn kill(&self, victim: Victim) -> &'static str {
        let postmaster = self.cluster().pid();
        let (pids, what) = match victim {
            Victim::Postmaster => (vec![postmaster], "postmaster killed"),
            Victim::All => ([vec![postmaster], children(postmaster)].concat(), "all of PostgreSQL killed"),
            // The server then ends all sessions, recovers, and goes on.
            Victim::Backend => (children(postmaster).into_iter().max().into_iter().collect(), "a backend killed"),
        };
        for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        if victim != Victim::Backend {
            let cluster = self.cluster.clone();
            let revive = move || {
                let mut cluster = cluster.lock().unwrap_or_else(PoisonError::into_inner);
                // The process needs a moment to be gone.
                while !cluster.revive().expect("the server starts again") {
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            tokio::task::spawn_blocking(revive).await.expect("no panic");
        }
        what
    }

    async fn admin(&self) -> PgConnection {
        let url = self.cluster().url("postgres", "postgres");
        PgConnection::connect(&url).await.expect("the superuser connects")
    }
}

/// What of a server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The first process alone; the others find out.
    Postmaster,
    /// Every process at once, as when the machine dies.
    All,
    /// One session's process.
    Backend,
}

/// The processes that this one started, by /proc(5): the fourth field of `stat`, after the name in brackets.
fn children(parent: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields.split(' ').nth(1).map(str::parse::<u32>));
        fields == Some(Some(Ok(parent)))
    })
    .collect()
}
