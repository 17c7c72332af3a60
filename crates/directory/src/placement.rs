//! Where a series lives. A series exists from the COMMIT that wrote its placement.

use domain::{
    id::SeriesName,
    overlap,
    pattern::{Overflow, Pattern},
    principal::Principal,
    refusal::Refusal,
    series::Settings,
};
use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx};
use serde_json::Value;
use store::{Authority, Error, Snapshot, Stop, Tx};

use crate::{Directory, KeyUse, Made, PATIENCE, event, key};

/// A series to be made.
#[derive(Clone, Debug)]
pub struct NewSeries {
    /// Its code.
    pub name: SeriesName,
    /// What decides its numbers.
    pub settings: Settings,
    /// The request's instant.
    pub at: Timestamp,
}

/// Where a series lives, and what it was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its code.
    pub name: SeriesName,
    /// The shard.
    pub shard: String,
    /// Counts the moves of the series; a shard row of an older epoch must not be written.
    pub epoch: i64,
    /// The settings it was made with; the present ones are on the shard.
    pub settings: Settings,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
}

impl Directory {
    /// Makes a series, once per idempotency key: its placement, its pattern and the key's claim in one
    /// transaction, under the issuer's row, so that two patterns that could make the same text can't both pass.
    #[tracing::instrument(name = "directory.create_series", skip_all, err(level = "debug"))]
    pub async fn create_series(&self, principal: &Principal, new: &NewSeries, by: KeyUse<'_>) -> Result<Made<Placement>, Stop> {
        store::repeat(PATIENCE, || self.create_series_once(principal, new, by)).await
    }

    async fn create_series_once(&self, principal: &Principal, new: &NewSeries, by: KeyUse<'_>) -> Result<Made<Placement>, Stop> {
        let tenant = principal.tenant;
        let mut tx = Tx::begin(&self.pool, Authority::Tenant(principal), Snapshot::PerStatement).await?;
        if let Some(subject) = key::claimed(&mut tx, tenant, by, "create_series").await? {
            let made = read(&mut tx, principal, &subject).await?.ok_or(Error::corrupt("a claim without its series"))?;
            return Ok(Made { made, replayed: true });
        }
        lock_issuer(&mut tx, principal, new.settings.issuer.as_str()).await?;
        if read(&mut tx, principal, new.name.as_str()).await?.is_some() {
            // The one who made it may have used this very key a moment ago.
            return match key::claimed(&mut tx, tenant, by, "create_series").await? {
                Some(_) => Err(Error::Moved.into()),
                None => Err(Refusal::SeriesExists(new.name.clone()).into()),
            };
        }
        if let Some(Meeting { series, example }) = meetings(&mut tx, principal, None, &new.settings).await?.other {
            return Err(Refusal::PatternOverlaps { series, example }.into());
        }
        // A tenant's series spread evenly over the open shards; among equals each series ranks them in its own
        // order (rendezvous hashing), so that the first series of all tenants do not meet on one shard.
        let placed = sqlx::query!(
            "insert into placement (tenant_id, series, issuer, shard, epoch, settings, created_at, created_by)
             select $1, $2, $3, s.shard, s.epoch, $4, $5, $6 from shard s where s.open
              order by (select count(*) from placement p where p.tenant_id = $1 and p.shard = s.shard),
                       hashtextextended(s.shard || '/' || ($1::uuid)::text || '/' || $2::text, 0) limit 1",
            tenant.0,
            new.name.as_str(),
            new.settings.issuer.as_str(),
            Value::Object(store::settings::write(&new.settings.draft())),
            new.at.to_sqlx() as _,
            principal.to_string()
        )
        .execute(tx.db())
        .await?;
        if placed.rows_affected() != 1 {
            return Err(Error::corrupt("no shard is open for new series").into());
        }
        sqlx::query!(
            "insert into pattern (tenant_id, issuer, series, version, pattern, overflow, reset) values ($1, $2, $3, 1, $4, $5, $6)",
            tenant.0,
            new.settings.issuer.as_str(),
            new.name.as_str(),
            new.settings.pattern.source(),
            new.settings.overflow.word(),
            reset_key(&new.settings)
        )
        .execute(tx.db())
        .await?;
        let settings = Value::Object(store::settings::write(&new.settings.draft()));
        event::note(
            &mut tx,
            tenant,
            by.operation_id,
            &principal.to_string(),
            new.at,
            event::Entry { kind: "series.created", subject: new.name.as_str(), before: None, after: Some(settings) },
        )
        .await?;
        key::claim(&mut tx, tenant, by, "create_series", new.name.as_str(), new.at).await?;
        let made = read(&mut tx, principal, new.name.as_str()).await?.ok_or(Error::Moved)?;
        tx.commit().await?;
        Ok(Made { made, replayed: false })
    }

