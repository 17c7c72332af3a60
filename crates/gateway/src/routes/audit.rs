//! The proof of a series.

use api::{Audit, Gap, PeriodAudit, Run};
use axum::{
    Extension,
    extract::{Query, State},
};
use domain::{id::SeriesName, period::Period, principal::Principal};
use serde::Deserialize;

use crate::{app::Gateway, body::Path, problem::Failed};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    period: Option<String>,
}

pub(crate) async fn audit(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Result<axum::Json<Audit>, Failed> {
    let name = SeriesName::parse(&name)?;
    let period = super::query(asked)?.period;
    if period.as_ref().is_some_and(|period| !(1..=16).contains(&period.len()) || !period.bytes().all(|b| b.is_ascii_graphic())) {
        return Err(Failed::field("/period", "must be a period's name, such as 2026, 2026-Q1, 2026-01 or all"));
    }
    let period = period.map(Period::named);
    let placement = gateway.placement(&principal, &name).await?;
    let audit = gateway.ledger.audit(&placement.shard, &principal, &name, period.as_ref()).await.map_err(Failed::shard)?;
    let audit = audit.ok_or_else(|| Failed::not_found(format!("series {name}")))?;
    let mut periods: Vec<_> = audit.periods.iter().map(words).collect();
    let (whole, periods) = match &period {
        Some(period) => {
            // A period that has not begun has nothing to account for.
            let untouched = PeriodAudit { period: Some(period.to_string()), complete: true, ..PeriodAudit::default() };
            (periods.pop().unwrap_or(untouched), None)
        }
        None => (sum(&periods), Some(periods)),
    };
    Ok(axum::Json(Audit { series: name.to_string(), whole, periods }))
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
