//! The proof of a series. For millions of numbers it takes a while, so it can be followed: with `?format=jsonl` each line
//! says how far it is, and the last one is the proof. Without, a proof that takes long begins with white space, which JSON
//! allows, so that nobody on the way gives up waiting.

use std::{sync::Arc, time::Duration};

use api::{Audit, AuditLine, Gap, PeriodAudit, Progress, Run, Slug};
use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    response::{IntoResponse, Response},
};
use directory::Placement;
use domain::{id::SeriesName, period::Period, principal::Principal};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::{
    app::Gateway,
    body::Path,
    operation::Call,
    problem::Failed,
    routes::periods,
    stream::{self, Pieces},
};

/// A proof that is there by then is an answer like any other.
const AT_ONCE: Duration = Duration::from_secs(4);
/// How long one waits for another to end: less, so that who gets no turn is told so.
const TURN: Duration = Duration::from_secs(3);
/// How often something is sent while there is nothing to say.
const ALIVE: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    period: Option<String>,
    format: Option<String>,
}

/// One series, or one period of it.
struct Scope {
    principal: Principal,
    placement: Arc<Placement>,
    period: Option<Period>,
    at: Timestamp,
}

pub(crate) async fn audit(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    Path(name): Path<String>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, Failed> {
    let name = SeriesName::parse(&name)?;
    let asked = super::query(asked)?;
    let period = asked.period.as_deref().map(|name| {
        let detail = "must be a period's name, such as 2026, 2026-Q1, 2026-01 or all";
        periods::named(name).ok_or_else(|| Failed::field("/period", detail))
    });
    let period = period.transpose()?;
    let followed = match asked.format.as_deref() {
        None => false,
        Some("jsonl") => true,
        Some(_) => return Err(Failed::field("/format", "must be jsonl; without it the answer is the proof alone")),
    };
    let placement = gateway.placement(&principal, &name).await?;
    let auditable = gateway.ledger.auditable(&placement.shard, &principal, &name, period.as_ref()).await;
    auditable.map_err(Failed::shard)?;
    let scope = Scope { principal, placement, period, at: call.at };
    let (tell, told) = mpsc::channel(16);
    let work = run(gateway.clone(), scope, tell);
    if followed { Ok(follow(&gateway, work, told)) } else { wait(&gateway, work).await }
}

/// The audit itself. It holds a connection for long, so only some run at once.
async fn run(gateway: Gateway, scope: Scope, tell: mpsc::Sender<Progress>) -> Result<Audit, Failed> {
    let busy = || Failed::new(Slug::Busy, "other audits are running; nothing was read, ask again in a moment");
    let turn = tokio::time::timeout(TURN, gateway.audits.clone().acquire_owned()).await;
    let _turn = turn.map_err(|_| busy())?.map_err(|_| busy())?;
    let Scope { principal, placement, period, at } = scope;
    let mut watch = |now: ledger::Progress| {
        // Whoever is behind hears of the next one.
        let _ = tell.try_send(Progress { step: now.step.to_owned(), done: now.done, of: now.of });
        Duration::ZERO
    };
    let name = &placement.name;
    let audit = gateway.ledger.audit(&placement.shard, &principal, name, period.as_ref(), at, &mut watch).await;
    Ok(whole(name, period.as_ref(), &audit.map_err(Failed::shard)?))
}

/// The proof alone.
async fn wait(gateway: &Gateway, work: impl Future<Output = Result<Audit, Failed>> + Send + 'static) -> Result<Response, Failed> {
    let mut work = Box::pin(work);
    if let Ok(done) = tokio::time::timeout(AT_ONCE, &mut work).await {
        return Ok(axum::Json(done?).into_response());
    }
    Ok(stream::answer(gateway, "application/json", move |mut pieces| async move {
        loop {
            match tokio::time::timeout(ALIVE, &mut work).await {
                Ok(Ok(audit)) => return end(pieces, &audit).await,
                Ok(Err(failed)) => return tracing::warn!(?failed, "an audit was cut off"),
                Err(_) if pieces.send("\n").await.is_err() => return,
                Err(_) => {}
            }
        }
    }))
}

/// How far it is, line by line.
fn follow(
    gateway: &Gateway,
    work: impl Future<Output = Result<Audit, Failed>> + Send + 'static,
    mut told: mpsc::Receiver<Progress>,
) -> Response {
    stream::answer(gateway, "application/jsonl", move |mut pieces| async move {
        let mut work = Box::pin(work);
        let done = loop {
            let progress = tokio::select! {
                done = &mut work => break done,
                Some(progress) = told.recv() => progress,
            };
            let Some(line) = line(&AuditLine::Progress(progress)) else { return };
            if pieces.send(line).await.is_err() {
                return;
            }
        };
        match done {
            Ok(audit) => end(pieces, &AuditLine::Audit(Box::new(audit))).await,
            Err(failed) => tracing::warn!(?failed, "an audit was cut off"),
        }
    })
}

async fn end(mut pieces: Pieces, last: &impl Serialize) {
    if let Some(line) = line(last)
        && pieces.send(line).await.is_ok()
    {
        pieces.finish();
    }
}

fn line(value: &impl Serialize) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(value).ok()?;
    line.push(b'\n');
    Some(line)
}

