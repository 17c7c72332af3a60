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
};

use cluster::{Cluster, Options};
use directory::Owner;
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
    let options = Options { folder: None, durable: false, max_connections: 400 };
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

    async fn admin(&self) -> PgConnection {
        let url = self.cluster().url("postgres", "postgres");
        PgConnection::connect(&url).await.expect("the superuser connects")
    }
}
