//! What the worker role does: it finds whose work is to be done, across tenants, and holds the leases under which one
//! process at a time does work of a kind. It reads nothing that stands on a document and changes nothing but leases.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use domain::id::{SeriesName, TenantId};
use jiff::Timestamp;
use jiff_sqlx::ToSqlx;
use serde_json::Value;
use sqlx::PgPool;
use store::{Authority, Error, Snapshot, Tx};

/// Work that one process at a time does on a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// Settling reservations past their deadline.
    Sweep,
    /// Auditing series after series.
    Audit,
}

impl Job {
    /// The word in the database and in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Audit => "audit",
        }
    }
}

/// A handle to every shard as the worker role; cheap to clone.
#[derive(Clone)]
pub struct Finder {
    shards: Arc<BTreeMap<String, PgPool>>,
}

impl fmt::Debug for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finder").field("shards", &self.shards.keys()).finish()
    }
}

impl Finder {
    /// A handle to the shards at these addresses (by name), as the worker role, with at most `connections` at once to each.
    pub fn open(shards: &BTreeMap<String, String>, connections: u32) -> Result<Self, Error> {
        let pools = shards.iter().map(|(name, url)| Ok((name.clone(), store::pool(url, connections)?)));
        Ok(Self { shards: Arc::new(pools.collect::<Result<_, Error>>()?) })
    }

    /// The names of the shards.
    pub fn shards(&self) -> impl Iterator<Item = &str> {
        self.shards.keys().map(String::as_str)
    }

    async fn begin(&self, shard: &str) -> Result<Tx<'static>, Error> {
        let unknown = || Error::Unavailable(format!("shard {shard} is not in this process's configuration").into());
        Tx::begin(self.shards.get(shard).ok_or_else(unknown)?, Authority::Worker, Snapshot::PerStatement).await
    }

    /// Takes the lease of a job for this long, or keeps it: false where another holds it. The shard's clock decides, so
    /// processes need not agree on the time. Whoever is killed holds it until then.
    pub async fn lease(&self, shard: &str, job: Job, holder: &str, time: Duration) -> Result<bool, Error> {
        let mut tx = self.begin(shard).await?;
        let taken = sqlx::query!(
            "insert into job (kind, holder, until) values ($1, $2, clock_timestamp() + make_interval(secs => $3))
             on conflict (kind) do update set holder = $2, until = excluded.until
              where job.until < clock_timestamp() or job.holder = $2",
            job.word(),
            holder,
            time.as_secs_f64()
        )
        .execute(tx.db())
        .await?;
        tx.commit().await?;
        Ok(taken.rows_affected() == 1)
    }

    /// Gives a lease back.
    pub async fn leave(&self, shard: &str, job: Job, holder: &str) -> Result<(), Error> {
        let mut tx = self.begin(shard).await?;
        sqlx::query!("update job set until = clock_timestamp() where kind = $1 and holder = $2", job.word(), holder)
            .execute(tx.db())
            .await?;
        tx.commit().await
    }

    /// Notes how far a job is; false where the lease was lost, and nothing is noted.
    pub async fn note(&self, shard: &str, job: Job, holder: &str, progress: &Value) -> Result<bool, Error> {
        let mut tx = self.begin(shard).await?;
        let noted =
            sqlx::query!("update job set progress = $3 where kind = $1 and holder = $2", job.word(), holder, progress as _)
                .execute(tx.db())
                .await?;
        tx.commit().await?;
        Ok(noted.rows_affected() == 1)
    }

    /// How far a job is, whoever does it.
    pub async fn noted(&self, shard: &str, job: Job) -> Result<Option<Value>, Error> {
        let mut tx = self.begin(shard).await?;
        let noted = sqlx::query_scalar!("select progress from job where kind = $1", job.word()).fetch_optional(tx.db()).await?;
        tx.end().await?;
        Ok(noted.flatten())
    }

    /// The series that have a reservation past its deadline at `at` and want it voided, at most `limit`.
    pub async fn overdue_series(&self, shard: &str, at: Timestamp, limit: i64) -> Result<Vec<(TenantId, SeriesName)>, Error> {
        let mut tx = self.begin(shard).await?;
        let rows = sqlx::query!(
            "select tenant_id, series from series s
              where reservation_overdue = 'void'
                and exists (select from number n where n.tenant_id = s.tenant_id and n.series = s.series
                              and n.state = 'reserved' and n.due is not null and n.due < $1)
              order by tenant_id, series limit $2",
            at.to_sqlx() as _,
            limit
        )
        .fetch_all(tx.db())
        .await?;
        tx.end().await?;
        rows.into_iter().map(|row| Ok((TenantId(row.tenant_id), name(&row.series)?))).collect()
    }

    /// How many reservations are past their deadline at `at`.
    pub async fn overdue(&self, shard: &str, at: Timestamp) -> Result<i64, Error> {
        let mut tx = self.begin(shard).await?;
        let count = sqlx::query_scalar!(
            r#"select count(*) as "count!" from number where state = 'reserved' and due is not null and due < $1"#,
            at.to_sqlx() as _
        )
        .fetch_one(tx.db())
        .await?;
        tx.end().await?;
        Ok(count)
    }

    /// The series that comes after this one, in the order of tenants and codes; none after the last.
    pub async fn series_after(
        &self,
        shard: &str,
        after: Option<&(TenantId, SeriesName)>,
    ) -> Result<Option<(TenantId, SeriesName)>, Error> {
        let mut tx = self.begin(shard).await?;
        let row = sqlx::query!(
            "select tenant_id, series from series where $1::uuid is null or (tenant_id, series) > ($1, $2)
              order by tenant_id, series limit 1",
            after.map(|(tenant, _)| tenant.0),
            after.map(|(_, series)| series.as_str())
        )
        .fetch_optional(tx.db())
        .await?;
        tx.end().await?;
        row.map(|row| Ok((TenantId(row.tenant_id), name(&row.series)?))).transpose()
    }
}

fn name(raw: &str) -> Result<SeriesName, Error> {
    SeriesName::parse(raw).map_err(|e| Error::corrupt(e.to_string()))
}
