//! Numbers, as they are answered.

use std::collections::HashMap;

use domain::{id::SeriesName, period::Period, principal::Principal, state::State};
use jiff::{Timestamp, civil::Date};
use jiff_sqlx::{Date as SqlDate, Timestamp as SqlTimestamp};
use store::{Error, Tx};

/// A number that was given to a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// The integer.
    pub value: i64,
    /// The text on the document.
    pub number: String,
    /// The period it belongs to.
    pub period: Period,
    /// Which part of the series, 0 where it has one.
    pub part: i16,
    /// What has become of it.
    pub state: State,
    /// The caller's reference of the document.
    pub document_ref: Option<String>,
    /// The document's date.
    pub document_date: Date,
    /// The instant of the request that took it.
    pub at: Timestamp,
    /// When it was issued; none where it never was.
    pub issued_at: Option<Timestamp>,
    /// Which life it is in: 1, and one more each time it was released and given again.
    pub life: i32,
}

impl Number {
    /// The same when it was in an earlier state.
    pub(crate) fn shown_in(self, state: State) -> Self {
        let issued_at = match state {
            State::Issued | State::Voided => self.issued_at,
            _ => None,
        };
        Self { state, issued_at, ..self }
    }
}

pub(crate) struct Row {
    pub(crate) value: i64,
    pub(crate) number: Option<String>,
    pub(crate) period: String,
    pub(crate) part: i16,
    pub(crate) state: String,
    pub(crate) document_ref: Option<String>,
    pub(crate) document_date: Option<SqlDate>,
    pub(crate) at: SqlTimestamp,
    /// None also where it was issued when it was made, and has been since.
    pub(crate) issued_at: Option<SqlTimestamp>,
    pub(crate) life: i32,
}

impl TryFrom<Row> for Number {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let odd = |what: &str| Error::corrupt(format!("number {} of {}: {what}", row.value, row.period));
        let state = State::from_word(&row.state).ok_or_else(|| odd("state"))?;
        let at = row.at.to_jiff();
        Ok(Self {
            value: row.value,
            number: row.number.ok_or_else(|| odd("no text"))?,
            part: row.part,
            state,
            document_ref: row.document_ref,
            document_date: row.document_date.ok_or_else(|| odd("no date"))?.to_jiff(),
            at,
            issued_at: row.issued_at.map(SqlTimestamp::to_jiff).or_else(|| (state == State::Issued).then_some(at)),
            period: Period::named(row.period),
            life: row.life,
        })
    }
}

/// The numbers that documents of these references have already, one index look-up per reference.
pub(crate) async fn known(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: &SeriesName,
    references: &[&str],
) -> Result<Vec<Number>, Error> {
    if references.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query_as!(
        Row,
        r#"select n.value as "value!", n.number, n.period as "period!", n.part as "part!", n.state as "state!",
                  n.document_ref, n.document_date, n.at as "at!", n.issued_at, n.life as "life!"
             from unnest($3::text[]) asked (reference)
            cross join lateral (select value, number, period, part, state, document_ref, document_date, at, issued_at, life
                from number
              where tenant_id = $1 and series = $2 and document_ref = asked.reference offset 0) n"#,
        principal.tenant.0,
        series.as_str(),
        references as _
    )
    .fetch_all(tx.db())
    .await?;
    rows.into_iter().map(Number::try_from).collect()
}

/// Where a number is: period, part, value.
pub(crate) type Position = (String, i16, i64);

/// The numbers at these places, in their order, one index look-up each.
pub(crate) async fn at_places(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: &SeriesName,
    places: Vec<Position>,
) -> Result<Vec<Number>, Error> {
    let wanted = places.len();
    let (mut periods, mut parts, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (period, part, value) in places {
        periods.push(period);
        parts.push(part);
        values.push(value);
    }
    let rows = sqlx::query_as!(
        Row,
        r#"select n.value as "value!", n.number, n.period as "period!", n.part as "part!", n.state as "state!",
                  n.document_ref, n.document_date, n.at as "at!", n.issued_at, n.life as "life!"
             from unnest($3::text[], $4::smallint[], $5::bigint[]) with ordinality asked (period, part, value, place)
            cross join lateral (select value, number, period, part, state, document_ref, document_date, at, issued_at, life
                from number
              where tenant_id = $1 and series = $2 and part = asked.part and period = asked.period
                and value = asked.value offset 0) n
            order by asked.place"#,
        principal.tenant.0,
        series.as_str(),
        &periods,
        &parts,
        &values
    )
    .fetch_all(tx.db())
    .await?;
    if rows.len() != wanted {
        return Err(Error::corrupt(format!("a claim of {series} names numbers that are not there")));
    }
    rows.into_iter().map(Number::try_from).collect()
}

/// The values above a counter's last that were released, with the life that ended.
pub(crate) async fn released_above(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: &SeriesName,
    period: &Period,
    last: i64,
) -> Result<HashMap<i64, i32>, Error> {
    let rows = sqlx::query!(
        "select value, life from number
          where tenant_id = $1 and series = $2 and part = 0 and period = $3 and value > $4 and state = 'released'",
        principal.tenant.0,
        series.as_str(),
        period.as_str(),
        last
    )
    .fetch_all(tx.db())
    .await?;
    Ok(rows.into_iter().map(|row| (row.value, row.life)).collect())
}
