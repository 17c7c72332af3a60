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

    /// The numbers of its answer, as it showed them.
    pub(crate) fn shown(self) -> Result<Vec<Shown>, Error> {
        let odd = |what: &str| Error::corrupt(format!("a claim's {what}"));
        let begins = Operation::from_word(&self.operation).ok_or_else(|| odd("operation"))?.state();
        match (self.answer, self.first) {
            (Some(answer), _) => {
                let shown = places(answer).ok_or_else(|| odd("answer"))?;
                let read = |(period, part, value, state, life): Written| {
                    let state = State::from_word(&state).ok_or_else(|| odd("state"))?;
                    Ok(Shown { place: (period, part, value), state, life })
                };
                shown.into_iter().map(read).collect()
            }
            (None, Some(first)) => {
                let values = first..first + i64::from(self.count);
                let shown = |value| Shown { place: (self.period.clone(), self.part, value), state: begins, life: 1 };
                Ok(values.map(shown).collect())
            }
            (None, None) => Err(odd("answer, which is none")),
        }
    }
}

/// A number as a claim's answer showed it.
pub(crate) struct Shown {
    pub(crate) place: Position,
    pub(crate) state: State,
    /// Of which life it spoke.
    pub(crate) life: i32,
}

/// The same in the database: period, part, value, state, life.
pub(crate) type Written = (String, i16, i64, String, i32);

/// An answer's numbers. From before there were other states than issued, or lives after the first, they are not named.
pub(crate) fn places(answer: Value) -> Option<Vec<Written>> {
    if let Ok(whole) = serde_json::from_value(answer.clone()) {
        return Some(whole);
    }
    if let Ok(first_life) = serde_json::from_value::<Vec<(String, i16, i64, String)>>(answer.clone()) {
        return Some(first_life.into_iter().map(|(period, part, value, state)| (period, part, value, state, 1)).collect());
    }
    let issued: Vec<(String, i16, i64)> = serde_json::from_value(answer).ok()?;
    Some(issued.into_iter().map(|(period, part, value)| (period, part, value, "issued".to_owned(), 1)).collect())
}
