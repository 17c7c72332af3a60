//! The audit: what the ledger says about itself. Everything is asked in one snapshot, and each question is one whose answer
//! must be nothing, or a list that a person wants to see.
//!
//! | pass | what | how it stays small |
//! |---|---|---|
//! | `numbers` | counts by state, gaps, the counter against the ledger, lives | a stretch of values at a time, in the order of the key |
//! | `cross` | texts on two documents, states against histories, overdue and stuck numbers, the database's guards | the database answers with findings only |
//! | `claims` | claims whose numbers are not there, or that share one | streamed; a bit for each value |
//!
//! Lists of findings end at [`MOST`]. A ledger that is as it must be makes none of them long.

mod bits;
mod claims;
mod cross;
mod numbers;

use std::{collections::BTreeMap, time::Duration};

use domain::{
    id::SeriesName,
    period::Period,
    principal::Principal,
    refusal::Refusal,
    series::{FieldError, Series},
};
use jiff::Timestamp;
use store::{Authority, Error, Snapshot, Stop, Tx};

use crate::{Ledger, READING, period, series};

/// The most entries of one list in an audit; for what must be nothing, that there are more is said too.
pub const MOST: usize = 10_000;

/// How long one step may take: a server that is gone without a word is found out by a clock only. The server's own limit
/// on a statement comes first.
const STEP: Duration = Duration::from_secs(150);

/// The audit of a series, period by period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Every period that has a counter, in the order of their names.
    pub periods: Vec<PeriodAudit>,
    /// States that can't be and belong to no period, as sentences; must be empty.
    pub impossible: Vec<String>,
}

impl Audit {
    /// How many states were found that can't be.
    pub fn impossible_states(&self) -> usize {
        let of = |audit: &PeriodAudit| audit.gaps.len() + audit.duplicates.len() + audit.impossible.len();
        self.impossible.len() + self.periods.iter().map(of).sum::<usize>()
    }
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
    /// Reservations past their deadline, the oldest first.
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

/// How far an audit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is looked at.
    pub step: &'static str,
    /// How many rows were.
    pub done: i64,
    /// Of about how many.
    pub of: i64,
}

impl PeriodAudit {
    fn empty(period: &str) -> Self {
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

/// Adds a finding, up to a limit. True where it was added, or was the first too many.
fn add<T>(list: &mut Vec<T>, finding: T) -> bool {
    let fits = list.len() < MOST;
    if fits {
        list.push(finding);
    }
    fits
}

/// Who is told how far an audit is, and may slow it down: the answer is how long it rests.
pub type Watch<'w> = &'w mut (dyn FnMut(Progress) -> Duration + Send);

impl Ledger {
    /// Whether there is anything to audit: [`Refusal::NotFound`] where the series is not on this shard,
    /// [`Refusal::Invalid`] where it can have no such period.
    pub async fn auditable(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
        period: Option<&Period>,
    ) -> Result<(), Stop> {
        let series = self.series(shard, principal, name).await?;
        self.check_audit(&series.ok_or_else(|| Refusal::NotFound(format!("series {name}")))?, period)
    }

    fn check_audit(&self, series: &Series, period: Option<&Period>) -> Result<(), Stop> {
        match period.filter(|period| !series.settings.reset.makes(period)) {
            None => Ok(()),
            Some(odd) => {
                let detail = format!("there is no {}", period::no_such(series, odd, self.clock.instant()));
                Err(Refusal::Invalid(vec![FieldError::new("/period", detail)]).into())
            }
        }
    }

    /// Audits a series, or one period of it, as it is at one moment. `at` decides what is overdue.
    ///
    /// It takes seconds for millions of numbers, holds one connection meanwhile, and is not tried again. It writes nothing,
    /// so it can be dropped.
    #[tracing::instrument(name = "ledger.audit", skip_all, fields(shard), err(level = "debug"))]
    pub async fn audit(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
        period: Option<&Period>,
        at: Timestamp,
        watch: Watch<'_>,
    ) -> Result<Audit, Stop> {
        let begun = store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::OneMoment).await?;
            let series = series::read(&mut tx, principal, name).await?;
            Ok((tx, series))
        });
        let (tx, series) = begun.await?;
        let series = series.ok_or_else(|| Refusal::NotFound(format!("series {name}")))?;
        self.check_audit(&series, period)?;
        let period = period.map(Period::as_str);
        let mut auditor = Auditor {
            tx,
            principal,
            series: &series,
            period,
            at,
            watch,
            progress: Progress { step: "", done: 0, of: 0 },
            periods: BTreeMap::new(),
            stretches: Vec::new(),
            later_lives: 0,
            strict_since: None,
            impossible: Vec::new(),
        };
        auditor.get_ready().await?;
        auditor.numbers().await?;
        auditor.cross_check().await?;
        auditor.claims().await?;
        auditor.tx.end().await?;
        Ok(Audit { periods: auditor.periods.into_values().collect(), impossible: auditor.impossible })
    }
}

/// An audit on its way.
struct Auditor<'a> {
    tx: Tx<'static>,
    principal: &'a Principal,
    series: &'a Series,
    period: Option<&'a str>,
    at: Timestamp,
    watch: Watch<'a>,
    progress: Progress,
    periods: BTreeMap<String, PeriodAudit>,
    /// Where numbers are, in the order of the key: what claims took must be inside.
    stretches: Vec<Stretch>,
    /// How many lives numbers have had beyond their first.
    later_lives: i64,
    /// Since which version the series is strict; none where it is not.
    strict_since: Option<i64>,
    impossible: Vec<String>,
}

/// Values of a counter that are all there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    part: i16,
    period: String,
    first: i64,
    last: i64,
}

impl Auditor<'_> {
    /// What only an audit needs: room to sort, and more time for a statement than a request has.
    async fn get_ready(&mut self) -> Result<(), Error> {
        sqlx::query!(
            "select set_config('work_mem', '64MB', true) as memory, set_config('statement_timeout', '120s', true) as time"
        )
        .fetch_one(self.tx.db())
        .await?;
        Ok(())
    }

    fn of(&mut self, period: &str) -> &mut PeriodAudit {
        self.periods.entry(period.to_owned()).or_insert_with(|| PeriodAudit::empty(period))
    }

    /// Notes what can't be.
    fn impossible(&mut self, period: Option<&str>, what: impl FnOnce() -> String) {
        let list = match period {
            Some(period) => &mut self.of(period).impossible,
            None => &mut self.impossible,
        };
        match list.len() {
            MOST => list.push(format!("there are more than {MOST} of these; the rest is left out")),
            len if len < MOST => list.push(what()),
            _ => {}
        }
    }

    /// Tells how far it is, and rests for as long as it is told to.
    async fn went_on(&mut self, step: &'static str, rows: i64) {
        self.progress.step = step;
        self.progress.done = (self.progress.done + rows).min(self.progress.of);
        let rest = (self.watch)(self.progress);
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
        }
    }
}

/// A step that takes too long has lost its server.
async fn within<T>(step: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, Error> {
    match tokio::time::timeout(STEP, step).await {
        Ok(done) => Ok(done?),
        Err(late) => Err(Error::Unavailable(late.into())),
    }
}