    /// Where a series lives; none if the tenant has no such series.
    #[tracing::instrument(name = "directory.placement", skip_all, err(level = "debug"))]
    pub async fn placement(&self, principal: &Principal, series: &SeriesName) -> Result<Option<Placement>, Stop> {
        store::read(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let placement = read(&mut tx, principal, series.as_str()).await?;
            tx.end().await?;
            Ok(placement)
        })
        .await
    }

    /// The tenant's series in the order of their codes, after `after`, at most `limit`.
    pub async fn placements(&self, principal: &Principal, after: Option<&str>, limit: i64) -> Result<Vec<Placement>, Stop> {
        store::read(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let rows = sqlx::query_as!(
                Row,
                "select series, issuer, shard, epoch, settings, created_at, created_by from placement
                  where tenant_id = $1 and series > $2 order by series limit $3",
                principal.tenant.0,
                after.unwrap_or_default(),
                limit
            )
            .fetch_all(tx.db())
            .await?;
            tx.end().await?;
            Ok(rows.into_iter().map(Placement::try_from).collect::<Result<_, _>>()?)
        })
        .await
    }
}

struct Row {
    series: String,
    issuer: String,
    shard: String,
    epoch: i64,
    settings: Value,
    created_at: SqlTimestamp,
    created_by: String,
}

impl TryFrom<Row> for Placement {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            name: SeriesName::parse(&row.series).map_err(|e| Error::corrupt(e.to_string()))?,
            shard: row.shard,
            epoch: row.epoch,
            settings: store::settings::stored(&with_issuer(row.settings, &row.issuer))?,
            created_at: row.created_at.to_jiff(),
            created_by: row.created_by,
        })
    }
}

async fn read(tx: &mut Tx<'_>, principal: &Principal, series: &str) -> Result<Option<Placement>, Error> {
    let row = sqlx::query_as!(
        Row,
        "select series, issuer, shard, epoch, settings, created_at, created_by from placement
          where tenant_id = $1 and series = $2",
        principal.tenant.0,
        series
    )
    .fetch_optional(tx.db())
    .await?;
    row.map(Placement::try_from).transpose()
}

async fn lock_issuer(tx: &mut Tx<'_>, principal: &Principal, issuer: &str) -> Result<(), Error> {
    sqlx::query!(
        "insert into issuer (tenant_id, issuer) values ($1, $2) on conflict (tenant_id, issuer) do nothing",
        principal.tenant.0,
        issuer
    )
    .execute(tx.db())
    .await?;
    let locked = sqlx::query!(
        "select issuer from issuer where tenant_id = $1 and issuer = $2 for no key update",
        principal.tenant.0,
        issuer
    )
    .fetch_optional(tx.db())
    .await?;
    locked.map(|_| ()).ok_or(Error::Moved)
}

/// From before the issuer was stored with the settings, it has a column only.
fn with_issuer(mut settings: Value, issuer: &str) -> Value {
    settings["issuer"] = Value::String(issuer.to_owned());
    settings
}

