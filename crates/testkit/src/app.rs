//! A gateway on databases of its own, for one test.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use directory::{NewOperatorKey, Owner};
use dispatcher::{Dispatcher, Metrics, Pace};
use domain::{
    clock::Clock,
    id::{Label, TenantId},
    secret::{ApiKey, ENTROPY, Mode},
};
use gateway::{Config, Entropy, Gateway, SystemClock, SystemEntropy};
use ledger::{Finder, Ledger};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::{Api, Process, Proxy, TestClock, Victim, proof, shared::Databases};

/// What a test may choose.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// A clock that the test moves; none is the system's, checked against the shards'.
    pub clock: Option<TestClock>,
    /// Whether a clock that differs from the shards' is refused all the same.
    pub compare_clocks: bool,
    /// The longest a caller waits; none is the usual.
    pub patience: Option<Duration>,
    /// The most connections to each database; none is the usual.
    pub connections: Option<u32>,
    /// Whether gateways reach the databases through a proxy that the test breaks.
    pub proxy: bool,
    /// Whether the test has a PostgreSQL server of its own, which it may kill.
    pub own_server: bool,
}

/// The system under test.
pub struct App {
    databases: Databases,
    own_server: bool,
    config: Config,
    /// The first gateway's address.
    pub base: String,
    /// The tenant `first`, with every scope.
    pub first: Api,
    /// Its id.
    pub first_id: TenantId,
    /// The operator.
    pub operator: Api,
    proxy: Option<Proxy>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<bool>,
}

/// Runs a test on an [`App`] of its own, then the proof.
pub fn prove(test: impl AsyncFnOnce(&App)) {
    prove_with(Setup::default(), test);
}

/// The same with choices.
pub fn prove_with(setup: Setup, test: impl AsyncFnOnce(&App)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let app = App::start(setup).await;
        test(&app).await;
        app.finish().await;
    });
}

impl App {
    async fn start(setup: Setup) -> Self {
        let databases = if setup.own_server { Databases::on_own_server().await } else { Databases::clone_set().await };
        let operator_key = operator_key(&databases.url("seriatim_owner", "directory")).await;
        let server = databases.cluster().port();
        let proxy = if setup.proxy { Some(Proxy::to(server).await) } else { None };
        let through = |url: String| match &proxy {
            Some(proxy) => url.replace(&format!(":{server}/"), &format!(":{}/", proxy.port())),
            None => url,
        };
        let shards = databases.shard_urls("seriatim_app").into_iter().map(|(name, url)| (name, through(url))).collect();
        let mut config = Config::new(through(databases.url("seriatim_app", "directory")), shards);
        if let Some(clock) = setup.clock {
            if !setup.compare_clocks {
                config.clock_tolerance = None;
            }
            config.clock = Arc::new(clock);
        }
        config.patience = setup.patience.unwrap_or(config.patience);
        config.connections = setup.connections.unwrap_or(config.connections);
        let (base, stop, serving) = serve(config.clone()).await;
        let operator = Api::new(&base, operator_key.reveal());
        let (first, first_id) = tenant(&operator, "first").await;
        Self { databases, own_server: setup.own_server, config, base, first, first_id, operator, proxy, stop, serving }
    }

    /// The proxy that the gateways' connections pass; asked for in the [`Setup`].
    pub fn proxy(&self) -> &Proxy {
        self.proxy.as_ref().expect("a proxy was asked for")
    }

    /// Another tenant, with a key of every scope.
    pub async fn tenant(&self, name: &str) -> Api {
        tenant(&self.operator, name).await.0
    }

    /// The loops of a dispatcher, which do nothing until they are asked; on the clock of the test.
    pub fn dispatcher(&self) -> Dispatcher {
        let clock = self.config.clock.clone();
        Dispatcher::new(dispatcher::Config {
            ledger: Ledger::open(&self.config.shard_urls, 4, clock.clone(), None).expect("addresses that can be read"),
            finder: Finder::open(&self.databases.shard_urls("seriatim_worker"), 2).expect("addresses that can be read"),
            name: gateway::uuid(clock.instant(), &SystemEntropy).to_string(),
            clock,
            pace: Pace::default(),
            metrics: Metrics::default(),
        })
    }

    /// A dispatcher in a process of its own, and where it shows its metrics; it dies at a named point, if one is given.
    pub async fn dispatcher_process(&self, fault: Option<&str>) -> Process {
        Process::dispatcher(&self.config.shard_urls, &self.databases.shard_urls("seriatim_worker"), fault).await
    }

