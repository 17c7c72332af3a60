//! What is in the databases before anybody is measured, put there as fast as SQL can.

use domain::secret::{ApiKey, ENTROPY, Mode};
use sqlx::PgConnection;

use crate::{Failure, load::Random, server::execute};

/// The tenant that issues, as a number; [`tenant_id`] makes its id.
pub(crate) const TENANT: i64 = 1;
/// The series that everybody wants a number of.
pub(crate) const HOT: &str = "hot";
/// How many series there are beside it, for the figures that spread.
pub(crate) const ROWS: u64 = 60;

/// The series of the tenant that issues: [`HOT`] and `row-01` to `row-60`.
pub(crate) fn series() -> Vec<String> {
    [HOT.to_owned()].into_iter().chain((1..=ROWS).map(|row| format!("row-{row:02}"))).collect()
}

/// A tenant's id.
pub(crate) fn tenant_id(tenant: i64) -> String {
    format!("018f0000-0000-7000-8000-{tenant:012x}")
}

/// A tenant's API key: the same in each run, and of no use outside it.
pub(crate) fn api_key(tenant: i64) -> ApiKey {
    let mut random = Random::of(tenant.unsigned_abs());
    loop {
        let mut entropy = [0; ENTROPY];
        for eight in entropy.chunks_mut(8) {
            eight.copy_from_slice(&random.next().to_be_bytes());
        }
        if let Some(key) = ApiKey::from_entropy(Mode::Live, &entropy) {
            return key;
        }
    }
}

/// Tenants that are alike.
pub(crate) struct Tenants {
    /// The first one's number.
    pub(crate) first: i64,
    /// How many.
    pub(crate) count: i64,
    /// The series of each.
    pub(crate) series: Vec<String>,
}

impl Tenants {
    /// Their API keys.
    pub(crate) fn api_keys(&self) -> Vec<String> {
        (self.first..self.first + self.count).map(|tenant| api_key(tenant).reveal().to_owned()).collect()
    }

    /// Adds them to the directory, and their series to the shard.
    pub(crate) async fn add(&self, directory: &mut PgConnection, shard: &mut PgConnection) -> Result<(), Failure> {
        let tenants: Vec<i64> = (self.first..self.first + self.count).collect();
        let hashes: Vec<[u8; 32]> = tenants.iter().map(|tenant| api_key(*tenant).hash()).collect();
        for sql in IN_THE_DIRECTORY {
            sqlx::query(sql).bind(&tenants).bind(&hashes).bind(&self.series).execute(&mut *directory).await?;
        }
        sqlx::query(ON_THE_SHARD).bind(&tenants).bind(&self.series).execute(&mut *shard).await?;
        for (db, tables) in [(directory, "tenant, api_key, placement"), (shard, "series")] {
            execute(db, &format!("vacuum (analyze) {tables}")).await?;
        }
        Ok(())
    }
}

/// $1 tenants, $2 the hashes of their keys, $3 the series of each. Every statement names all three: a parameter
/// that a statement does not use has no type.
const IN_THE_DIRECTORY: [&str; 5] = [
    "insert into tenant (tenant_id, name, mode, created_at, created_by)
     select ('018f0000-0000-7000-8000-' || lpad(to_hex(t), 12, '0'))::uuid, 'tenant ' || t, 'live', now(), 'bench'
       from unnest($1::bigint[], $2::bytea[]) given (t, hash) where cardinality($3::text[]) > 0",
    "insert into api_key (tenant_id, key_id, name, secret_hash, scopes, created_at, created_by)
     select ('018f0000-0000-7000-8000-' || lpad(to_hex(t), 12, '0'))::uuid,
            ('018f0000-0000-7000-9000-' || lpad(to_hex(t), 12, '0'))::uuid, 'bench', hash,
            array['numbers:issue', 'numbers:read', 'series:read'], now(), 'bench'
       from unnest($1::bigint[], $2::bytea[]) given (t, hash) where cardinality($3::text[]) > 0",
    "insert into issuer (tenant_id, issuer)
     select ('018f0000-0000-7000-8000-' || lpad(to_hex(t), 12, '0'))::uuid, 'default'
       from unnest($1::bigint[], $2::bytea[]) given (t, hash) where cardinality($3::text[]) > 0",
    "insert into placement (tenant_id, series, issuer, shard, epoch, settings, created_at, created_by)
     select ('018f0000-0000-7000-8000-' || lpad(to_hex(t), 12, '0'))::uuid, series, 'default', shard, epoch,
            jsonb_build_object('pattern', 'RE-{seq:9}', 'reset', 'never', 'time_zone', 'UTC', 'first', 1, 'gapless', true,
                               'overflow', 'refuse', 'max_length', 16), now(), 'bench'
       from unnest($1::bigint[], $2::bytea[]) given (t, hash), unnest($3::text[]) series, shard",
    "insert into pattern (tenant_id, issuer, series, version, pattern, overflow, reset)
     select ('018f0000-0000-7000-8000-' || lpad(to_hex(t), 12, '0'))::uuid, 'default', series, 1, 'RE-{seq:9}', 'refuse', 'never'
       from unnest($1::bigint[], $2::bytea[]) given (t, hash), unnest($3::text[]) series",
];

