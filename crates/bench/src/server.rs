//! The one PostgreSQL server that all contestants use, and the databases that are cloned for each turn.

use std::{
    path::{Path, PathBuf},
    thread,
};

use cluster::{Cluster, Options, Tools};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::{Failure, rivals, say, stock};

/// The directory of the one tenant that issues.
pub(crate) const DIRECTORY: &str = "directory";
/// A shard with the tenant's series and no number.
pub(crate) const SHARD: &str = "shard_1";
/// The same without what only the program has.
pub(crate) const RIVAL: &str = "rival";
/// Tables with nothing but keys.
pub(crate) const BARE: &str = "bare";

/// What a server that is meant for work is told beside its own settings, which are for the smallest machines.
pub(crate) const SETTINGS: &[&str] = &["shared_buffers=4GB", "max_wal_size=8GB"];

/// A running server with its templates.
pub(crate) struct Server {
    cluster: Cluster,
    tools: Tools,
    admin: PgConnection,
    clones: u32,
}

impl Server {
    /// Starts it on a new folder, as durable as in service, and makes the templates.
    pub(crate) async fn start() -> Result<Self, Failure> {
        let tools = cluster::find()?;
        if !tools.program("pgbench").exists() {
            return Err(
                format!("there is no pgbench in {}; it comes with PostgreSQL's server package", tools.bin.display()).into()
            );
        }
        let options = Options { folder: None, durable: true, max_connections: 400, settings: SETTINGS };
        let cluster = thread::spawn(move || Cluster::start(&options, &|what| say(what))).join();
        let cluster = cluster.map_err(|_| "starting PostgreSQL panicked")??;
        let admin = PgConnection::connect(&cluster.url("postgres", "postgres")).await?;
        let mut this = Self { cluster, tools, admin, clones: 0 };
        say("making the templates");
        this.make_templates().await?;
        Ok(this)
    }

    async fn make_templates(&mut self) -> Result<(), Failure> {
        ledger::migrate(&self.url("seriatim_owner", SHARD)).await?;
        let mut owner = directory::Owner::connect(&self.url("seriatim_owner", DIRECTORY)).await?;
        owner.migrate().await?;
        owner.register_shards(&[SHARD.to_owned()]).await?;
        owner.close().await?;
        let first = stock::Tenants { first: stock::TENANT, count: 1, series: stock::series() };
        first.add(&mut self.connect(DIRECTORY).await?, &mut self.connect(SHARD).await?).await?;
        stock::open_counters(&mut self.connect(SHARD).await?).await?;
        self.run(&format!("create database {RIVAL} template {SHARD}")).await?;
        execute(&mut self.connect(RIVAL).await?, rivals::HANDICAP).await?;
        self.run(&format!("create database {BARE}")).await?;
        execute(&mut self.connect(BARE).await?, rivals::BARE_TABLES).await
    }

    /// A new database, like its template. It begins with everything on the disk, so no turn pays for what was
    /// written before it.
    pub(crate) async fn clone_of(&mut self, template: &str) -> Result<String, Failure> {
        self.clones += 1;
        let name = format!("turn_{}", self.clones);
        self.run(&format!("create database {name} template {template}")).await?;
        self.checkpoint().await?;
        Ok(name)
    }

    /// Writes to the disk what is still to be written.
    pub(crate) async fn checkpoint(&mut self) -> Result<(), Failure> {
        self.run("checkpoint").await
    }

    /// Removes a database and whoever is in it.
    pub(crate) async fn drop(&mut self, database: &str) -> Result<(), Failure> {
        self.run(&format!("drop database {database} with (force)")).await
    }

    /// A superuser's connection.
    pub(crate) async fn connect(&self, database: &str) -> Result<PgConnection, Failure> {
        Ok(PgConnection::connect(&self.url("postgres", database)).await?)
    }

    /// The address of a database for a role.
    pub(crate) fn url(&self, role: &str, database: &str) -> String {
        self.cluster.url(role, database)
    }

    /// Where scripts and logs go; it is gone with the server.
    pub(crate) fn folder(&self) -> &Path {
        self.cluster.folder()
    }

    /// One of PostgreSQL's programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.tools.program(name)
    }

    /// The server's first process, whose children are all others.
    pub(crate) fn pid(&self) -> u32 {
        self.cluster.pid()
    }

    /// What it calls itself.
    pub(crate) async fn version(&mut self) -> Result<String, Failure> {
        Ok(sqlx::query_scalar("select current_setting('server_version')").fetch_one(&mut self.admin).await?)
    }

    async fn run(&mut self, sql: &str) -> Result<(), Failure> {
        execute(&mut self.admin, sql).await
    }
}

/// Statements without parameters.
pub(crate) async fn execute(db: &mut PgConnection, sql: &str) -> Result<(), Failure> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(db).await?;
    Ok(())
}
