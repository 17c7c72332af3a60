//! One number with its history: "where did 1454 go?"

use api::{Entry, Explained};
use axum::{Extension, extract::State};
use domain::{id::SeriesName, principal::Principal};

use crate::{app::Gateway, body::Path, problem::Failed};

pub(crate) async fn explain(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Path((name, text)): Path<(String, String)>,
) -> Result<axum::Json<Explained>, Failed> {
    let name = SeriesName::parse(&name)?;
    let text = readable(text)?;
    let placement = gateway.placement(&principal, &name).await?;
    let explained = gateway.ledger.explain(&placement.shard, &principal, &name, &text).await.map_err(Failed::shard)?;
    let missing = || Failed::not_found(format!("number {text} in series {name}: its pattern makes no such text"));
    let explained = explained.ok_or_else(missing)?;
    Ok(axum::Json(words(&name, &text, explained)))
}

/// What may stand in a number. No pattern makes anything else, and no database column takes a NUL.
pub(crate) fn readable(text: String) -> Result<String, Failed> {
    if text.is_empty() || text.len() > 64 || !text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Err(Failed::not_found("such number"));
    }
    Ok(text)
}

pub(crate) fn words(series: &SeriesName, text: &str, explained: ledger::Explained) -> Explained {
    match explained {
        ledger::Explained::Used { number, metadata, history } => {
            let number = super::issue::words(series, &number);
            Explained {
                number: number.number,
                value: number.value,
                period: number.period,
                part: number.part,
                series: number.series,
                state: number.state,
                life: number.life,
                document_ref: number.document_ref,
                document_date: Some(number.document_date),
                issued_at: number.issued_at,
                metadata,
                history: history.into_iter().map(entry).collect(),
            }
        }
        ledger::Explained::Unused(unused) => Explained {
            number: text.to_owned(),
            value: unused.value,
            period: unused.period.to_string(),
            part: 0,
            series: series.to_string(),
            state: "unused".to_owned(),
            life: None,
            document_ref: None,
            document_date: None,
            issued_at: None,
            metadata: None,
            history: vec![Entry {
                at: None,
                from: None,
                to: "unused".to_owned(),
                principal: None,
                operation_id: None,
                reason: Some(unused.why),
                trace_id: None,
            }],
        },
    }
}

fn entry(entry: ledger::Entry) -> Entry {
    Entry {
        at: Some(super::instant(entry.at)),
        from: entry.from,
        to: entry.to,
        principal: Some(entry.principal),
        operation_id: Some(entry.operation_id),
        reason: entry.reason,
        trace_id: entry.trace_id,
    }
}
