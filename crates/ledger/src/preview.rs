//! What would come next. Uses nothing, locks nothing, promises nothing.

use domain::{
    next::{Counter, Gate, Next, next},
    period::Period,
    principal::Principal,
    refusal::Refusal,
    series::{FieldError, Series},
};
use jiff::{Timestamp, civil::Date};
use store::{Authority, Snapshot, Stop, Tx};

use crate::{Ledger, READING, counter, series};

/// The numbers that would come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// In which period.
    pub period: Period,
    /// In order.
    pub numbers: Vec<Next>,
}

impl Ledger {
    /// The next `count` numbers for documents of this date, under a series as it is or as it might be; no date is today in its
    /// zone.
    #[tracing::instrument(name = "ledger.preview", skip_all, fields(shard), err(level = "debug"))]
    pub async fn preview(
        &self,
        shard: &str,
        principal: &Principal,
        series: &Series,
        date: Option<Date>,
        count: usize,
        at: Timestamp,
    ) -> Result<Preview, Stop> {
        store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let date = date.unwrap_or(series.settings.today(at));
            let off = |detail| Refusal::Invalid(vec![FieldError::new("/document_date", detail)]);
            series.settings.check_date(date, at).map_err(off)?;
            let period = series.settings.period(date);
            let counter = counter::look(&mut tx, principal, &series.name, &period).await?;
            tx.end().await?;
            // Whether numbers come is for the status, which may be a proposed one; a closed period takes none anyhow.
            let gate = series::gate(series.status);
            let counter = match counter {
                Some(counter) if counter.gate == Gate::Closed => counter,
                Some(counter) => Counter { gate, ..counter },
                None => Counter::untouched(&series.settings, period.clone(), gate),
            };
            let numbers = next(&series.settings, series.status, &counter, &vec![date; count])?;
            Ok(Preview { period, numbers })
        })
        .await
    }
}
