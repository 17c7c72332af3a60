//! Series as they stand on their shard.

use std::sync::Arc;

use domain::{
    id::SeriesName,
    next::Gate,
    period::Fiscal,
    principal::Principal,
    series::{Draft, Series, Settings, Status},
};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use serde_json::Value;
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
        let fiscal = new.settings.reset.fiscal();
        sqlx::query!(
            "insert into series (tenant_id, series, issuer, pattern, reset, time_zone, first, gapless, overflow, max_length,
                                 chronology, epoch, created_at, created_by, release, reservation_ttl_seconds,
                                 reservation_overdue, fiscal_starts, fiscal_label, max_days_ahead)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
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
            new.settings.reservation_overdue.word(),
            fiscal.map(Fiscal::starts),
            fiscal.map(|fiscal| fiscal.label().word()),
            new.settings.max_days_ahead
        )
        .execute(tx.db())
        .await?;
        sqlx::query!(
            "insert into series_version (tenant_id, series, version, settings, status, at, principal, operation_id)
             values ($1, $2, 1, $3, 'active', $4, $5, 'create') on conflict (tenant_id, series, version) do nothing",
            principal.tenant.0,
            new.name.as_str(),
            Value::Object(store::settings::write(&new.settings.draft())),
            new.at.to_sqlx() as _,
            new.by
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
                reservation_ttl_seconds, reservation_overdue, fiscal_starts, fiscal_label, max_days_ahead, status, version
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
                reservation_ttl_seconds, reservation_overdue, fiscal_starts, fiscal_label, max_days_ahead, status, version
           from series where tenant_id = $1 order by series",
        principal.tenant.0
    )
    .fetch_all(tx.db())
    .await?;
    rows.into_iter().map(Row::understand).collect()
}

/// Whether counters of a series with this status let numbers through.
pub(crate) fn gate(status: Status) -> Gate {
    match status {
        Status::Active => Gate::Open,
        Status::Paused => Gate::Paused,
        Status::Closed => Gate::Closed,
    }
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
    fiscal_starts: Option<String>,
    fiscal_label: Option<String>,
    max_days_ahead: Option<i64>,
    status: String,
    version: i64,
}

impl Row {
    fn understand(self) -> Result<Series, Error> {
        let name = SeriesName::parse(&self.series).map_err(|e| Error::corrupt(e.to_string()))?;
        let draft = Draft {
            issuer: self.issuer,
            pattern: self.pattern,
            reset: self.reset,
            fiscal_year: self.fiscal_starts.zip(self.fiscal_label),
            time_zone: self.time_zone,
            first: self.first,
            gapless: self.gapless,
            overflow: self.overflow,
            max_length: self.max_length,
            chronology: self.chronology,
            max_days_ahead: self.max_days_ahead,
            release: self.release,
            reservation_ttl_seconds: self.reservation_ttl_seconds,
            reservation_overdue: self.reservation_overdue,
        };
        let settings = draft.check().map_err(|errors| Error::corrupt(format!("series {name}: {errors:?}")))?;
        let status = Status::from_word(&self.status).ok_or_else(|| Error::corrupt(format!("series {name}: status")))?;
        Ok(Series { name, settings, status, version: self.version })
    }
}
