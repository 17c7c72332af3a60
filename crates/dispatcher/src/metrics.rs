//! What the loops count, in the text form that Prometheus reads.

use std::fmt;

use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use std::sync::Arc;

/// The shard is the only label: bounded, and never a tenant.
type Labels = [(&'static str, String); 1];

/// Counters and gauges of every shard. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Families>);

struct Families {
    registry: Registry,
    impossible: Family<Labels, Gauge>,
    audited: Family<Labels, Counter>,
    overdue: Family<Labels, Gauge>,
    voided: Family<Labels, Counter>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("seriatim");
        let (impossible, audited, overdue, voided) = (Family::default(), Family::default(), Family::default(), Family::default());
        let help = "States that can not be, found by the auditor in its last round or this one; must be 0";
        registry.register("impossible_states", help, Family::clone(&impossible));
        registry.register("audited_series", "Series that this process has audited", Family::clone(&audited));
        registry.register("overdue_reservations", "Reservations past their deadline", Family::clone(&overdue));
        registry.register("reservations_voided", "Reservations voided past their deadline", Family::clone(&voided));
        Self(Arc::new(Families { registry, impossible, audited, overdue, voided }))
    }
}

fn labels(shard: &str) -> Labels {
    [("shard", shard.to_owned())]
}

impl Metrics {
    /// The text form (`OpenMetrics` 1.0).
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a text can't fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }

    pub(crate) fn impossible(&self, shard: &str, count: i64) {
        self.0.impossible.get_or_create(&labels(shard)).set(count);
    }

    pub(crate) fn audited(&self, shard: &str) {
        self.0.audited.get_or_create(&labels(shard)).inc();
    }

    pub(crate) fn overdue(&self, shard: &str, count: i64) {
        self.0.overdue.get_or_create(&labels(shard)).set(count);
    }

    pub(crate) fn voided(&self, shard: &str, count: i64) {
        self.0.voided.get_or_create(&labels(shard)).inc_by(u64::try_from(count).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_promise() {
        let metrics = Metrics::default();
        metrics.impossible("shard_1", 0);
        metrics.audited("shard_1");
        metrics.overdue("shard_1", 3);
        metrics.voided("shard_1", 2);
        let text = metrics.text();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                r#"seriatim_impossible_states{shard="shard_1"} 0"#,
                r#"seriatim_audited_series_total{shard="shard_1"} 1"#,
                r#"seriatim_overdue_reservations{shard="shard_1"} 3"#,
                r#"seriatim_reservations_voided_total{shard="shard_1"} 2"#,
            ]
        );
    }
}
