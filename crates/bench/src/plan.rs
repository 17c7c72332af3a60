//! How much is measured: sizes that give figures to rely on, or tiny ones that show that all can be measured.

use std::time::Duration;

/// The sizes of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Whether the sizes are the tiny ones, from which nothing about speed follows.
    pub(crate) quick: bool,
    /// How often each contestant takes its turn.
    pub(crate) rounds: usize,
    /// How long a turn is measured.
    pub(crate) seconds: u32,
    /// How long before that it runs unmeasured.
    pub(crate) warm: Duration,
    /// How long it is when what a checkpoint costs is to be over: after one, each page is written whole to the log when
    /// it is first touched.
    pub(crate) steady: Duration,
    /// The numbers that are there already, for the figure of a full shard.
    pub(crate) rows: i64,
    /// The updates of a counter under a held snapshot.
    pub(crate) updates: i64,
    /// The tenants that a gateway meets.
    pub(crate) tenants: i64,
    /// How long the overload lasts.
    pub(crate) overload: Duration,
}

impl Plan {
    /// For figures to rely on.
    pub(crate) fn full(seconds: Option<u32>) -> Self {
        Self {
            quick: false,
            rounds: 3,
            seconds: seconds.unwrap_or(5),
            warm: Duration::from_secs(1),
            steady: Duration::from_secs(30),
            rows: 10_000_000,
            updates: 100_000,
            tenants: 10_000,
            overload: Duration::from_mins(1),
        }
    }

    /// For a look at whether everything works.
    pub(crate) fn quick(seconds: Option<u32>) -> Self {
        Self {
            quick: true,
            rounds: 1,
            seconds: seconds.unwrap_or(1),
            warm: Duration::from_millis(100),
            steady: Duration::from_millis(100),
            rows: 20_000,
            updates: 500,
            tenants: 100,
            overload: Duration::from_secs(3),
        }
    }

    /// How long a turn is measured.
    pub(crate) fn turn(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }
}