/// What makes the periods of a reset: where it is the same, one pattern makes no text twice.
fn reset_key(settings: &Settings) -> String {
    match settings.reset.fiscal() {
        Some(fiscal) => format!("{}:{}:{}", settings.reset.word(), fiscal.starts(), fiscal.label().word()),
        None => settings.reset.word().to_owned(),
    }
}

/// What a pattern meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The series whose texts it could make.
    pub series: String,
    /// Such a text.
    pub example: String,
}

/// How a proposed pattern stands to those that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meetings {
    /// Another series of the issuer, which it must not meet.
    pub other: Option<Meeting>,
    /// An earlier pattern of the series itself, which it must not meet once that has made a text.
    pub own: Option<Meeting>,
}

impl Directory {
    /// What the pattern of these settings would meet; nothing is locked or kept.
    pub async fn meetings(
        &self,
        principal: &Principal,
        series: Option<&SeriesName>,
        settings: &Settings,
    ) -> Result<Meetings, Stop> {
        store::read(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let meetings = meetings(&mut tx, principal, series, settings).await?;
            tx.end().await?;
            Ok(meetings)
        })
        .await
    }

    /// Registers the pattern of changed settings, unless it meets another series of the issuer; whether it meets an earlier
    /// one of its own is told. Under the issuer's row, so that two that meet can't both pass. A pattern that is registered
    /// and then not used holds a place and does no other harm.
    #[tracing::instrument(name = "directory.register_pattern", skip_all, err(level = "debug"))]
    pub async fn register_pattern(
        &self,
        principal: &Principal,
        series: &SeriesName,
        settings: &Settings,
    ) -> Result<Option<Meeting>, Stop> {
        store::repeat(PATIENCE, || async {
            let mut tx = Tx::begin(&self.pool, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            lock_issuer(&mut tx, principal, settings.issuer.as_str()).await?;
            let meetings = meetings(&mut tx, principal, Some(series), settings).await?;
            if let Some(Meeting { series, example }) = meetings.other {
                return Err(Refusal::PatternOverlaps { series, example }.into());
            }
            sqlx::query!(
                "insert into pattern (tenant_id, issuer, series, version, pattern, overflow, reset)
                 select $1, $2, $3, coalesce(max(version), 0) + 1, $4, $5, $6 from pattern
                  where tenant_id = $1 and issuer = $2 and series = $3
                 having not coalesce(bool_or(pattern = $4 and overflow = $5 and reset = $6), false)",
                principal.tenant.0,
                settings.issuer.as_str(),
                series.as_str(),
                settings.pattern.source(),
                settings.overflow.word(),
                reset_key(settings)
            )
            .execute(tx.db())
            .await?;
            tx.commit().await?;
            Ok(meetings.own)
        })
        .await
    }
}

async fn meetings(
    tx: &mut Tx<'_>,
    principal: &Principal,
    series: Option<&SeriesName>,
    settings: &Settings,
) -> Result<Meetings, Error> {
    let patterns = sqlx::query!(
        "select series, pattern, overflow, reset from pattern where tenant_id = $1 and issuer = $2 order by series, version",
        principal.tenant.0,
        settings.issuer.as_str()
    )
    .fetch_all(tx.db())
    .await?;
    let mut found = Meetings::default();
    for row in patterns {
        let own = series.is_some_and(|series| series.as_str() == row.series);
        if own && row.pattern == settings.pattern.source() && row.reset == reset_key(settings) {
            continue;
        }
        let pattern = Pattern::parse(&row.pattern).map_err(|e| Error::corrupt(e.to_string()))?;
        let overflow = Overflow::from_word(&row.overflow).ok_or(Error::corrupt("an overflow policy"))?;
        if let Some(example) = overlap((&settings.pattern, settings.overflow), (&pattern, overflow)) {
            let slot = if own { &mut found.own } else { &mut found.other };
            slot.get_or_insert(Meeting { series: row.series, example });
        }
    }
    Ok(found)
}
