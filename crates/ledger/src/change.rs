//! Changing a series: its settings, or whether it takes issues.
//!
//! | # | statement | why there |
//! |---|---|---|
//! | 1 | the series' row, if it is still in the version that the change is made to | two who save at once: the second finds another version |
//! | 2 | where it must have no number yet: is there one? | under 1 no period begins, and every counter that there is gets a new version in 3 |
//! | 3 | all its counters that are not closed get the new version and gate, in order | a lane that rendered with the old version moves no counter any more: the change holds for the very next number, on every gateway |
//! | 4 | the version and the trail | what was, what is, who, when |
//!
//! The directory has decided before that the new pattern meets no other.

use domain::{
    id::{OperationId, SeriesName},
    principal::Principal,
    refusal::Refusal,
    series::{Chronology, Draft, Settings, Status},
};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use serde_json::Value;
use store::{Authority, Error, Snapshot, Stop, Tx, fault::Point};

use crate::{
    Ledger, PATIENCE, READING,
    event::{self, Noted},
    series,
};

/// A change of a series.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// Which.
    pub series: &'a SeriesName,
    /// The version that it is made to.
    pub version: i64,
    /// What it is to be.
    pub settings: &'a Settings,
    /// Whether it is to take issues.
    pub status: Status,
    /// A text of an earlier pattern that the new one could make too: the change is possible only while there is no number.
    pub meets_own: Option<&'a str>,
    /// The request's one instant.
    pub at: Timestamp,
    /// Names the call.
    pub operation_id: &'a OperationId,
}

/// A series in one of its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Which.
    pub version: i64,
    /// Its settings then.
    pub draft: Draft,
    /// Whether it took issues.
    pub status: Status,
}

impl Ledger {
    /// Changes a series; false where it is in another version by now, and nothing was changed.
    ///
    /// [`Refusal::SeriesClosed`] where it is closed for ever, [`Refusal::PatternOverlaps`] where it has numbers and the new
    /// pattern could make their texts again.
    #[tracing::instrument(name = "ledger.change", skip_all, fields(shard), err(level = "debug"))]
    pub async fn change_series(&self, shard: &str, principal: &Principal, change: &Change<'_>) -> Result<bool, Stop> {
        let changed = store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let before = series::read(&mut tx, principal, change.series).await?;
            let before = before.ok_or_else(|| Refusal::NotFound(format!("series {}", change.series)))?;
            if before.version != change.version {
                // Perhaps by an attempt of this very call whose outcome was unknown.
                let mine = self.version_is(&mut tx, principal, change).await?;
                tx.end().await?;
                return Ok(mine);
            }
            if before.status == Status::Closed {
                return Err(Refusal::SeriesClosed.into());
            }
            if !set_series(&mut tx, principal, change).await? {
                return Err(Error::Moved.into());
            }
            if let Some(example) = change.meets_own {
                refuse_numbers(&mut tx, principal, change.series, example).await?;
            }
            tx.reach(Point::AfterLock).await?;
            set_counters(&mut tx, principal, change, before.settings.chronology).await?;
            keep(&mut tx, principal, change, (&before.settings, before.status)).await?;
            tx.reach(Point::AfterWrite).await?;
            tx.commit().await?;
            Ok(true)
        });
        let changed = changed.await?;
        self.series.remove(&(principal.tenant, change.series.clone()));
        Ok(changed)
    }

    /// Whether the version after the one that was changed was made by this call.
    async fn version_is(&self, tx: &mut Tx<'_>, principal: &Principal, change: &Change<'_>) -> Result<bool, Error> {
        let by = sqlx::query_scalar!(
            "select operation_id from series_version where tenant_id = $1 and series = $2 and version = $3",
            principal.tenant.0,
            change.series.as_str(),
            change.version + 1
        );
        Ok(by.fetch_optional(tx.db()).await?.is_some_and(|by| by == change.operation_id.as_str()))
    }

    /// A series as it was in a version; none if it never was in that.
    pub async fn version(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
        version: i64,
    ) -> Result<Option<Version>, Stop> {
        store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let row = sqlx::query!(
                "select settings, status from series_version where tenant_id = $1 and series = $2 and version = $3",
                principal.tenant.0,
                name.as_str(),
                version
            )
            .fetch_optional(tx.db())
            .await?;
            tx.end().await?;
            let Some(row) = row else { return Ok(None) };
            let settings = row.settings.as_object().ok_or_else(|| Error::corrupt("a version's settings"))?;
            let status = Status::from_word(&row.status).ok_or_else(|| Error::corrupt("a version's status"))?;
            Ok(Some(Version { version, draft: store::settings::read(settings), status }))
        })
        .await
    }
}

