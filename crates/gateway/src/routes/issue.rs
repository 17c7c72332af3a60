//! Taking numbers: issuing one, `count`, or `items`; reserving one for a document.

use api::{Issue, Item, Reserve};
use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use domain::{
    id::{DocumentRef, SeriesName},
    period::parse_date,
    principal::Principal,
    series::FieldError,
};
use ledger::{Member, Number, Operation, Order};
use serde_json::Value;

use crate::{
    app::Gateway,
    body::{Json, Path},
    idempotency::Keyed,
    json,
    operation::Call,
    problem::Failed,
};

/// The most documents in one request.
const MOST: usize = 1_000;
/// The most metadata with one number, in bytes of JSON.
const METADATA: usize = 16 * 1024;

pub(crate) async fn issue(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    Path(name): Path<String>,
    key: Keyed,
    Json(body): Json<Issue>,
) -> Result<Response, Failed> {
    let series = SeriesName::parse(&name)?;
    let several = body.count.is_some() || body.items.is_some();
    let members = members(&body)?;
    let fingerprint = key.fingerprint("issue", &body)?;
    let order = order(Operation::Issue, series, (key, fingerprint), members, call);
    take(&gateway, &principal, order, several).await
}

pub(crate) async fn reserve(
    State(gateway): State<Gateway>,
    Extension(principal): Extension<Principal>,
    Extension(call): Extension<Call>,
    Path(name): Path<String>,
    key: Keyed,
    Json(body): Json<Reserve>,
) -> Result<Response, Failed> {
    let series = SeriesName::parse(&name)?;
    let fingerprint = key.fingerprint("reserve", &body)?;
    let mut errors = Vec::new();
    let item = Item { document_ref: Some(body.document_ref), document_date: body.document_date, metadata: body.metadata };
    let members = vec![member(&item, "", &mut errors)];
    if !errors.is_empty() {
        return Err(Failed::fields(errors));
    }
    let order = order(Operation::Reserve, series, (key, fingerprint), members, call);
    take(&gateway, &principal, order, false).await
}

fn order(
    operation: Operation,
    series: SeriesName,
    (key, fingerprint): (Keyed, [u8; 32]),
    members: Vec<Member>,
    call: Call,
) -> Order {
    Order {
        operation,
        series,
        key: key.key,
        fingerprint,
        members,
        at: call.at,
        operation_id: call.operation_id,
        trace_id: call.trace_id,
    }
}

/// Takes what is wanted, once for each key, and answers with it.
async fn take(gateway: &Gateway, principal: &Principal, order: Order, several: bool) -> Result<Response, Failed> {
    let series = order.series.clone();
    let _flight = gateway.flights.board(format!("{}/{series}/{}", principal.tenant, order.key)).await?;
    let placement = gateway.placement(principal, &series).await?;
    let answer = gateway.ledger.issue(&placement.shard, principal, order).await.map_err(Failed::shard)?;
    let status = if answer.fresh { StatusCode::CREATED } else { StatusCode::OK };
    let mut numbers: Vec<_> = answer.numbers.iter().map(|number| words(&series, number)).collect();
    let only = if several { None } else { numbers.pop() };
    let mut headers = HeaderMap::new();
    if let Some(only) = &only {
        headers = super::location(&format!("/v1/series/{}/numbers/{}", only.series, api::escape(&only.number)));
    }
    if answer.replayed {
        super::mark_replayed(&mut headers);
    }
    let body = match only {
        Some(only) => axum::Json(only).into_response(),
        None => axum::Json(api::Numbers { numbers }).into_response(),
    };
    Ok((status, headers, body).into_response())
}

/// The documents that a body asks for, or every field that is wrong.
fn members(body: &Issue) -> Result<Vec<Member>, Failed> {
    let mut errors = Vec::new();
    let own = Item {
        document_ref: body.document_ref.clone(),
        document_date: body.document_date.clone(),
        metadata: body.metadata.clone(),
    };
    let members = match (body.count, &body.items) {
        (None, None) => vec![member(&own, "", &mut errors)],
        (Some(count), None) => {
            let wanted = usize::try_from(count).ok().filter(|count| (1..=MOST).contains(count));
            if wanted.is_none() {
                errors.push(FieldError::new("/count", format!("must be from 1 to {MOST}")));
            }
            if body.document_ref.is_some() {
                errors.push(FieldError::new("/document_ref", "one reference can't have several numbers; use items"));
            }
            vec![member(&own, "", &mut errors); wanted.unwrap_or_default()]
        }
        (None, Some(items)) => {
            if own != Item::default() {
                errors.push(FieldError::new("/items", "goes alone: put document_ref, document_date and metadata into each item"));
            }
            if !(1..=MOST).contains(&items.len()) {
                errors.push(FieldError::new("/items", format!("must be 1 to {MOST} items, not {}", items.len())));
            }
            let mut seen = std::collections::HashSet::new();
            for (place, reference) in items.iter().map(|item| &item.document_ref).enumerate() {
                if reference.as_ref().is_some_and(|reference| !seen.insert(reference)) {
                    errors.push(FieldError::new(format!("/items/{place}/document_ref"), "comes twice in this request"));
                }
            }
            items
                .iter()
                .take(MOST)
                .enumerate()
                .map(|(place, item)| member(item, &format!("/items/{place}"), &mut errors))
                .collect()
        }
        (Some(_), Some(_)) => {
            errors.push(FieldError::new("/count", "can't go with items; send one of them"));
            Vec::new()
        }
    };
    if errors.is_empty() { Ok(members) } else { Err(Failed::fields(errors)) }
}

fn member(item: &Item, at: &str, errors: &mut Vec<FieldError>) -> Member {
    let mut fail = |field: &str, detail: String| errors.push(FieldError::new(format!("{at}/{field}"), detail));
    let document_ref = item.document_ref.as_deref().and_then(|raw| match DocumentRef::parse(raw) {
        Ok(reference) => Some(reference),
        Err(error) => {
            fail("document_ref", error.to_string());
            None
        }
    });
    let document_date = item.document_date.as_deref().and_then(|raw| match parse_date(raw) {
        Ok(date) => Some(date),
        Err(detail) => {
            fail("document_date", detail);
            None
        }
    });
    let metadata = item.metadata.clone().map(Value::Object);
    if let Some(detail) = metadata.as_ref().and_then(unfit) {
        fail("metadata", detail);
    }
    Member { document_ref, document_date, metadata }
}

/// Why this can't be kept with a number.
pub(crate) fn unfit(metadata: &Value) -> Option<String> {
    if metadata.to_string().len() > METADATA {
        return Some(format!("must be at most {METADATA} bytes of JSON"));
    }
    let exact = json::is_exact(metadata);
    (!exact).then(|| "holds a number beyond 2^53 - 1, which would not come back as it is; send it as a text".to_owned())
}

pub(crate) fn words(series: &SeriesName, number: &Number) -> api::Number {
    api::Number {
        number: number.number.clone(),
        value: number.value,
        period: number.period.to_string(),
        part: number.part,
        series: series.to_string(),
        state: number.state.word().to_owned(),
        life: (number.life > 1).then_some(number.life),
        document_ref: number.document_ref.clone(),
        document_date: number.document_date.to_string(),
        issued_at: number.issued_at.map(super::instant),
    }
}
