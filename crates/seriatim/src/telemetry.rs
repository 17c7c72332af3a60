//! Log lines on standard error: for people in `dev`, one JSON object a line in `serve`.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer, layer::SubscriberExt, util::SubscriberInitExt};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Begins logging at this level and above.
pub(crate) fn begin(format: LogFormat, level: LevelFilter) {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry();
    match format {
        LogFormat::Text => registry.with(lines.with_ansi(false).with_filter(level)).init(),
        LogFormat::Json => registry.with(lines.json().with_filter(level)).init(),
    }
}
