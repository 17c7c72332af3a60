//! Serving HTTP on databases that are there.

use std::{net::SocketAddr, time::Duration};

use clap::Args;
use gateway::{Config, Gateway};
use tokio::net::TcpListener;
use tracing::level_filters::LevelFilter;

use crate::{
    Failure, address,
    shutdown::Asked,
    telemetry::{self, LogFormat},
};

/// Serve HTTP on databases that are there.
#[derive(Args)]
pub(crate) struct Serve {
    /// Where to listen
    #[arg(long, env = "SERIATIM_LISTEN", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The directory's address, as seriatim_app
    #[arg(long, env = "SERIATIM_DIRECTORY_URL", hide_env_values = true)]
    directory_url: String,
    /// A shard's name and address, as seriatim_app; once for each
    #[arg(
        long = "shard",
        value_name = "NAME=URL",
        env = "SERIATIM_SHARD_URLS",
        value_delimiter = ',',
        hide_env_values = true,
        required = true
    )]
    shards: Vec<String>,
    /// The most connections to each database
    #[arg(long, env = "SERIATIM_CONNECTIONS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=500))]
    connections: u32,
    /// How long requests in flight may take to end after SIGTERM, in seconds
    #[arg(long, env = "SERIATIM_GRACE_SECONDS", default_value_t = 25)]
    grace_seconds: u64,
    /// How log lines look
    #[arg(long, env = "SERIATIM_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    log_format: LogFormat,
    /// off, error, warn, info, debug or trace
    #[arg(long, env = "SERIATIM_LOG", default_value = "info")]
    log: LevelFilter,
}

impl Serve {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        telemetry::begin(self.log_format, self.log);
        let config = Config { connections: self.connections, ..Config::new(self.directory_url, address::by_name(&self.shards)?) };
        let mut asked = Asked::listen()?;
        let gateway = Gateway::new(config)?;
        let listener = listen(self.listen).await?;
        let address = listener.local_addr()?;
        tracing::info!(%address, "serving");
        println!("serving on http://{address}");
        let stop = async {
            asked.wait().await;
            tracing::info!("asked to stop");
        };
        if gateway::serve(gateway, listener, stop, Duration::from_secs(self.grace_seconds)).await {
            tracing::info!("stopped");
            Ok(())
        } else {
            Err("requests were still running when the grace time ended".into())
        }
    }
}

/// Binds the port, or says what to do about it.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => format!("something is listening on {address} already; choose another port").into(),
        _ => format!("can't listen on {address}: {error}").into(),
    })
}
