//! Two clocks that must agree: ours decides the period, the shard's was there when the row was locked.

use jiff::{SignedDuration, Timestamp};
use jiff_sqlx::Timestamp as SqlTimestamp;
use store::{Error, Stop};

use crate::Ledger;

impl Ledger {
    /// Whether a shard answers and its clock agrees with ours; for readiness.
    pub async fn ping(&self, shard: &str) -> Result<(), Stop> {
        let asked = self.clock.instant();
        let row = sqlx::query_scalar!(r#"select clock_timestamp() as "now!""#).fetch_one(self.shard(shard)?).await;
        let theirs: SqlTimestamp = row.map_err(Error::from)?;
        self.agree(asked, theirs.to_jiff())
    }

    /// Refuses where the shard's instant lies outside the time between asking and now, give or take the
    /// tolerance.
    pub(crate) fn agree(&self, asked: Timestamp, theirs: Timestamp) -> Result<(), Stop> {
        let Some(tolerance) = self.tolerance else { return Ok(()) };
        let apart = distance(asked, self.clock.instant(), theirs);
        if apart <= tolerance {
            return Ok(());
        }
        Err(Stop::ClocksApart { apart_ms: i64::try_from(apart.as_millis()).unwrap_or(i64::MAX) })
    }
}

/// How far `theirs` lies outside the span from `asked` to `answered`.
pub(crate) fn distance(asked: Timestamp, answered: Timestamp, theirs: Timestamp) -> SignedDuration {
    let early = asked.duration_since(theirs);
    let late = theirs.duration_since(answered);
    early.max(late).max(SignedDuration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_for_the_lock_is_no_distance() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        assert_eq!(distance(at(10), at(15), at(12)), SignedDuration::ZERO);
        assert_eq!(distance(at(10), at(15), at(17)), SignedDuration::from_secs(2));
        assert_eq!(distance(at(10), at(15), at(7)), SignedDuration::from_secs(3));
    }
}
