//! The proof of a series, for a person.

use api::{Audit, PeriodAudit, Progress};
use clap::Args;
use indicatif::ProgressStyle;

use crate::{Failure, address::Server, issue::progress_bar, numbers::tell};

/// Print the proof of a series.
#[derive(Args)]
pub(crate) struct AuditSeries {
    #[command(flatten)]
    server: Server,
    /// The series
    #[arg(long)]
    series: String,
    /// One period of it
    #[arg(long)]
    period: Option<String>,
    /// For programs
    #[arg(long)]
    json: bool,
}

impl AuditSeries {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let bar = progress_bar(0);
        let style = ProgressStyle::with_template("{msg:<10} {bar:40} {pos}/{len}  {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let hear = |progress: &Progress| {
            let rows = |count: i64| u64::try_from(count).unwrap_or_default();
            bar.set_length(rows(progress.of));
            bar.set_position(rows(progress.done));
            bar.set_message(progress.step.clone());
        };
        let audit = self.server.client()?.follow_audit(&self.series, self.period.as_deref(), hear).await;
        bar.finish_and_clear();
        let audit = audit.map_err(|error| tell(&error))?;
        if self.json {
            println!("{}", serde_json::to_string(&audit)?);
        } else {
            print!("{}", table(&audit));
        }
        if audit.whole.complete { Ok(()) } else { Err(format!("the audit of {} found what must not be", self.series).into()) }
    }
}

/// A line for each period and one for what must be nothing.
pub(crate) fn table(audit: &Audit) -> String {
    let one = std::slice::from_ref(&audit.whole);
    let periods = audit.periods.as_deref().unwrap_or(one);
    let mut out = format!("audit of {}\n", audit.series);
    for period in periods {
        let name = period.period.as_deref().unwrap_or("all");
        let range = match (period.first, period.last) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => "none yet".to_owned(),
        };
        let count: i64 = period.states.values().sum();
        out.push_str(&format!("  {name:<12}{count:>8} numbers   {range}\n"));
    }
    let whole = &audit.whole;
    let count: i64 = whole.states.values().sum();
    out.push_str(&format!(
        "  {:<12}{count:>8} numbers   periods {}   gaps {}   duplicates {}   impossible {}\n",
        "total",
        periods.len(),
        whole.gaps.len(),
        whole.duplicates.len(),
        whole.impossible.len()
    ));
    let others: Vec<_> = whole.states.iter().filter(|(state, _)| *state != "issued").collect();
    if !others.is_empty() {
        let said: Vec<_> = others.iter().map(|(state, count)| format!("{state} {count}")).collect();
        out.push_str(&format!("  {:<12}{}\n", "of these", said.join("   ")));
    }
    for (what, numbers) in [("overdue", &whole.overdue), ("stuck", &whole.stuck)] {
        if let Some(first) = numbers.first() {
            out.push_str(&format!("  {what:<12}{:>8} numbers   the first is {first}\n", numbers.len()));
        }
    }
    out.push_str(&findings(whole));
    out
}

fn findings(whole: &PeriodAudit) -> String {
    let gaps = whole.gaps.iter().map(|gap| format!("period {}: {} to {} are missing", gap.period, gap.from, gap.to));
    let twice = whole.duplicates.iter().map(|text| format!("{text} stands on two documents"));
    gaps.chain(twice).chain(whole.impossible.iter().cloned()).map(|line| format!("  ! {line}\n")).collect()
}
