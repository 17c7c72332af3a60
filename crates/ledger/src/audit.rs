//! The audit: what the ledger says about itself, each line an exact query in one snapshot.

use std::collections::BTreeMap;

use domain::{
    id::SeriesName,
    next::Gate,
    period::Period,
    principal::Principal,
    refusal::Refusal,
    series::{FieldError, Settings},
};
use jiff::Timestamp;
use store::{Authority, Error, Snapshot, Stop, Tx};

use crate::{Ledger, PROVING, series};

/// The audit of a series, period by period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Every period that has a counter or a number, in the order of their names.
    pub periods: Vec<PeriodAudit>,
}

/// The audit of one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodAudit {
    /// Which.
    pub period: Period,
    /// The smallest value given; none where there is none.
    pub first: Option<i64>,
    /// The largest value given.
    pub last: Option<i64>,
    /// The value that comes next; none where the period is closed or exhausted.
    pub next: Option<i64>,
    /// How many numbers are in which state.
    pub states: BTreeMap<String, i64>,
    /// The unbroken stretches.
    pub runs: Vec<Run>,
    /// Values that nobody can account for; must be empty.
    pub gaps: Vec<Gap>,
    /// Texts that stand on two documents; must be empty.
    pub duplicates: Vec<String>,
    /// Reservations past their deadline.
    pub overdue: Vec<String>,
    /// Numbers that wait for the outside system's answer for too long.
    pub stuck: Vec<String>,
    /// States that can't be, as sentences; must be empty.
    pub impossible: Vec<String>,
}

/// An unbroken stretch of values, and who began it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its first value.
    pub first: i64,
    /// The last value that it may reach, where it has an end.
    pub limit: Option<i64>,
    /// `start`, `takeover`, `authorisation` or `raised`.
    pub why: String,
    /// Who.
    pub principal: String,
    /// When.
    pub at: Timestamp,
}

/// Values between two numbers that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first missing value.
    pub from: i64,
    /// The last missing value.
    pub to: i64,
}

impl PeriodAudit {
    fn empty(period: String) -> Self {
        Self {
            period: Period::named(period),
            first: None,
            last: None,
            next: None,
            states: BTreeMap::new(),
            runs: Vec::new(),
            gaps: Vec::new(),
            duplicates: Vec::new(),
            overdue: Vec::new(),
            stuck: Vec::new(),
            impossible: Vec::new(),
        }
    }

    /// Whether every value is accounted for.
    pub fn complete(&self) -> bool {
        self.gaps.is_empty() && self.duplicates.is_empty() && self.impossible.is_empty()
    }
}

impl Ledger {
    /// Audits a series, or one period of it; none if the series is not on this shard.
    #[tracing::instrument(name = "ledger.audit", skip_all, fields(shard), err(level = "debug"))]
    pub async fn audit(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
        period: Option<&Period>,
    ) -> Result<Option<Audit>, Stop> {
        store::read(PROVING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::OneMoment).await?;
            let Some(series) = series::read(&mut tx, principal, name).await? else { return Ok(None) };
            if let Some(odd) = period.filter(|period| !series.settings.reset.makes(period)) {
                let detail = format!(
                    "{odd} is no period of this series; with reset {} its periods are named like {}",
                    series.settings.reset.word(),
                    series.settings.period(series.settings.today(self.clock.instant()))
                );
                return Err(Refusal::Invalid(vec![FieldError::new("/period", detail)]).into());
            }
            let period = period.map(Period::as_str);
            let mut auditor = Auditor { tx, principal, settings: &series.settings, name, period, periods: BTreeMap::new() };
            auditor.counters().await?;
            auditor.states().await?;
            auditor.runs().await?;
            auditor.gaps().await?;
            auditor.duplicates().await?;
            auditor.counters_in_step().await?;
            auditor.claims_with_numbers().await?;
            auditor.claims_apart().await?;
            auditor.tx.end().await?;
            Ok(Some(Audit { periods: auditor.periods.into_values().collect() }))
        })
        .await
    }
}

struct Auditor<'a> {
    tx: Tx<'static>,
    principal: &'a Principal,
    settings: &'a Settings,
    name: &'a SeriesName,
    period: Option<&'a str>,
    periods: BTreeMap<String, PeriodAudit>,
}

