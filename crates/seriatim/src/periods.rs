//! The periods of a series, closing one for good, and raising its next value.

use api::{Period, Raise};
use clap::Args;

use crate::{Failure, address::Server, numbers::patiently};

/// List the periods of a series, or close one for good.
#[derive(Args)]
pub(crate) struct Periods {
    #[command(flatten)]
    server: Server,
    /// The series
    #[arg(long)]
    series: String,
    /// Close this period: it takes no number any more
    #[arg(long, value_name = "PERIOD")]
    close: Option<String>,
    /// The next value of this period goes up to --to, and --reason says why
    #[arg(long, value_name = "PERIOD", conflicts_with = "close", requires_all = ["to", "reason"])]
    raise: Option<String>,
    /// The next value
    #[arg(long, value_name = "VALUE", requires = "raise")]
    to: Option<i64>,
    /// Why values are skipped; it is kept
    #[arg(long, requires = "raise")]
    reason: Option<String>,
    /// For programs: one JSON object a line
    #[arg(long)]
    json: bool,
}

impl Periods {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let client = self.server.client()?;
        let raise = Raise { value: self.to.unwrap_or_default(), reason: self.reason.unwrap_or_default() };
        let periods = match (&self.close, &self.raise) {
            (Some(period), _) => vec![patiently(|| client.close_period(&self.series, period)).await?],
            (None, Some(period)) => vec![patiently(|| client.raise_next(&self.series, period, &raise)).await?],
            (None, None) => patiently(|| client.periods(&self.series)).await?,
        };
        for period in &periods {
            if self.json {
                println!("{}", serde_json::to_string(period)?);
            } else {
                println!("{}", line(period));
            }
        }
        Ok(())
    }
}

fn line(period: &Period) -> String {
    let shown = |value: Option<i64>| value.map_or("none".to_owned(), |value| value.to_string());
    let closed = match (&period.closed_at, &period.closed_by) {
        (Some(at), Some(by)) => format!("   closed {at} by {by}"),
        _ => String::new(),
    };
    format!("{:<12}{:<8}last {:<12}next {}{closed}", period.period, period.state, shown(period.last), shown(period.next))
}
