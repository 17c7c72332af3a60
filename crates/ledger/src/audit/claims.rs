//! The pass over the claims: each took values that are there, no two the same ones, and answers with numbers that are.

use std::collections::HashMap;

use futures_util::TryStreamExt;
use store::Error;

use super::{Auditor, STEP, bits::Bits, within};
use crate::claim;

/// After how many claims it is told how far the audit is.
const TOLD: i64 = 50_000;
/// How many values that several claims took are looked up at once.
const TOGETHER: usize = 10_000;

/// Values, counter by counter.
type Places = Vec<(i16, String, i64)>;

impl Auditor<'_> {
    pub(super) async fn claims(&mut self) -> Result<(), Error> {
        // In their order in the key: a claim that lies anywhere is found by the period it names.
        let mut where_there: HashMap<(i16, String), Vec<(i64, i64)>> = HashMap::new();
        for stretch in &self.stretches {
            where_there.entry((stretch.part, stretch.period.clone())).or_default().push((stretch.first, stretch.last));
        }
        let is_there = |part: i16, period: &str, first: i64, last: i64| {
            let stretches = where_there.get(&(part, period.to_owned())).map_or(&[][..], Vec::as_slice);
            // The last stretch that begins at or before it.
            let at = stretches.partition_point(|(begins, _)| *begins <= first);
            at > 0 && stretches[at - 1].1 >= last
        };
        let (mut taken, mut shared): (HashMap<(i16, String), Bits>, Places) = (HashMap::new(), Vec::new());
        let mut found = Vec::new();
        let (tenant, name, period) = (self.principal.tenant.0, self.series.name.as_str(), self.period);
        let mut told = 0;
        let (watch, progress) = (&mut self.watch, &mut self.progress);
        let mut rows = sqlx::query!(
            r#"select key, part, period, first, count, answer from claim
                where tenant_id = $1 and series = $2 and ($3::text is null or period = $3)"#,
            tenant,
            name,
            period
        )
        .fetch(self.tx.db());
        loop {
            let next = tokio::time::timeout(STEP, rows.try_next()).await;
            let Some(row) = next.map_err(|late| Error::Unavailable(late.into()))?? else { break };
            if let Some(first) = row.first.filter(|_| row.count > 0) {
                let last = first + i64::from(row.count) - 1;
                if is_there(row.part, &row.period, first, last) {
                    let bits = taken.entry((row.part, row.period.clone())).or_default();
                    shared.extend((first..=last).filter(|value| !bits.insert(*value)).map(|v| (row.part, row.period.clone(), v)));
                } else {
                    found.push((row.period.clone(), format!("a claim took values {first} to {last}, which are not all there")));
                }
            }
            let answered = row.answer.map_or(Some(Vec::new()), claim::places);
            for (of, part, value, ..) in answered.unwrap_or_default() {
                if period.is_none_or(|period| period == of) && !is_there(part, &of, value, value) {
                    found.push((of, format!("a claim answers with value {value}, which is not there")));
                }
            }
            told += 1;
            if told % TOLD == 0 {
                progress.step = "claims";
                progress.done = (progress.done + TOLD).min(progress.of);
                // A statement is on its way, and its time is limited: no rest here.
                let _ = watch(*progress);
            }
        }
        drop(rows);
        for (period, what) in found {
            self.impossible(Some(&period), || what);
        }
        for some in shared.chunks(TOGETHER) {
            self.shared(some).await?;
        }
        self.progress.done = self.progress.of;
        self.went_on("claims", 0).await;
        Ok(())
    }

    /// Values that several claims took: one for each life is right.
    async fn shared(&mut self, places: &[(i16, String, i64)]) -> Result<(), Error> {
        let parts: Vec<i16> = places.iter().map(|place| place.0).collect();
        let periods: Vec<&str> = places.iter().map(|place| place.1.as_str()).collect();
        let values: Vec<i64> = places.iter().map(|place| place.2).collect();
        let rows = within(
            sqlx::query!(
                r#"select period as "period!", value as "value!", claims as "claims!", life as "life!" from (
                     select a.part, a.period, a.value, count(*) + 1 as claims from
                       unnest($3::smallint[], $4::text[], $5::bigint[]) a (part, period, value) group by a.part, a.period, a.value) a
                    cross join lateral (select life from number where tenant_id = $1 and series = $2 and part = a.part
                       and period = a.period and value = a.value offset 0) n
                    where claims > life order by period, value"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                &parts,
                &periods as _,
                &values
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        for row in rows {
            let what = || format!("{} claims took value {}, which was given {} times", row.claims, row.value, row.life);
            self.impossible(Some(&row.period), what);
        }
        Ok(())
    }
}
