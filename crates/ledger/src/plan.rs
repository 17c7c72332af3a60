//! Who of a batch gets which numbers: decided from what was read, without touching anything.
//!
//! Orders are decided one after the other, as if each had come alone: what one is refused, or has already, changes
//! nothing for the next but the value it gets.

use std::collections::{HashMap, HashSet};

use domain::{
    id::DocumentRef,
    life::{Step, Verb},
    next::{Counter, next},
    period::Period,
    refusal::Refusal,
    series::{FieldError, Series},
    state::State,
};
use jiff::civil::Date;

use crate::{Member, Number, Operation, Order, claim::Claim};

/// What is known already of the keys and documents of a batch.
#[derive(Default)]
pub(crate) struct Known {
    /// By key.
    pub(crate) claims: HashMap<String, Claim>,
    /// By document reference.
    pub(crate) numbers: HashMap<String, Number>,
    /// Values above the counter that were released, with the life that ended.
    pub(crate) released: HashMap<i64, i32>,
}

/// What becomes of one order.
pub(crate) enum Fate {
    /// Its key did it before.
    Replay(Claim),
    /// No.
    Refused(Refusal),
    /// Its documents are of this other period, whose counter this is not.
    Elsewhere(Period),
    /// An earlier order of the batch has its key, or takes a number for one of its documents.
    Later,
    /// Its numbers, in the order of its members.
    Numbered(Vec<Planned>),
}

/// A number of an order's answer.
pub(crate) struct Planned {
    pub(crate) number: Number,
    /// What is to be done for it.
    pub(crate) deed: Deed,
}

/// What is to be done for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It is to be taken.
    Take,
    /// The document has it, reserved or failed, and is now issued.
    Confirm,
    /// Nothing: the document has it.
    Nothing,
}

impl Planned {
    /// Whether its row is there from an earlier life.
    pub(crate) fn is_again(&self) -> bool {
        self.is_new() && self.number.life > 1
    }

    /// Whether it is to be taken.
    pub(crate) fn is_new(&self) -> bool {
        self.deed == Deed::Take
    }
}

/// The fates of a batch's orders, in their order, under the counter of one period.
pub(crate) fn plan(series: &Series, counter: &Counter, orders: &[&Order], mut known: Known) -> Vec<Fate> {
    let mut counter = counter.clone();
    let (mut keys, mut documents) = (HashSet::new(), HashSet::new());
    orders
        .iter()
        .map(|order| {
            if !keys.insert(order.key.as_str()) || order.references().any(|reference| documents.contains(reference.as_str())) {
                return Fate::Later;
            }
            if let Some(claim) = known.claims.remove(order.key.as_str()) {
                return match claim.check(order) {
                    Ok(()) => Fate::Replay(claim),
                    Err(refusal) => Fate::Refused(refusal),
                };
            }
            let fate = decide(series, &counter, order, &known);
            if let Ok(Fate::Numbered(planned)) = &fate {
                let latest = planned.iter().filter(|it| it.is_new()).map(|planned| planned.number.document_date).max();
                counter.last_date = counter.last_date.max(latest);
                counter.last += i64::try_from(planned.iter().filter(|it| it.is_new()).count()).unwrap_or(i64::MAX);
                // Whoever names one of these next finds it changed.
                let changed = planned.iter().zip(&order.members).filter(|(planned, _)| planned.deed != Deed::Nothing);
                documents.extend(changed.filter_map(|(_, member)| member.document_ref.as_ref()).map(DocumentRef::as_str));
            }
            fate.unwrap_or_else(Fate::Refused)
        })
        .collect()
}

fn decide(series: &Series, counter: &Counter, order: &Order, known: &Known) -> Result<Fate, Refusal> {
    let today = series.settings.today(order.at);
    let mut members: Vec<Result<Number, Date>> = Vec::with_capacity(order.members.len());
    let mut period = None;
    for (place, member) in order.members.iter().enumerate() {
        let reference = member.document_ref.as_ref().map(DocumentRef::as_str);
        if let Some(number) = reference.and_then(|reference| known.numbers.get(reference)) {
            members.push(Ok(same_document(member, number)?));
            continue;
        }
        let date = member.document_date.unwrap_or(today);
        if let Err(detail) = series.settings.check_date(date, order.at) {
            let pointer =
                if order.members.len() == 1 { "/document_date".to_owned() } else { format!("/items/{place}/document_date") };
            return Err(Refusal::Invalid(vec![FieldError::new(pointer, detail)]));
        }
        let of_date = series.settings.period(date);
        if let Some(other) = period.as_ref().filter(|other| **other != of_date) {
            let detail = format!("falls into period {of_date}, an earlier item into {other}; send one request for each period");
            return Err(Refusal::Invalid(vec![FieldError::new(format!("/items/{place}/document_date"), detail)]));
        }
        period = Some(of_date);
        members.push(Err(date));
    }
    if let Some(other) = period.filter(|period| *period != counter.period) {
        return Ok(Fate::Elsewhere(other));
    }
    let dates: Vec<Date> = members.iter().filter_map(|member| member.as_ref().err().copied()).collect();
    let mut fresh =
        if dates.is_empty() { Vec::new() } else { next(&series.settings, series.status, counter, &dates)? }.into_iter();
    let planned = members.into_iter().zip(&order.members).filter_map(|(member, asked)| {
        Some(match member {
            Ok(number) => known_number(order, number),
            Err(date) => {
                let next = fresh.next()?;
                let number = Number {
                    value: next.value,
                    number: next.number,
                    period: counter.period.clone(),
                    part: 0,
                    state: order.operation.state(),
                    document_ref: asked.document_ref.as_ref().map(ToString::to_string),
                    document_date: date,
                    at: order.at,
                    issued_at: (order.operation == Operation::Issue).then_some(order.at),
                    life: known.released.get(&next.value).map_or(1, |ended| ended + 1),
                };
                Planned { number, deed: Deed::Take }
            }
        })
    });
    Ok(Fate::Numbered(planned.collect()))
}

/// A number that is there: to issue is to reserve and to confirm, so what is reserved for the document is confirmed.
fn known_number(order: &Order, number: Number) -> Planned {
    if order.operation == Operation::Issue && matches!(Verb::Confirm.step(number.state), Step::To(_)) {
        let number = Number { state: State::Issued, issued_at: Some(order.at), ..number };
        return Planned { number, deed: Deed::Confirm };
    }
    Planned { number, deed: Deed::Nothing }
}

/// A document that asks again gets its number, unless it has become another document.
fn same_document(member: &Member, number: &Number) -> Result<Number, Refusal> {
    let reference = number.document_ref.clone().unwrap_or_default();
    if number.state == State::Voided {
        return Err(Refusal::DocumentVoided { reference, number: number.number.clone() });
    }
    if member.document_date.is_some_and(|date| date != number.document_date) {
        return Err(Refusal::DocumentConflict { reference, number: number.number.clone(), date: number.document_date });
    }
    Ok(number.clone())
}
