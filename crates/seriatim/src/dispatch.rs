//! Work after the commit, on databases that are there: any number of these processes run side by side.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use clap::Args;
use dispatcher::{Config, Dispatcher, Metrics, Pace};
use domain::clock::Clock;
use gateway::{SystemClock, SystemEntropy};
use ledger::{Finder, Ledger};
use tracing::level_filters::LevelFilter;

use crate::{
    Failure, address, serve,
    shutdown::Asked,
    telemetry::{self, LogFormat},
};

/// Settle what is overdue and audit every series, for ever.
#[derive(Args)]
pub(crate) struct Dispatch {
    /// A shard's name and address, as `seriatim_app`; once for each
    #[arg(
        long = "shard",
        value_name = "NAME=URL",
        env = "SERIATIM_SHARD_URLS",
        value_delimiter = ',',
        hide_env_values = true,
        required = true
    )]
    shards: Vec<String>,
    /// The same shard's address as `seriatim_worker`, which finds work across tenants
    #[arg(
        long = "worker",
        value_name = "NAME=URL",
        env = "SERIATIM_WORKER_URLS",
        value_delimiter = ',',
        hide_env_values = true,
        required = true
    )]
    workers: Vec<String>,
    /// Where to show metrics; without it nowhere
    #[arg(long, env = "SERIATIM_METRICS_LISTEN")]
    metrics_listen: Option<SocketAddr>,
    /// How log lines look
    #[arg(long, env = "SERIATIM_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    log_format: LogFormat,
    /// off, error, warn, info, debug or trace
    #[arg(long, env = "SERIATIM_LOG", default_value = "info")]
    log: LevelFilter,
}

/// The connections of the loops to each shard, in each of the two roles.
const CONNECTIONS: u32 = 4;

impl Dispatch {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        telemetry::begin(self.log_format, self.log);
        let (apps, workers) = (address::by_name(&self.shards)?, address::by_name(&self.workers)?);
        if !apps.keys().eq(workers.keys()) {
            return Err("every shard needs two addresses: --shard as seriatim_app and --worker as seriatim_worker".into());
        }
        let mut asked = Asked::listen()?;
        let metrics = Metrics::default();
        let dispatcher = dispatcher(&apps, &workers, metrics.clone())?;
        println!("dispatching for {}", apps.keys().cloned().collect::<Vec<_>>().join(", "));
        tracing::info!("dispatching");
        let mut told = asked.clone();
        let shown = async {
            if let Some(address) = self.metrics_listen {
                let listener = serve::listen(address).await?;
                gateway::serve_metrics(Arc::new(move || metrics.text()), listener, told.wait()).await;
            }
            Ok::<_, Failure>(())
        };
        let (shown, ()) = tokio::join!(shown, dispatcher.run(asked.wait()));
        tracing::info!("stopped");
        shown
    }
}

/// The loops on these shards, as the app role and as the worker role.
pub(crate) fn dispatcher(
    apps: &BTreeMap<String, String>,
    workers: &BTreeMap<String, String>,
    metrics: Metrics,
) -> Result<Dispatcher, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    Ok(Dispatcher::new(Config {
        ledger: Ledger::open(apps, CONNECTIONS, clock.clone(), None)?,
        finder: Finder::open(workers, CONNECTIONS)?,
        name: gateway::uuid(clock.instant(), &SystemEntropy).to_string(),
        clock,
        pace: Pace::default(),
        metrics,
    }))
}
