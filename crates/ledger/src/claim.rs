//! Claims: idempotency keys and what they did, written in the transaction that did it.

use domain::{id::SeriesName, principal::Principal, refusal::Refusal};
use serde_json::Value;
use store::{Error, Tx};

use crate::{Order, number::Places};

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
        if self.fingerprint == order.fingerprint && self.operation == "issue" { Ok(()) } else { Err(Refusal::KeyReused) }
    }

    /// Whether it took numbers that were not there before.
    pub(crate) fn is_fresh(&self) -> bool {
        self.count > 0
    }

    /// Where the numbers of its answer are.
    pub(crate) fn places(self) -> Result<Places, Error> {
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