async fn set_series(tx: &mut Tx<'_>, principal: &Principal, change: &Change<'_>) -> Result<bool, Error> {
    let draft = change.settings.draft();
    let (starts, label) = draft.fiscal_year.unzip();
    let set = sqlx::query!(
        "update series
            set pattern = $4, reset = $5, fiscal_starts = $6, fiscal_label = $7, time_zone = $8, first = $9, gapless = $10,
                overflow = $11, max_length = $12, chronology = $13, max_days_ahead = $14, release = $15,
                reservation_ttl_seconds = $16, reservation_overdue = $17, status = $18, version = version + 1
          where tenant_id = $1 and series = $2 and version = $3 and status <> 'closed'",
        principal.tenant.0,
        change.series.as_str(),
        change.version,
        draft.pattern,
        draft.reset,
        starts,
        label,
        draft.time_zone,
        draft.first,
        draft.gapless,
        draft.overflow,
        draft.max_length,
        draft.chronology,
        draft.max_days_ahead,
        draft.release,
        draft.reservation_ttl_seconds,
        draft.reservation_overdue,
        change.status.word()
    )
    .execute(tx.db())
    .await?;
    Ok(set.rows_affected() == 1)
}

async fn refuse_numbers(tx: &mut Tx<'_>, principal: &Principal, name: &SeriesName, example: &str) -> Result<(), Stop> {
    // Locked in their order, so that no number is on its way.
    sqlx::query!(
        "select last from counter where tenant_id = $1 and series = $2 order by part, period for no key update",
        principal.tenant.0,
        name.as_str()
    )
    .fetch_all(tx.db())
    .await?;
    let used = sqlx::query_scalar!(
        r#"select exists (select from number where tenant_id = $1 and series = $2) as "used!""#,
        principal.tenant.0,
        name.as_str()
    )
    .fetch_one(tx.db())
    .await?;
    if used {
        let series = format!("{name} under its earlier settings");
        return Err(Refusal::PatternOverlaps { series, example: example.to_owned() }.into());
    }
    Ok(())
}

/// Where the series becomes strict, the latest date of each period stays as the floor of all dates to come. Where numbers could
/// be released before, it may be that of one which nobody has any more, and is found out anew: that walks over the period's
/// numbers under its counter's lock, and where it takes longer than an attempt may, nothing is changed.
async fn set_counters(tx: &mut Tx<'_>, principal: &Principal, change: &Change<'_>, was: Chronology) -> Result<(), Error> {
    let gate = series::gate(change.status);
    let becomes_strict = was == Chronology::None && change.settings.chronology == Chronology::Strict;
    let walks = becomes_strict && could_release(tx, principal, change.series).await?;
    sqlx::query!(
        "update counter c set config_version = $3, gate = $4, last_date = case when $6 then d.latest else last_date end,
                              floor_date = case when $6 then d.latest when $5 then last_date else floor_date end
           from (select part, period from counter where tenant_id = $1 and series = $2 and gate <> 'closed'
                  order by part, period for no key update) o
           left join lateral (select max(document_date) as latest from number n
                  where $6 and n.tenant_id = $1 and n.series = $2 and n.part = o.part and n.period = o.period
                    and n.state <> 'released') d on true
          where c.tenant_id = $1 and c.series = $2 and c.part = o.part and c.period = o.period and c.gate <> 'closed'",
        principal.tenant.0,
        change.series.as_str(),
        change.version + 1,
        gate.word(),
        becomes_strict,
        walks
    )
    .execute(tx.db())
    .await?;
    Ok(())
}

/// Whether a number of the series could be released at any time.
async fn could_release(tx: &mut Tx<'_>, principal: &Principal, name: &SeriesName) -> Result<bool, Error> {
    let could = sqlx::query_scalar!(
        r#"select exists (select from series_version where tenant_id = $1 and series = $2
                             and settings ->> 'release' = 'last_unsent') as "could!""#,
        principal.tenant.0,
        name.as_str()
    );
    Ok(could.fetch_one(tx.db()).await?)
}

/// The version, and who made it out of what.
async fn keep(
    tx: &mut Tx<'_>,
    principal: &Principal,
    change: &Change<'_>,
    (settings, status): (&Settings, Status),
) -> Result<(), Error> {
    let after = store::settings::write(&change.settings.draft());
    sqlx::query!(
        "insert into series_version (tenant_id, series, version, settings, status, at, principal, operation_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        principal.tenant.0,
        change.series.as_str(),
        change.version + 1,
        Value::Object(after.clone()),
        change.status.word(),
        change.at.to_sqlx() as _,
        principal.to_string(),
        change.operation_id.as_str()
    )
    .execute(tx.db())
    .await?;
    let told = |mut settings: serde_json::Map<String, Value>, status: Status| {
        settings.insert("status".to_owned(), status.word().into());
        Value::Object(settings)
    };
    let noted = Noted {
        kind: "series.changed",
        subject: change.series.as_str(),
        before: Some(told(store::settings::write(&settings.draft()), status)),
        after: Some(told(after, change.status)),
        at: change.at,
        operation_id: change.operation_id,
    };
    event::note(tx, principal, &noted).await
}
