//! Series as they stand on their shard.

use std::sync::Arc;

use domain::{
    id::{IssuerName, SeriesName},
    pattern::{Overflow, Pattern},
    period::Reset,
    principal::Principal,
    series::{Chronology, Overdue, Release, Series, Settings, Status},
};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use store::{Authority, Error, Snapshot, Stop, Tx};

use crate::{Ledger, PATIENCE, READING};

/// What the directory decided about a series, to be put on its shard.
#[derive(Clone, Debug)]
pub struct NewSeries {
    /// Its code.
    pub name: SeriesName,
    /// The settings it begins with.
    pub settings: Settings,
    /// Counts the moves of the series.
    pub epoch: i64,
    /// When it was made.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
}

impl Ledger {
    /// Puts a series on its shard if it is not there yet. The directory decided that it exists; doing this
    /// twice, or by two at once, changes nothing.
    #[tracing::instrument(name = "ledger.ensure_series", skip_all, fields(shard), err(level = "debug"))]
    pub async fn ensure_series(&self, shard: &str, principal: &Principal, new: &NewSeries) -> Result<(), Stop> {
        store::repeat(PATIENCE, || self.ensure_once(shard, principal, new)).await
    }

    async fn ensure_once(&self, shard: &str, principal: &Principal, new: &NewSeries) -> Result<(), Stop> {
        let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
        sqlx::query!(
            "insert into series (tenant_id, series, issuer, pattern, reset, time_zone, first, gapless, overflow, max_length,
                                 chronology, epoch, created_at, created_by, release, reservation_ttl_seconds,
                                 reservation_overdue)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
             on conflict (tenant_id, series) do nothing",
            principal.tenant.0,
            new.name.as_str(),
            new.settings.issuer.as_str(),
            new.settings.pattern.source(),
            new.settings.reset.word(),
            new.settings.time_zone,
            new.settings.first,
            new.settings.gapless,
            new.settings.overflow.word(),
            new.settings.max_length,
            new.settings.chronology.word(),
            new.epoch,
            new.at.to_sqlx() as _,
            new.by,
            new.settings.release.word(),
            new.settings.reservation_ttl_seconds,
            new.settings.reservation_overdue.word()
        )
        .execute(tx.db())
        .await?;
        Ok(tx.commit().await?)
    }

    /// A series as it stands; none if it is not on this shard.
    #[tracing::instrument(name = "ledger.series", skip_all, fields(shard), err(level = "debug"))]
    pub async fn series(&self, shard: &str, principal: &Principal, name: &SeriesName) -> Result<Option<Series>, Stop> {
        store::read(READING, || async {
            let mut tx = Tx::begin(self.shard(shard)?, Authority::Tenant(principal), Snapshot::PerStatement).await?;
            let series = read(&mut tx, principal, name).await?;
            tx.end().await?;
            Ok(series)
        })
        .await
    }

    /// The same from memory, as it was last read.
    pub(crate) async fn remembered_series(
        &self,
        shard: &str,
        principal: &Principal,
        name: &SeriesName,
    ) -> Result<Option<Arc<Series>>, Stop> {
        let key = (principal.tenant, name.clone());
        if let Some(series) = self.series.get(&key) {
            return Ok(Some(series));
        }
        let series = self.series(shard, principal, name).await?.map(Arc::new);
        if let Some(series) = &series {
            self.series.insert(key, series.clone());
        }
        Ok(series)
    }
}

/// The series as this statement sees it.
pub(crate) async fn read(tx: &mut Tx<'_>, principal: &Principal, name: &SeriesName) -> Result<Option<Series>, Error> {
    let row = sqlx::query_as!(
        Row,
        "select series, issuer, pattern, reset, time_zone, first, gapless, overflow, max_length, chronology, release,
                reservation_ttl_seconds, reservation_overdue, status, version
           from series where tenant_id = $1 and series = $2",
        principal.tenant.0,
        name.as_str()
    )
    .fetch_optional(tx.db())
    .await?;
    row.map(Row::understand).transpose()
}

/// Every series of the tenant on this shard, in the order of their codes.
pub(crate) async fn all(tx: &mut Tx<'_>, principal: &Principal) -> Result<Vec<Series>, Error> {
    let rows = sqlx::query_as!(
        Row,
        "select series, issuer, pattern, reset, time_zone, first, gapless, overflow, max_length, chronology, release,
                reservation_ttl_seconds, reservation_overdue, status, version
           from series where tenant_id = $1 order by series",
        principal.tenant.0
    )
    .fetch_all(tx.db())
    .await?;
    rows.into_iter().map(Row::understand).collect()
}

struct Row {
    series: String,
    issuer: String,
    pattern: String,
    reset: String,
    time_zone: String,
    first: i64,
    gapless: bool,
    overflow: String,
    max_length: i32,
    chronology: String,
    release: String,
    reservation_ttl_seconds: Option<i64>,
    reservation_overdue: String,
    status: String,
    version: i64,
}

impl Row {
    fn understand(self) -> Result<Series, Error> {
        let odd = |what: &str| Error::corrupt(format!("series {}: {what}", self.series));
        let name = SeriesName::parse(&self.series).map_err(|e| odd(&e.to_string()))?;
        let settings = Settings {
            issuer: IssuerName::parse(&self.issuer).map_err(|e| odd(&e.to_string()))?,
            pattern: Pattern::parse(&self.pattern).map_err(|e| odd(&e.to_string()))?,
            reset: Reset::from_word(&self.reset).ok_or_else(|| odd("reset"))?,
            time_zone: self.time_zone,
            first: self.first,
            gapless: self.gapless,
            overflow: Overflow::from_word(&self.overflow).ok_or_else(|| odd("overflow"))?,
            max_length: self.max_length,
            chronology: Chronology::from_word(&self.chronology).ok_or_else(|| odd("chronology"))?,
            release: Release::from_word(&self.release).ok_or_else(|| odd("release"))?,
            reservation_ttl_seconds: self.reservation_ttl_seconds,
            reservation_overdue: Overdue::from_word(&self.reservation_overdue).ok_or_else(|| odd("overdue policy"))?,
        };
        let status = Status::from_word(&self.status).ok_or_else(|| odd("status"))?;
        Ok(Series { name, settings, status, version: self.version })
    }
}
