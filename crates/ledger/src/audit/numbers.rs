//! The pass over the numbers: a stretch of values at a time.

use domain::{next::Gate, series::Chronology};
use jiff::civil::Date;
use store::Error;

use super::{Auditor, Gap, Run, Stretch, add, within};

/// How many numbers one statement looks at.
const CHUNK: i64 = 100_000;

/// A counter, and what its numbers must agree with.
struct Counter {
    part: i16,
    period: String,
    gate: String,
    last: i64,
    closed: bool,
    /// The first values of its runs, in order.
    firsts: Vec<i64>,
}

/// What was seen of a counter's numbers so far.
#[derive(Default)]
struct Walk {
    /// The value before the next chunk.
    before: Option<i64>,
    /// The largest value that is not released.
    last: Option<i64>,
    /// The smallest value that is.
    released: Option<i64>,
    open: i64,
    /// Where the present stretch began.
    stretch: Option<i64>,
    /// The latest date so far.
    latest: Option<Date>,
}

impl Auditor<'_> {
    pub(super) async fn numbers(&mut self) -> Result<(), Error> {
        let counters = self.counters().await?;
        self.strict_since = self.strict_since().await?;
        let about = |counter: &Counter| counter.last - counter.firsts.first().copied().unwrap_or_default() + 1;
        // Numbers once, their texts once, claims once.
        let numbers: i64 = counters.iter().map(about).sum();
        self.progress.of = numbers.saturating_mul(3);
        let mut seen = 0;
        for counter in &counters {
            seen += self.walk(counter).await?;
        }
        if self.period.is_none() {
            self.numbers_outside(seen).await?;
        }
        Ok(())
    }

    async fn counters(&mut self) -> Result<Vec<Counter>, Error> {
        let rows = within(
            sqlx::query!(
                "select part, period, gate, last, closed_at is not null as \"closed!\" from counter
                  where tenant_id = $1 and series = $2 and ($3::text is null or period = $3) order by part, period",
                self.principal.tenant.0,
                self.series.name.as_str(),
                self.period
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        let mut counters = Vec::with_capacity(rows.len());
        for row in rows {
            let firsts = self.runs(row.part, &row.period).await?;
            let (next, shut) = (row.last + 1, row.gate == Gate::Closed.word());
            let comes = !shut && self.series.settings.fits(next);
            self.of(&row.period).next = comes.then_some(next);
            let (part, period) = (row.part, row.period);
            counters.push(Counter { part, period, gate: row.gate, last: row.last, closed: row.closed, firsts });
        }
        Ok(counters)
    }

    async fn runs(&mut self, part: i16, period: &str) -> Result<Vec<i64>, Error> {
        let rows = within(
            sqlx::query!(
                r#"select first, "limit", why, principal, at as "at: jiff_sqlx::Timestamp" from run
                    where tenant_id = $1 and series = $2 and part = $3 and period = $4 order by first"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                part,
                period
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        let firsts = rows.iter().map(|row| row.first).collect();
        let audit = self.of(period);
        audit.runs.extend(rows.into_iter().map(|row| Run {
            first: row.first,
            limit: row.limit,
            why: row.why,
            principal: row.principal,
            at: row.at.to_jiff(),
        }));
        Ok(firsts)
    }

    /// All numbers of a counter, and then the counter itself. How many there are.
    async fn walk(&mut self, counter: &Counter) -> Result<i64, Error> {
        let mut walk = Walk::default();
        let mut seen = 0;
        loop {
            let count = self.chunk(counter, &mut walk).await?;
            seen += count;
            if count < CHUNK {
                break;
            }
        }
        self.stretch_ends(counter, &walk);
        let period = Some(counter.period.as_str());
        // It stands at the last number, or right before a run that has none yet.
        let waits = counter.firsts.last().map(|first| first - 1).filter(|before| walk.last.is_none_or(|last| last < *before));
        if Some(counter.last) != waits.or(walk.last) {
            let shown = |value: Option<i64>| value.map_or("nothing".to_owned(), |value| value.to_string());
            let what = || format!("the counter stands at {}, the last number is {}", counter.last, shown(walk.last));
            self.impossible(period, what);
        }
        if let Some(value) = walk.released.filter(|value| *value <= counter.last) {
            self.impossible(period, || format!("value {value} is released, and the counter stands at {}", counter.last));
        }
        if counter.closed && (walk.open > 0 || counter.gate != Gate::Closed.word()) {
            self.impossible(period, || format!("the period is closed, and has {} open numbers", walk.open));
        }
        Ok(seen)
    }

    /// The next numbers of a counter; how many. As many as their values reach from the last ones, none is missing; only
    /// otherwise, or where more or fewer open a run than runs say, each is looked at.
    async fn chunk(&mut self, counter: &Counter, walk: &mut Walk) -> Result<i64, Error> {
        let rows = within(
            sqlx::query!(
                r#"select state as "state!", count(*) as "count!", min(value) as "first!", max(value) as "last!",
                          count(*) - count(prev) as "heads!", (sum(life) - count(*))::bigint as "later!"
                     from (select state, value, prev, life from number
                            where tenant_id = $1 and series = $2 and part = $3 and period = $4 and value > $5
                            order by value limit $6) n
                    group by state"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                counter.part,
                counter.period,
                walk.before.unwrap_or(-1),
                CHUNK
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        let (mut count, mut heads, mut first, mut last) = (0, 0, None, walk.before);
        for row in rows {
            let audit = self.of(&counter.period);
            match row.state.as_str() {
                // It waits above the counter to be given again.
                "released" => walk.released = walk.released.or(Some(row.first)),
                state => {
                    audit.first = Some(audit.first.map_or(row.first, |first| first.min(row.first)));
                    audit.last = audit.last.max(Some(row.last));
                    walk.last = walk.last.max(Some(row.last));
                    if matches!(state, "reserved" | "sending" | "failed" | "in_doubt") {
                        walk.open += row.count;
                    }
                }
            }
            *audit.states.entry(row.state).or_default() += row.count;
            count += row.count;
            heads += row.heads;
            self.later_lives += row.later;
            last = last.max(Some(row.last));
            first = Some(first.map_or(row.first, |first: i64| first.min(row.first)));
        }
        if let (Some(first), Some(last)) = (first, last) {
            let stands_on = walk.before.or_else(|| counter.firsts.first().map(|first| first - 1));
            let unbroken = stands_on.is_some_and(|before| first == before + 1 && last - before == count);
            let runs = counter.firsts.iter().filter(|run| (first..=last).contains(*run)).count();
            if unbroken && i64::try_from(runs) == Ok(heads) {
                walk.stretch = walk.stretch.or(Some(first));
            } else {
                self.each(counter, walk).await?;
            }
        }
        if let Some(since) = self.strict_since.filter(|_| count > 0) {
            self.dates(counter, walk, since).await?;
        }
        walk.before = last;
        self.went_on("numbers", count).await;
        Ok(count)
    }

    /// The same numbers one by one: where they break, and which open a run.
    async fn each(&mut self, counter: &Counter, walk: &mut Walk) -> Result<(), Error> {
        let rows = within(
            sqlx::query!(
                r#"select value as "value!", before, prev is null as "head!"
                     from (select value, prev, coalesce(lag(value) over (order by value), $5) as before
                             from (select value, prev from number
                                    where tenant_id = $1 and series = $2 and part = $3 and period = $4 and value > $6
                                    order by value limit $7) n) n
                    where prev is null or before is distinct from value - 1 order by value"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                counter.part,
                counter.period,
                walk.before,
                walk.before.unwrap_or(-1),
                CHUNK
            )
            .fetch_all(self.tx.db()),
        )
        .await?;
        for row in rows {
            if row.before != Some(row.value - 1) {
                self.breaks(counter, walk, row.value, row.before);
            }
            if row.head && counter.firsts.binary_search(&row.value).is_err() {
                self.impossible(Some(&counter.period), || format!("value {} follows none and opens no run", row.value));
            }
        }
        Ok(())
    }

    /// Whether the dates of the same numbers go back where they may not: since the series is strict, none is before the latest
    /// of the numbers below it.
    async fn dates(&mut self, counter: &Counter, walk: &mut Walk, since: i64) -> Result<(), Error> {
        let row = within(
            sqlx::query!(
                r#"select max(document_date) as "latest: jiff_sqlx::Date",
                          min(value) filter (where config_version >= $7 and document_date < greatest(before, $8)) as back
                     from (select value, document_date, config_version,
                                  max(document_date) over (order by value rows between unbounded preceding and 1 preceding) as before
                             from (select value, config_version, case when state <> 'released' then document_date end as document_date
                                     from number where tenant_id = $1 and series = $2 and part = $3 and period = $4 and value > $5
                                    order by value limit $6) n) n"#,
                self.principal.tenant.0,
                self.series.name.as_str(),
                counter.part,
                counter.period,
                walk.before.unwrap_or(-1),
                CHUNK,
                since,
                walk.latest.map(jiff_sqlx::ToSqlx::to_sqlx) as _
            )
            .fetch_one(self.tx.db()),
        )
        .await?;
        walk.latest = walk.latest.max(row.latest.map(jiff_sqlx::Date::to_jiff));
        if let Some(value) = row.back {
            let what = || format!("the series is strict, and value {value} is dated before a lower one");
            self.impossible(Some(&counter.period), what);
        }
        Ok(())
    }

    /// Since which version the series is strict without a break; none where it is not.
    async fn strict_since(&mut self) -> Result<Option<i64>, Error> {
        if self.series.settings.chronology != Chronology::Strict {
            return Ok(None);
        }
        let since = within(
            sqlx::query_scalar!(
                r#"select coalesce(max(version), 0) + 1 as "since!" from series_version
                    where tenant_id = $1 and series = $2 and settings ->> 'chronology' <> 'strict'"#,
                self.principal.tenant.0,
                self.series.name.as_str()
            )
            .fetch_one(self.tx.db()),
        )
        .await?;
        Ok(Some(since))
    }

    /// A value that does not follow the one before it: the beginning, a run that says so, or a gap.
    fn breaks(&mut self, counter: &Counter, walk: &mut Walk, value: i64, before: Option<i64>) {
        let ended = Walk { before, ..Walk { stretch: walk.stretch, ..Walk::default() } };
        self.stretch_ends(counter, &ended);
        walk.stretch = Some(value);
        if counter.firsts.binary_search(&value).is_ok() {
            return;
        }
        // Where nothing was before, it should have begun with the run that the value belongs to.
        let run = counter.firsts.iter().rev().find(|first| **first <= value).copied();
        let from = before.map_or(run.unwrap_or(value), |before| before + 1).max(run.unwrap_or_default());
        if from < value {
            add(&mut self.of(&counter.period).gaps, Gap { from, to: value - 1 });
        } else {
            self.impossible(Some(&counter.period), || format!("value {value} is before every run"));
        }
    }

    fn stretch_ends(&mut self, counter: &Counter, walk: &Walk) {
        if let (Some(first), Some(last)) = (walk.stretch, walk.before) {
            self.stretches.push(Stretch { part: counter.part, period: counter.period.clone(), first, last });
        }
    }

    /// Numbers of periods that have no counter.
    async fn numbers_outside(&mut self, seen: i64) -> Result<(), Error> {
        let all = within(
            sqlx::query_scalar!(
                r#"select count(*) as "count!" from number where tenant_id = $1 and series = $2"#,
                self.principal.tenant.0,
                self.series.name.as_str()
            )
            .fetch_one(self.tx.db()),
        )
        .await?;
        if all != seen {
            self.impossible(None, || format!("{} numbers belong to no counter", all - seen));
        }
        Ok(())
    }
}