impl Auditor<'_> {
    fn of(&mut self, period: String) -> &mut PeriodAudit {
        self.periods.entry(period.clone()).or_insert_with(|| PeriodAudit::empty(period))
    }

    async fn counters(&mut self) -> Result<(), Error> {
        let rows = sqlx::query!(
            "select period, gate, last from counter
              where tenant_id = $1 and series = $2 and ($3::text is null or period = $3) order by period, part",
            self.principal.tenant.0,
            self.name.as_str(),
            self.period
        )
        .fetch_all(self.tx.db())
        .await?;
        for row in rows {
            let next = row.last + 1;
            let comes = row.gate != Gate::Closed.word() && self.settings.fits(next);
            self.of(row.period).next = comes.then_some(next);
        }
        Ok(())
    }

    async fn states(&mut self) -> Result<(), Error> {
        let rows = sqlx::query!(
            r#"select period, state, count(*) as "count!", min(value) as "first!", max(value) as "last!" from number
                where tenant_id = $1 and series = $2 and ($3::text is null or period = $3) group by period, state"#,
            self.principal.tenant.0,
            self.name.as_str(),
            self.period
        )
        .fetch_all(self.tx.db())
        .await?;
        for row in rows {
            let audit = self.of(row.period);
            // A released row above the counter is waiting to be given again.
            if row.state != "released" {
                audit.first = Some(audit.first.map_or(row.first, |first| first.min(row.first)));
                audit.last = Some(audit.last.map_or(row.last, |last| last.max(row.last)));
            }
            audit.states.insert(row.state, row.count);
        }
        Ok(())
    }

    async fn runs(&mut self) -> Result<(), Error> {
        let rows = sqlx::query!(
            r#"select period, first, "limit", why, principal, at from run
                where tenant_id = $1 and series = $2 and ($3::text is null or period = $3) order by period, part, first"#,
            self.principal.tenant.0,
            self.name.as_str(),
            self.period
        )
        .fetch_all(self.tx.db())
        .await?;
        for row in rows {
            let run = Run { first: row.first, limit: row.limit, why: row.why, principal: row.principal, at: row.at.to_jiff() };
            self.of(row.period).runs.push(run);
        }
        Ok(())
    }

    /// A value that does not follow the one before it, and opens no run.
    async fn gaps(&mut self) -> Result<(), Error> {
        let rows = sqlx::query!(
            r#"select n.period, coalesce(n.before + 1, (select min(r.first) from run r
                        where r.tenant_id = $1 and r.series = $2 and r.part = n.part and r.period = n.period), n.value) as "from!",
                      n.value - 1 as "to!"
                 from (select part, period, value, lag(value) over (partition by part, period order by value) as before
                         from number where tenant_id = $1 and series = $2 and ($3::text is null or period = $3)) n
                where n.before is distinct from n.value - 1
                  and not exists (select from run r where r.tenant_id = $1 and r.series = $2 and r.part = n.part
                                     and r.period = n.period and r.first = n.value)
                order by n.period, n.part, n.value"#,
            self.principal.tenant.0,
            self.name.as_str(),
            self.period
        )
        .fetch_all(self.tx.db())
        .await?;
        for row in rows {
            self.of(row.period).gaps.push(Gap { from: row.from, to: row.to });
        }
        Ok(())
    }

    async fn duplicates(&mut self) -> Result<(), Error> {
        let rows = sqlx::query!(
            r#"select min(period) as "period!", number as "number!" from number
                where tenant_id = $1 and series = $2 and ($3::text is null or period = $3) and number is not null
                group by number having count(*) > 1 order by number"#,
            self.principal.tenant.0,
            self.name.as_str(),
            self.period
        )
        .fetch_all(self.tx.db())
        .await?;
        for row in rows {
            self.of(row.period).duplicates.push(row.number);
        }
        Ok(())
    }

    /// The counter is the last value given, or one before the run where none was given yet.
    async fn counters_in_step(&mut self) -> Result<(), Error> {
        let rows = sqlx::query!(
            r#"select coalesce(c.period, n.period) as "period!", c.last as "counter?", n.last as "ledger?"
                 from (select part, period, last from counter
                        where tenant_id = $1 and series = $2 and ($3::text is null or period = $3)) c
                 full join (select part, period, max(value) filter (where state <> 'released') as last from number
                        where tenant_id = $1 and series = $2 and ($3::text is null or period = $3) group by part, period) n
                   on n.part = c.part and n.period = c.period
                where c.last is distinct from coalesce(n.last, (select min(r.first) - 1 from run r where r.tenant_id = $1
                        and r.series = $2 and r.part = coalesce(c.part, n.part) and r.period = coalesce(c.period, n.period)))
                order by 1"#,
            self.principal.tenant.0,
            self.name.as_str(),
            self.period
        )
        .fetch_all(self.tx.db())
        .await?;
        for row in rows {
            let shown = |value: Option<i64>| value.map_or("nothing".to_owned(), |value| value.to_string());
            let said = format!("the counter stands at {}, the last number is {}", shown(row.counter), shown(row.ledger));
            self.of(row.period).impossible.push(said);
        }
        Ok(())
    }

    /// Value by value: a join on a range walks all numbers for each claim, since the policies keep its upper end out of
    /// the index condition, and an audit then takes the square of the time.
    async fn claims_with_numbers(&mut self) -> Result<(), Error> {
        let rows = sqlx::query!(
            r#"select c.period, c.first as "first!", c.count, count(n.value) as "there!"
                 from (select part, period, first, count, first + place as value from claim
                        cross join lateral generate_series(0, count - 1) place
                        where tenant_id = $1 and series = $2 and ($3::text is null or period = $3) and count > 0) c
                 left join (select part, period, value from number
                        where tenant_id = $1 and series = $2 and ($3::text is null or period = $3)) n
                   on n.part = c.part and n.period = c.period and n.value = c.value
                group by c.part, c.period, c.first, c.count having count(n.value) <> c.count
                order by c.period, c.first"#,
            self.principal.tenant.0,
            self.name.as_str(),
            self.period
        )
        .fetch_all(self.tx.db())
        .await?;
        for row in rows {
            let said = format!("a claim took {} values from {}, of which {} are there", row.count, row.first, row.there);
            self.of(row.period).impossible.push(said);
        }
        Ok(())
    }

    async fn claims_apart(&mut self) -> Result<(), Error> {
        let rows = sqlx::query!(
            r#"select period, first as "first!" from (
                 select period, first, lag(first + count) over (partition by part, period order by first) as free from claim
                  where tenant_id = $1 and series = $2 and ($3::text is null or period = $3) and count > 0) c
                where free > first order by period, first"#,
            self.principal.tenant.0,
            self.name.as_str(),
            self.period
        )
        .fetch_all(self.tx.db())
        .await?;
        for row in rows {
            let said = format!("two claims took value {}", row.first);
            self.of(row.period).impossible.push(said);
        }
        Ok(())
    }
}
