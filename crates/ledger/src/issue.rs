//! Issuing numbers: what is asked for, and by which lane it goes.
//!
//! An order's documents decide its period, so its counter, so its lane. What the gateway believes of the series may be
//! old by then; the lane finds out under the counter and sends the order on to where it belongs.

use domain::{
    id::{DocumentRef, IdempotencyKey, OperationId, SeriesName},
    principal::Principal,
    refusal::Refusal,
    series::Series,
    state::State,
};
use jiff::{Timestamp, civil::Date};
use serde_json::Value;
use store::{Error, Stop};
use tokio::time::Instant;

use crate::{
    Ledger, Number, PATIENCE,
    lane::{LaneKey, Told},
};

/// A document that wants a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// The caller's reference; a document has one number however often it asks.
    pub document_ref: Option<DocumentRef>,
    /// Its date; none is today in the series' zone.
    pub document_date: Option<Date>,
    /// What the caller wants kept with the number; a JSON object.
    pub metadata: Option<Value>,
}

/// What is wanted of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// They stand on their documents at once.
    Issue,
    /// They are kept for their documents until it is known what becomes of these.
    Reserve,
}

impl Operation {
    /// The word in the database.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Reserve => "reserve",
        }
    }

    /// Reads the word; none if there is no such operation.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Issue, Self::Reserve].into_iter().find(|operation| operation.word() == word)
    }

    /// The state that a number begins in.
    pub(crate) fn state(self) -> State {
        match self {
            Self::Issue => State::Issued,
            Self::Reserve => State::Reserved,
        }
    }
}

/// A request for numbers.
#[derive(Clone, Debug)]
pub struct Order {
    /// What is wanted.
    pub operation: Operation,
    /// In which series.
    pub series: SeriesName,
    /// Whoever repeats this key gets the same numbers.
    pub key: IdempotencyKey,
    /// What was meant by it.
    pub fingerprint: [u8; 32],
    /// The documents, 1 to 1,000. All get their numbers, or none does.
    pub members: Vec<Member>,
    /// The request's one instant: it decides dates and periods, and is what the numbers carry.
    pub at: Timestamp,
    /// Names the call in the history.
    pub operation_id: OperationId,
    /// The caller's W3C trace id, if it sent one.
    pub trace_id: Option<String>,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The numbers, in the order of the members.
    pub numbers: Vec<Number>,
    /// Whether this key took a number that did not exist before it.
    pub fresh: bool,
    /// Whether an earlier call with this key did it.
    pub replayed: bool,
}

impl Order {
    /// The references of its documents.
    pub(crate) fn references(&self) -> impl Iterator<Item = &DocumentRef> {
        self.members.iter().filter_map(|member| member.document_ref.as_ref())
    }

    /// The date of its first document.
    pub(crate) fn date(&self, series: &Series) -> Date {
        let dated = self.members.first().and_then(|member| member.document_date);
        dated.unwrap_or_else(|| series.settings.today(self.at))
    }
}

/// How often an order is sent on. Each time the series was changed, or its first document turned out to have a number.
const LEGS: usize = 8;

impl Ledger {
    /// Issues numbers, once per idempotency key and once per document.
    ///
    /// [`Refusal::NotFound`] where the series is not on this shard.
    #[tracing::instrument(name = "ledger.issue", skip_all, fields(shard), err(level = "debug"))]
    pub async fn issue(&self, shard: &str, principal: &Principal, mut order: Order) -> Result<Answer, Stop> {
        let deadline = Instant::now() + PATIENCE.whole;
        let mut sent_on = None;
        for _ in 0..LEGS {
            let series = self.remembered_series(shard, principal, &order.series).await?;
            let series = series.ok_or_else(|| Refusal::NotFound(format!("series {}", order.series)))?;
            let period = sent_on.unwrap_or_else(|| series.settings.period(order.date(&series)));
            let lane = LaneKey { shard: shard.to_owned(), tenant: principal.tenant, series: order.series.clone(), period };
            match self.ride(lane, principal, order, deadline).await? {
                Told::Answered(answer) => return answer,
                Told::Elsewhere(period, sent_back) => (sent_on, order) = (Some(period), *sent_back),
            }
        }
        Err(Error::Moved.into())
    }
}