    /// A gateway in a process of its own, on the same databases.
    pub async fn gateway_process(&self) -> Process {
        Process::gateway(&self.config.directory_url, &self.config.shard_urls, None).await
    }

    /// The same, and it dies at a named point: `SERIATIM_FAULT`.
    pub async fn doomed_gateway(&self, fault: &str) -> Process {
        Process::gateway(&self.config.directory_url, &self.config.shard_urls, Some(fault)).await
    }

    /// A connection of the superuser to `directory`, `shard_1` or `shard_2`, for planting faults and looking
    /// behind the API.
    pub async fn superuser(&self, database: &str) -> PgConnection {
        PgConnection::connect(&self.url("postgres", database)).await.expect("the superuser connects")
    }

    /// The address of a database for a role.
    pub fn url(&self, role: &str, database: &str) -> String {
        self.databases.url(role, database)
    }

    /// The port of the PostgreSQL server itself.
    pub fn server_port(&self) -> u16 {
        self.databases.cluster().port()
    }

    /// The shard that a series of the tenant `first` lives on.
    pub async fn shard_of(&self, series: &str) -> String {
        let mut db = self.superuser("directory").await;
        let query = sqlx::query_scalar("select shard from placement where series = $1");
        query.bind(series).fetch_one(&mut db).await.expect("the series is placed")
    }

    /// The shards' addresses for the superuser.
    pub fn superuser_shards(&self) -> BTreeMap<String, String> {
        self.databases.shard_urls("postgres")
    }

    /// Kills PostgreSQL outright (SIGKILL) and waits until it serves again; what was killed, for a log. Only for a
    /// test with a server of its own.
    pub async fn kill_server(&self, victim: Victim) -> &'static str {
        assert!(self.own_server, "this server belongs to all tests");
        let what = self.databases.kill(victim).await;
        while PgConnection::connect(&self.url("postgres", "directory")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        what
    }

    /// What the proof finds in the shards as they are now.
    pub async fn findings(&self) -> Vec<String> {
        proof::check(&self.superuser_shards()).await
    }

    /// Stops the gateway, proves what it left behind, and drops the databases.
    async fn finish(self) {
        let _ = self.stop.send(());
        let ended = self.serving.await.expect("the gateway does not panic");
        assert!(ended, "requests were still running when the gateway stopped");
        let findings = proof::check(&self.databases.shard_urls("postgres")).await;
        assert!(findings.is_empty(), "the proof found:\n{}", findings.join("\n"));
        self.databases.drop_set().await;
    }
}

async fn serve(config: Config) -> (String, oneshot::Sender<()>, JoinHandle<bool>) {
    let gateway = Gateway::new(config).expect("addresses that can be read");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let (stop, stopped) = oneshot::channel::<()>();
    let work = async move { gateway::serve(gateway, listener, async { drop(stopped.await) }, Duration::from_secs(20)).await };
    #[expect(clippy::disallowed_methods, reason = "its handle is awaited when the test ends")]
    let serving = tokio::spawn(work);
    (base, stop, serving)
}

async fn tenant(operator: &Api, name: &str) -> (Api, TenantId) {
    let reply = operator.post("/v1/tenants", &format!("tenant-{name}"), json!({"name": name})).await.expect(201);
    let id = reply.body["id"].as_str().and_then(|id| id.parse().ok()).expect("the tenant's id");
    (operator.with_key(reply.body["admin_key"].as_str().expect("the first key")), TenantId(id))
}

/// A key of the right form and checksum that nobody holds.
pub fn unknown_key() -> String {
    ApiKey::from_entropy(Mode::Live, &[7; ENTROPY]).expect("even bytes").reveal().to_owned()
}

async fn operator_key(directory: &str) -> ApiKey {
    let mut bytes = [0; ENTROPY];
    let key = loop {
        SystemEntropy.fill(&mut bytes);
        if let Some(key) = ApiKey::from_entropy(Mode::Test, &bytes) {
            break key;
        }
    };
    let at = SystemClock.instant();
    let name = Label::parse("tests").expect("a readable name");
    let new = NewOperatorKey { id: gateway::uuid(at, &SystemEntropy), name, secret_hash: key.hash(), at };
    let mut owner = Owner::connect(directory).await.expect("the owner connects");
    owner.create_operator_key(&new).await.expect("an operator key");
    owner.close().await.expect("the owner leaves");
    key
}
