//! Claims: idempotency keys and what they did, written in the transaction that did it.

use domain::{id::SeriesName, principal::Principal, refusal::Refusal, state::State};
use serde_json::Value;
use store::{Error, Tx};

use crate::{Operation, Order, number::Position};

/// A claim as stored.
pub(crate) struct Claim {
    key: String,
    fingerprint: Vec<u8>,
    operation: String,
    part: i16,
    period: String,
    first: Option<i64>,
    count: i32,
    answer: Option<Value>,
}

/// The claims of those of these keys that have one, by key; one index look-up each.
pub(crate) async fn of_keys(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: &SeriesName,
    keys: &[&str],
) -> Result<Vec<(String, Claim)>, Error> {
    let claims = sqlx::query_as!(
        Claim,
        r#"select c.key as "key!", c.fingerprint as "fingerprint!", c.operation as "operation!", c.part as "part!",
                  c.period as "period!", c.first, c.count as "count!", c.answer
             from unnest($3::text[]) asked (key)
            cross join lateral (select key, fingerprint, operation, part, period, first, count, answer from claim
              where tenant_id = $1 and series = $2 and claim.key = asked.key offset 0) c"#,
        principal.tenant.0,
        series.as_str(),
        keys as _
    )
    .fetch_all(tx.db())
    .await?;
    Ok(claims.into_iter().map(|claim| (claim.key.clone(), claim)).collect())
}

impl Claim {
    /// Whether the order means what the key did.
    pub(crate) fn check(&self, order: &Order) -> Result<(), Refusal> {
        if self.fingerprint == order.fingerprint && self.operation == order.operation.word() {
            Ok(())
        } else {
            Err(Refusal::KeyReused)
        }
    }

    /// Whether it took numbers that were not there before.
    pub(crate) fn is_fresh(&self) -> bool {
        self.count > 0
    }

    /// Where the numbers of its answer are, and in which state it showed them.
    pub(crate) fn shown(self) -> Result<Vec<(Position, State)>, Error> {
        let odd = |what: &str| Error::corrupt(format!("a claim's {what}"));
        let begins = Operation::from_word(&self.operation).ok_or_else(|| odd("operation"))?.state();
        match (self.answer, self.first) {
            (Some(answer), _) => {
                // From before there were other states than issued, they are not named.
                let all_issued = |places: Vec<(String, i16, i64)>| {
                    places.into_iter().map(|(period, part, value)| (period, part, value, "issued".to_owned())).collect()
                };
                let shown = serde_json::from_value::<Vec<(String, i16, i64, String)>>(answer.clone())
                    .or_else(|_| serde_json::from_value(answer).map(all_issued))
                    .map_err(|_| odd("answer"))?;
                let read = |(period, part, value, state): (String, i16, i64, String)| {
                    Ok(((period, part, value), State::from_word(&state).ok_or_else(|| odd("state"))?))
                };
                shown.into_iter().map(read).collect()
            }
            (None, Some(first)) => {
                let values = first..first + i64::from(self.count);
                Ok(values.map(|value| ((self.period.clone(), self.part, value), begins)).collect())
            }
            (None, None) => Err(odd("answer, which is none")),
        }
    }
}
