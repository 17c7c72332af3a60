//! Where a series lives. A series exists from the COMMIT that wrote its placement.

use domain::{
    id::SeriesName,
    overlap,
    pattern::{Overflow, Pattern},
    principal::Principal,
    refusal::Refusal,
    series::{Draft, Settings},
};
use jiff::Timestamp;
use jiff_sqlx::{Timestamp as SqlTimestamp, ToSqlx};
use serde_json::{Value, json};
use store::{Authority, Error, Snapshot, Stop, Tx};

use crate::{Directory, KeyUse, Made, PATIENCE, key};

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
        refuse_overlaps(&mut tx, principal, new).await?;
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
            store_settings(&new.settings),
            new.at.to_sqlx() as _,
            principal.to_string()
        )
        .execute(tx.db())
        .await?;
        if placed.rows_affected() != 1 {
            return Err(Error::corrupt("no shard is open for new series").into());
        }
        sqlx::query!(
            "insert into pattern (tenant_id, issuer, series, version, pattern, overflow) values ($1, $2, $3, 1, $4, $5)",
            tenant.0,
            new.settings.issuer.as_str(),
            new.name.as_str(),
            new.settings.pattern.source(),
            new.settings.overflow.word()
        )
        .execute(tx.db())
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
            settings: stored_settings(&row.issuer, &row.settings)?,
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

async fn refuse_overlaps(tx: &mut Tx<'_>, principal: &Principal, new: &NewSeries) -> Result<(), Stop> {
    let others = sqlx::query!(
        "select series, pattern, overflow from pattern where tenant_id = $1 and issuer = $2",
        principal.tenant.0,
        new.settings.issuer.as_str()
    )
    .fetch_all(tx.db())
    .await?;
    for other in others {
        let pattern = Pattern::parse(&other.pattern).map_err(|e| Error::corrupt(e.to_string()))?;
        let overflow = Overflow::from_word(&other.overflow).ok_or(Error::corrupt("an overflow policy"))?;
        if let Some(example) = overlap((&new.settings.pattern, new.settings.overflow), (&pattern, overflow)) {
            return Err(Refusal::PatternOverlaps { series: other.series, example }.into());
        }
    }
    Ok(())
}

fn store_settings(settings: &Settings) -> Value {
    json!({
        "pattern": settings.pattern.source(),
        "reset": settings.reset.word(),
        "time_zone": settings.time_zone,
        "first": settings.first,
        "gapless": settings.gapless,
        "overflow": settings.overflow.word(),
        "max_length": settings.max_length,
        "chronology": settings.chronology.word(),
        "release": settings.release.word(),
        "reservation_ttl_seconds": settings.reservation_ttl_seconds,
        "reservation_overdue": settings.reservation_overdue.word(),
    })
}

fn stored_settings(issuer: &str, stored: &Value) -> Result<Settings, Error> {
    let text = |field: &str| stored[field].as_str().unwrap_or_default().to_owned();
    let draft = Draft {
        issuer: issuer.to_owned(),
        pattern: text("pattern"),
        reset: text("reset"),
        time_zone: text("time_zone"),
        first: stored["first"].as_i64().unwrap_or(-1),
        gapless: stored["gapless"].as_bool().unwrap_or(true),
        overflow: text("overflow"),
        max_length: stored["max_length"].as_i64().and_then(|n| n.try_into().ok()).unwrap_or(-1),
        // Series from before there was a choice say nothing.
        chronology: stored["chronology"].as_str().unwrap_or("none").to_owned(),
        release: stored["release"].as_str().unwrap_or("never").to_owned(),
        reservation_ttl_seconds: stored["reservation_ttl_seconds"].as_i64(),
        reservation_overdue: stored["reservation_overdue"].as_str().unwrap_or("alarm").to_owned(),
    };
    draft.check().map_err(|errors| Error::corrupt(format!("a placement's settings: {errors:?}")))
}