const ON_THE_SHARD: &str = "
insert into series (tenant_id, series, issuer, pattern, reset, time_zone, first, gapless, overflow, max_length, epoch,
                    created_at, created_by)
select ('018f0000-0000-7000-8000-' || lpad(to_hex(t), 12, '0'))::uuid, series, 'default', 'RE-{seq:9}', 'never', 'UTC', 1,
       true, 'refuse', 16, 1, now(), 'bench'
  from unnest($1::bigint[]) t, unnest($2::text[]) series";

/// Makes the counter of each series and its first run, as a first issue would: rivals make none.
pub(crate) async fn open_counters(shard: &mut PgConnection) -> Result<(), Failure> {
    execute(
        shard,
        "insert into counter (tenant_id, series, part, period, last, config_version, epoch)
           select tenant_id, series, 0, 'all', 0, version, epoch from series;
         insert into run (tenant_id, series, part, period, first, why, principal, at)
           select tenant_id, series, 0, 'all', 1, 'start', 'bench', now() from series",
    )
    .await
}

/// Fills a shard with numbers of the hot series, one claim for each, so that issuing goes on after the last.
/// Indexes in whose order the rows do not come are made afterwards; constraints between rows hold because the
/// rows are made so, and are not looked at one by one. Numbers and claims are written side by side.
pub(crate) async fn fill(numbers: &mut PgConnection, claims: &mut PgConnection, rows: i64) -> Result<(), Failure> {
    let tenant = tenant_id(TENANT);
    let quickly = "set session_replication_role = replica; set synchronous_commit = off; set maintenance_work_mem = '512MB'";
    let write_numbers = async {
        execute(numbers, quickly).await?;
        let indexes =
            "select indexdef from pg_indexes where indexname in ('number_text', 'number_document_ref') order by indexname";
        let indexes: Vec<String> = sqlx::query_scalar(indexes).fetch_all(&mut *numbers).await?;
        execute(numbers, "drop index number_text, number_document_ref").await?;
        let sql = format!(
            "insert into number (tenant_id, series, part, period, value, prev, number, state, document_ref, document_date,
                                 config_version, at, principal, operation_id)
             select '{tenant}', '{HOT}', 0, 'all', v, nullif(v, 1) - 1, 'RE-' || lpad(v::text, 9, '0'), 'issued',
                    'order-' || lpad((hashint8extended(v, 1) & 9223372036854775807)::text, 20, '0'), current_date, 1, now(),
                    'key:{tenant}', '{tenant}'
               from generate_series(1, {rows}::bigint) v"
        );
        execute(numbers, &sql).await?;
        for index in indexes {
            execute(numbers, &index).await?;
        }
        let sql = format!("update counter set last = {rows}, last_date = current_date where series = '{HOT}'");
        execute(numbers, &sql).await?;
        execute(numbers, "vacuum (analyze) number").await
    };
    let write_claims = async {
        execute(claims, quickly).await?;
        // What a claim must look like is known of these, and looking at ten million of them takes minutes. For
        // claims to come the checks are back afterwards.
        let checks = "select conname::text, pg_get_constraintdef(oid) from pg_constraint
                       where conrelid = 'claim'::regclass and contype = 'c' order by conname";
        let checks: Vec<(String, String)> = sqlx::query_as(checks).fetch_all(&mut *claims).await?;
        for (name, _) in &checks {
            execute(claims, &format!("alter table claim drop constraint {name}")).await?;
        }
        execute(claims, "alter table claim drop constraint claim_pkey").await?;
        let sql = format!(
            "insert into claim (tenant_id, series, key, fingerprint, operation, part, period, first, count, at)
             select '{tenant}', '{HOT}', 'key-' || lpad((hashint8extended(v, 2) & 9223372036854775807)::text, 20, '0'),
                    decode(repeat('ab', 32), 'hex'), 'issue', 0, 'all', v, 1, now()
               from generate_series(1, {rows}::bigint) v"
        );
        execute(claims, &sql).await?;
        execute(claims, "alter table claim add primary key (tenant_id, series, key)").await?;
        for (name, check) in &checks {
            execute(claims, &format!("alter table claim add constraint {name} {check} not valid")).await?;
        }
        execute(claims, "vacuum (analyze) claim").await
    };
    let (numbers, claims) = tokio::join!(write_numbers, write_claims);
    numbers.and(claims)
}

/// Begins a snapshot that holds on to every version of a row from now on, until the connection is dropped.
pub(crate) async fn hold_snapshot(db: &mut PgConnection) -> Result<(), Failure> {
    execute(db, "begin isolation level repeatable read").await?;
    // The snapshot is taken by the first statement that needs one.
    execute(db, "select count(*) from counter").await
}

/// So many updates of the hot counter that change nothing, each committed by itself. Each follows the last
/// version by its place: under a held snapshot the way through the index grows with every one.
pub(crate) async fn update_counter(db: &mut PgConnection, updates: i64) -> Result<(), Failure> {
    execute(db, "set synchronous_commit = off").await?;
    let sql = format!(
        "do $$
         declare place tid;
         begin
           select ctid into strict place from counter where series = '{HOT}';
           for i in 1..{updates} loop
             update counter set last = last where ctid = place returning ctid into strict place;
             commit;
           end loop;
         end $$"
    );
    execute(db, &sql).await
}
