//! The proof: what must hold in the databases after any test, asked in plain SQL by a superuser, whom
//! row-level security hides nothing from. It shares no code with what it checks.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

/// What is wrong, as sentences; empty is right.
pub async fn check(shard_urls: &BTreeMap<String, String>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut texts: HashMap<(String, String, String), String> = HashMap::new();
    for (shard, url) in shard_urls {
        let mut db = PgConnection::connect(url).await.expect("the superuser connects");
        for (what, sql) in IMPOSSIBLE {
            for row in sqlx::query(AssertSqlSafe(*sql)).fetch_all(&mut db).await.expect("the proof's question") {
                let place: String = row.get(0);
                findings.push(format!("{shard}: {what}: {place}"));
            }
        }
        findings.extend(left_open(&mut db).await.into_iter().map(|what| format!("{shard}: {what}")));
        let rows = sqlx::query(TEXTS).fetch_all(&mut db).await.expect("the proof's question");
        for row in rows {
            let (key, place) = ((row.get(0), row.get(1), row.get(2)), format!("{shard} {}", row.get::<String, _>(3)));
            if let Some(other) = texts.insert(key, place.clone()) {
                findings.push(format!("a text of one issuer stands on two documents: {other} and {place}"));
            }
        }
        db.close().await.expect("the superuser leaves");
    }
    findings
}

/// Connections left inside a transaction. One whose client was killed a moment ago is about to notice; one that was left
/// by its pool stays until the server's time-out of five seconds.
async fn left_open(db: &mut PgConnection) -> Vec<String> {
    let mut left = Vec::new();
    for _ in 0..20 {
        let asked = "select format('a connection was left inside a transaction: %s: %s', state, query) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and state like 'idle in transaction%'";
        left = sqlx::query_scalar(asked).fetch_all(&mut *db).await.expect("the proof's question");
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    left
}

/// Over all shards: a text belongs to one document of an issuer.
const TEXTS: &str = "select n.tenant_id::text, s.issuer, n.number, format('%s %s %s', n.series, n.period, n.value)
  from number n join series s using (tenant_id, series) where n.number is not null";

const IMPOSSIBLE: &[(&str, &str)] = &[
    (
        "a value does not follow the one before it and opens no run",
        "select format('%s %s %s', series, period, value) from (
           select *, lag(value) over (partition by tenant_id, series, part, period order by value) as before from number) n
          where before is distinct from value - 1 and not exists (select from run r where (r.tenant_id, r.series, r.part,
            r.period, r.first) = (n.tenant_id, n.series, n.part, n.period, n.value))",
    ),
    (
        "a run begins with no number although later values of it were given",
        "select format('%s %s %s', series, period, first) from run r
          where exists (select from number n where (n.tenant_id, n.series, n.part, n.period) =
                        (r.tenant_id, r.series, r.part, r.period) and n.value > r.first
                        and not exists (select from run s where (s.tenant_id, s.series, s.part, s.period) =
                          (r.tenant_id, r.series, r.part, r.period) and s.first > r.first and s.first <= n.value))
            and not exists (select from number n where (n.tenant_id, n.series, n.part, n.period, n.value) =
                        (r.tenant_id, r.series, r.part, r.period, r.first))",
    ),
    (
        "a value was given twice",
        "select format('%s %s %s', series, period, value) from number
          group by tenant_id, series, part, period, value having count(*) > 1",
    ),
    (
        "a document has two numbers",
        "select format('%s %s', series, document_ref) from number where document_ref is not null
          group by tenant_id, series, document_ref having count(*) > 1",
    ),
    (
        "the counter is not where the numbers are",
        "select format('%s %s: counter %s, numbers %s', series, period, c.last, n.last) from counter c
           full join (select tenant_id, series, part, period, max(value) filter (where state <> 'released') as last
                        from number group by 1, 2, 3, 4) n using (tenant_id, series, part, period)
          where c.last is distinct from greatest(n.last, (select max(first) - 1 from run r where
            (r.tenant_id, r.series, r.part, r.period) = (c.tenant_id, c.series, c.part, c.period)))",
    ),
    (
        "a claim took values that are not there",
        "select format('%s %s', series, key) from claim c where count > 0 and count <> (select count(*) from number n
          where (n.tenant_id, n.series, n.part, n.period) = (c.tenant_id, c.series, c.part, c.period)
            and n.value between c.first and c.first + c.count - 1)",
    ),
    (
        "a claim answers with a number that is not there",
        "select format('%s %s', series, key) from claim c cross join lateral jsonb_array_elements(c.answer) a
          where not exists (select from number n where (n.tenant_id, n.series) = (c.tenant_id, c.series)
            and n.period = a ->> 0 and n.part = (a ->> 1)::smallint and n.value = (a ->> 2)::bigint)",
    ),
    // With the two before: every life of a number has exactly one claim. Joined number by number this takes minutes on
    // tables that were never analysed.
    (
        "two claims took one value",
        "select format('%s %s %s', series, period, first) from (
           select tenant_id, series, part, period, first,
                  lag(first + count) over (partition by tenant_id, series, part, period order by first) as free
             from claim where count > 0) c
          where free > first and not exists (select from number n where (n.tenant_id, n.series, n.part, n.period, n.value) =
            (c.tenant_id, c.series, c.part, c.period, c.first) and n.life > 1)",
    ),
    (
        "numbers and what claims took are not as many",
        "select format('%s %s: %s given, %s taken', series, period, n.given, c.taken) from
           (select tenant_id, series, part, period, sum(life) as given from number where state <> 'missing' group by 1, 2, 3, 4) n
           full join (select tenant_id, series, part, period, sum(count) as taken from claim where count > 0 group by 1, 2, 3, 4) c
           using (tenant_id, series, part, period) where n.given is distinct from c.taken",
    ),
    (
        "a released number is not above its counter",
        "select format('%s %s %s', series, period, value) from number n join counter c using (tenant_id, series, part, period)
          where n.state = 'released' and n.value <= c.last",
    ),
    (
        "a number is not where its history ended",
        "select format('%s %s %s: %s, history %s', series, period, value, n.state, h.\"to\") from number n
           left join (select distinct on (tenant_id, series, part, period, value) * from history
                       order by tenant_id, series, part, period, value, entry desc) h using (tenant_id, series, part, period, value)
          where case when h.\"to\" is null then n.state not in ('issued', 'reserved', 'missing') or n.life > 1 else h.\"to\" <> n.state end",
    ),
    (
        "a step in a history does not begin where the last one ended",
        "select format('%s %s %s', series, period, value) from (select *, lag(\"to\") over (partition by tenant_id, series, part,
           period, value order by entry) as before from history) h where before <> \"from\"",
    ),
    (
        "a closed period has an open number",
        "select format('%s %s %s', series, period, value) from number n join counter c using (tenant_id, series, part, period)
          where c.gate = 'closed' and c.closed_at is not null and n.state in ('reserved', 'sending', 'failed', 'in_doubt')",
    ),
    (
        "a guard is gone",
        "select wanted from unnest(array['number_pkey', 'number_follows', 'number_head', 'claim_pkey', 'counter_pkey']) wanted
          where not exists (select from pg_constraint where conname = wanted and convalidated)",
    ),
];
