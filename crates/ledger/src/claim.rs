//! Claims: idempotency keys and what they did, written in the transaction that did it.

use domain::{
    id::{IdempotencyKey, SeriesName},
    principal::Principal,
    refusal::Refusal,
    state::State,
};
use serde_json::Value;
use store::{Error, Stop, Tx};

use crate::{
    issue::{Answer, Order},
    number::{self, Places},
};

/// A claim as stored.
pub(crate) struct Claim {
    fingerprint: Vec<u8>,
    operation: String,
    part: i16,
    period: String,
    first: Option<i64>,
    count: i32,
    answer: Option<Value>,
}

/// The claim of a key, if it has one.
pub(crate) async fn find(
    tx: &mut Tx,
    principal: &Principal,
    series: &SeriesName,
    key: &IdempotencyKey,
) -> Result<Option<Claim>, Error> {
    Ok(sqlx::query_as!(
        Claim,
        "select fingerprint, operation, part, period, first, count, answer from claim
          where tenant_id = $1 and series = $2 and key = $3",
        principal.tenant.0,
        series.as_str(),
        key.as_str()
    )
    .fetch_optional(tx.db())
    .await?)
}

impl Claim {
    /// The first answer once more, rebuilt from columns that never change.
    pub(crate) async fn replay(self, tx: &mut Tx, principal: &Principal, order: &Order) -> Result<Answer, Stop> {
        if self.fingerprint != order.fingerprint || self.operation != "issue" {
            return Err(Refusal::KeyReused.into());
        }
        let fresh = self.count > 0;
        let places = self.places()?;
        let mut numbers = number::at_places(tx, principal, &order.series, places).await?;
        for number in &mut numbers {
            // Whatever became of it since, this is what the first answer said.
            number.state = State::Issued;
        }
        Ok(Answer { numbers, fresh, replayed: true })
    }

    fn places(self) -> Result<Places, Error> {
        match (self.answer, self.first) {
            (Some(answer), _) => serde_json::from_value(answer).map_err(|e| Error::corrupt(format!("a claim's answer: {e}"))),
            (None, Some(first)) => {
                let values = first..first + i64::from(self.count);
                Ok(values.map(|value| (self.period.clone(), self.part, value)).collect())
            }
            (None, None) => Err(Error::corrupt("a claim without an answer")),
        }
    }
}
