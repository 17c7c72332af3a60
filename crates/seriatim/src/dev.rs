//! Everything on one machine: a private PostgreSQL with one directory and two shards, a gateway, a demo
//! tenant, and its first numbers through the program's own HTTP API.

mod demo;
pub(crate) mod folder;
mod kept;

use std::{
    collections::BTreeMap,
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use cluster::{Cluster, Options};
use dispatcher::Metrics;
use gateway::{Config, Gateway};
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot};
use tracing::level_filters::LevelFilter;

use crate::{
    Failure,
    dev::{demo::Demo, kept::Kept},
    dispatch, migrate, serve,
    shutdown::Asked,
    telemetry::{self, LogFormat},
};

/// The port that the README names.
pub(crate) const PORT: u16 = 8080;

/// The shards of `dev`, which are also the names of their databases.
const SHARDS: [&str; 2] = ["shard_1", "shard_2"];

/// Run everything on this machine with databases of its own, and issue the first numbers.
#[derive(Args)]
pub(crate) struct Dev {
    /// The port on 127.0.0.1; 8080 unless given, and any free one with --once
    #[arg(long)]
    port: Option<u16>,
    /// The folder that keeps the databases; a second start finds them
    #[arg(long, value_name = "FOLDER", conflicts_with = "ephemeral")]
    data: Option<PathBuf>,
    /// Keep nothing: a new folder that is removed at the end
    #[arg(long)]
    ephemeral: bool,
    /// Do the main job, print the proof and exit
    #[arg(long)]
    once: bool,
    /// Write a JSON file with addresses and keys once everything is ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// off, error, warn, info, debug or trace
    #[arg(long, env = "SERIATIM_LOG", default_value = "warn")]
    log: LevelFilter,
}

impl Dev {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        telemetry::begin(LogFormat::Text, self.log);
        let asked = Asked::listen()?;
        // With --once nobody needs to know the port beforehand, so any free one will do.
        let port = self.port.unwrap_or(if self.once { 0 } else { PORT });
        if let Some(file) = &self.ready_file {
            make_room(file)?;
        }
        let listener = serve::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await;
        let listener = listener.map_err(|error| format!("{error}, for example --port {}", port.saturating_add(1)))?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let folder = match (&self.data, self.ephemeral) {
            (_, true) => None,
            (Some(folder), false) => Some(folder.clone()),
            (None, false) => Some(folder::usual()?),
        };
        let options = Options { folder, durable: true, max_connections: 100, settings: &[] };
        let started = tokio::task::spawn_blocking(move || Cluster::start(&options, &say)).await?;
        let cluster = match started {
            // Ctrl-C reaches PostgreSQL's set-up programs too: what it broke is made anew at the next start.
            Err(_) if asked.already() => return Ok(()),
            started => started?,
        };
        let databases = Databases::of(&cluster);
        let kept = Kept::new(cluster);
        let worked = self.work(&databases, &kept, listener, &base_url, asked).await;
        if let Some(file) = &self.ready_file
            && !self.once
        {
            let _ = fs::remove_file(file);
        }
        say("stopping PostgreSQL");
        kept.stop().await?;
        worked
    }

    async fn work(
        &self,
        databases: &Databases,
        kept: &Kept,
        listener: TcpListener,
        base_url: &str,
        asked: Asked,
    ) -> Result<(), Failure> {
        migrate::migrate(&databases.directory_owner, &databases.owners, &say).await?;
        let metrics = Metrics::default();
        let dispatcher = dispatch::dispatcher(&databases.apps, &databases.workers, metrics.clone())?;
        let config = Config {
            metrics: Some(Arc::new(move || metrics.text())),
            ..Config::new(databases.directory_app.clone(), databases.apps.clone())
        };
        let gateway = Gateway::new(config)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel::<()>();
        let dispatching = dispatcher.run(async { drop(ended.await) });
        let serving = gateway::serve(gateway, listener, async { drop(stopped.await) }, Duration::from_secs(20));
        let client = async {
            let done = tokio::select! {
                done = self.main_job(databases, kept, base_url, asked) => done,
                failure = kept.watch() => Err(failure),
            };
            let _ = stop.send(());
            let _ = end.send(());
            done
        };
        let (ended, done, ()) = tokio::join!(serving, client, dispatching);
        done?;
        if ended { Ok(()) } else { Err("requests were still running when the grace time ended".into()) }
    }

    async fn main_job(&self, databases: &Databases, kept: &Kept, base_url: &str, mut asked: Asked) -> Result<(), Failure> {
        let mut pid = kept.pid();
        let demo = tokio::select! {
            demo = demo::run(&databases.folder, &databases.directory_owner, base_url) => demo?,
            () = asked.wait() => return Ok(()),
        };
        print!("{}", demo.report);
        self.tell_ready(databases, &demo, base_url, *pid.borrow_and_update())?;
        if self.once {
            return Ok(());
        }
        println!("\n{}", demo.next_step(base_url));
        println!("serving on {base_url} until Ctrl-C; data in {}", databases.folder.display());
        loop {
            tokio::select! {
                () = asked.wait() => return Ok(()),
                Ok(()) = pid.changed() => self.tell_ready(databases, &demo, base_url, *pid.borrow_and_update())?,
            }
        }
    }

    /// Writes the ready file, if one was asked for.
    fn tell_ready(&self, databases: &Databases, demo: &Demo, base_url: &str, postgres: u32) -> Result<(), Failure> {
        let Some(file) = &self.ready_file else { return Ok(()) };
        let ready = json!({
            "base_url": base_url,
            "tenant": demo.keys.tenant,
            "admin_key": demo.keys.admin_key,
            "operator_key": demo.keys.operator_key,
            "directory_url": databases.directory_owner,
            "shard_urls": databases.owners,
            "pids": {"seriatim": std::process::id(), "postgres": postgres},
        });
        Ok(cluster::write_private(file, &format!("{ready:#}\n"))?)
    }
}

/// Where the databases are; it stays so when the server is started again.
struct Databases {
    folder: PathBuf,
    directory_owner: String,
    directory_app: String,
    owners: BTreeMap<String, String>,
    apps: BTreeMap<String, String>,
    workers: BTreeMap<String, String>,
}

impl Databases {
    fn of(cluster: &Cluster) -> Self {
        let shards = |role: &str| SHARDS.map(|shard| (shard.to_owned(), cluster.url(role, shard))).into();
        Self {
            folder: cluster.folder().to_owned(),
            directory_owner: cluster.url("seriatim_owner", "directory"),
            directory_app: cluster.url("seriatim_app", "directory"),
            owners: shards("seriatim_owner"),
            apps: shards("seriatim_app"),
            workers: shards("seriatim_worker"),
        }
    }
}

/// The ready file says "ready" by being there, so an old one goes; and one that could not be written is said now.
fn make_room(file: &Path) -> Result<(), Failure> {
    let probe = file.with_extension("probe");
    cluster::write_private(&probe, "")?;
    fs::remove_file(probe)?;
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(format!("removing {}: {error}", file.display()).into()),
        _ => Ok(()),
    }
}

fn say(what: &str) {
    eprintln!("· {what}");
}