fn whole(name: &SeriesName, period: Option<&Period>, audit: &ledger::Audit) -> Audit {
    let mut periods: Vec<_> = audit.periods.iter().map(words).collect();
    let (mut whole, periods) = match period {
        Some(period) => {
            // A period that has not begun has nothing to account for.
            let untouched = PeriodAudit { period: Some(period.to_string()), complete: true, ..PeriodAudit::default() };
            (periods.pop().unwrap_or(untouched), None)
        }
        None => (sum(&periods), Some(periods)),
    };
    whole.complete &= audit.impossible.is_empty();
    whole.impossible.extend(audit.impossible.iter().cloned());
    Audit { series: name.to_string(), whole, periods }
}

fn words(audit: &ledger::PeriodAudit) -> PeriodAudit {
    let period = audit.period.to_string();
    PeriodAudit {
        first: audit.first,
        last: audit.last,
        next: audit.next,
        states: audit.states.clone(),
        runs: audit
            .runs
            .iter()
            .map(|run| Run {
                period: period.clone(),
                first: run.first,
                limit: run.limit,
                why: run.why.clone(),
                principal: run.principal.clone(),
                at: super::instant(run.at),
            })
            .collect(),
        gaps: audit.gaps.iter().map(|gap| Gap { period: period.clone(), from: gap.from, to: gap.to }).collect(),
        duplicates: audit.duplicates.clone(),
        overdue: audit.overdue.clone(),
        stuck: audit.stuck.clone(),
        impossible: audit.impossible.clone(),
        complete: audit.complete(),
        period: Some(period),
    }
}

/// Over all periods: counts are added, lists joined. Values of different periods have no first or last.
fn sum(periods: &[PeriodAudit]) -> PeriodAudit {
    let mut whole = PeriodAudit { complete: true, ..PeriodAudit::default() };
    if let [only] = periods {
        (whole.first, whole.last, whole.next) = (only.first, only.last, only.next);
    }
    for audit in periods {
        for (state, count) in &audit.states {
            *whole.states.entry(state.clone()).or_default() += count;
        }
        whole.runs.extend(audit.runs.iter().cloned());
        whole.gaps.extend(audit.gaps.iter().cloned());
        whole.duplicates.extend(audit.duplicates.iter().cloned());
        whole.overdue.extend(audit.overdue.iter().cloned());
        whole.stuck.extend(audit.stuck.iter().cloned());
        whole.impossible.extend(audit.impossible.iter().cloned());
        whole.complete &= audit.complete;
    }
    whole
}
