//! That what was measured did happen: no contestant may be fast by writing less.

use std::ops::RangeInclusive;

use sqlx::{FromRow, PgConnection};

use crate::Failure;

/// What a shard holds.
#[derive(Clone, Copy, Debug, Default, FromRow, PartialEq, Eq)]
pub(crate) struct Held {
    /// Its numbers.
    pub(crate) numbers: i64,
    /// Its claims.
    pub(crate) claims: i64,
    /// Its counters whose numbers are not exactly those from 1 to where it stands.
    pub(crate) broken: i64,
}

const HELD: &str = "
select coalesce(sum(n.count), 0)::bigint as numbers, (select count(*) from claim) as claims,
       count(*) filter (where (coalesce(n.count, 0), coalesce(n.max, 0), coalesce(n.min, 1)) <> (c.last, c.last, 1)) as broken
  from counter c
  left join (select tenant_id, series, part, period, count(*), max(value), min(value) from number group by 1, 2, 3, 4) n
       using (tenant_id, series, part, period)";

/// The tables with nothing but keys; nothing follows anything in them.
const HELD_BARE: &str =
    "select (select count(*) from numbers) as numbers, (select count(*) from claims) as claims, 0::bigint as broken";

impl Held {
    /// What the shard holds now.
    pub(crate) async fn read(db: &mut PgConnection) -> Result<Self, Failure> {
        Ok(sqlx::query_as(HELD).fetch_one(db).await?)
    }

    /// The same of the tables with nothing but keys.
    pub(crate) async fn read_bare(db: &mut PgConnection) -> Result<Self, Failure> {
        Ok(sqlx::query_as(HELD_BARE).fetch_one(db).await?)
    }

    /// Whether exactly this came to what was there before.
    pub(crate) fn expect(self, before: Self, numbers: &RangeInclusive<i64>, claims: &RangeInclusive<i64>) -> Result<(), Failure> {
        let new = (self.numbers - before.numbers, self.claims - before.claims);
        if self.broken > 0 {
            return Err(format!("{} counters do not stand on an unbroken line of numbers", self.broken).into());
        }
        if !numbers.contains(&new.0) || !claims.contains(&new.1) {
            let (numbers, claims) = (show(numbers), show(claims));
            return Err(
                format!("{numbers} numbers and {claims} claims were acknowledged, {} and {} written", new.0, new.1).into()
            );
        }
        Ok(())
    }
}

fn show(range: &RangeInclusive<i64>) -> String {
    if range.start() == range.end() { range.start().to_string() } else { format!("{} to {}", range.start(), range.end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_must_be_there() {
        let before = Held { numbers: 10, claims: 10, broken: 0 };
        let after = Held { numbers: 15, claims: 12, broken: 0 };
        assert!(after.expect(before, &(5..=5), &(2..=2)).is_ok());
        assert!(after.expect(before, &(4..=6), &(0..=2)).is_ok());
        let refused = after.expect(before, &(6..=6), &(2..=2)).unwrap_err().to_string();
        assert_eq!(refused, "6 numbers and 2 claims were acknowledged, 5 and 2 written");
        assert!(Held { broken: 1, ..after }.expect(before, &(5..=5), &(2..=2)).is_err());
    }
}
