//! What the database itself guards, read from its catalogue: each table, policy, grant and role by name.

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use testkit::prove;

/// Table, policy, command, roles.
const POLICIES: &str = "select format('%s.%s %s to %s', tablename, policyname, lower(cmd), array_to_string(roles, ','))
  from pg_policies where schemaname = 'public' order by 1";
/// Tables without forced row-level security.
const OPEN: &str = "select relname::text from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
  and not (relrowsecurity and relforcerowsecurity) order by 1";
/// What the two serving roles may do, table by table.
const GRANTS: &str = "select format('%s: %s %s', grantee, table_name, string_agg(distinct lower(privilege_type), ' ' order by lower(privilege_type)))
  from (select grantee, table_name, privilege_type from information_schema.role_table_grants
        union select grantee, table_name, privilege_type from information_schema.role_column_grants) g
  where grantee in ('seriatim_app', 'seriatim_worker', 'PUBLIC')
    and table_name in (select relname from pg_class where relnamespace = 'public'::regnamespace)
  group by grantee, table_name order by 1";

async fn list(db: &mut PgConnection, sql: &str) -> Vec<String> {
    sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(db).await.unwrap()
}

#[test]
fn the_shards_guards() {
    prove(async |app| {
        let mut db = app.superuser("shard_1").await;
        assert_eq!(list(&mut db, OPEN).await, ["_sqlx_migrations"], "only the migrations' own table is open");
        let tables = ["claim", "counter", "event", "history", "number", "run", "series", "series_version"];
        let mut expected: Vec<String> = tables
            .iter()
            .flat_map(|t| [format!("{t}.{t}_owner all to seriatim_owner"), format!("{t}.{t}_tenant all to seriatim_app")])
            .chain(["number", "series"].map(|t| format!("{t}.{t}_worker select to seriatim_worker")))
            .chain(["job.job_owner all to seriatim_owner", "job.job_worker all to seriatim_worker"].map(str::to_owned))
            .collect();
        expected.sort();
        assert_eq!(list(&mut db, POLICIES).await, expected);
        assert_eq!(
            list(&mut db, GRANTS).await,
            [
                "seriatim_app: claim delete insert select",
                "seriatim_app: counter insert select update",
                "seriatim_app: event insert select",
                "seriatim_app: history insert select",
                "seriatim_app: number insert select update",
                "seriatim_app: run insert select",
                "seriatim_app: series insert select update",
                "seriatim_app: series_version insert select",
                "seriatim_worker: job insert select update",
                "seriatim_worker: number select",
                "seriatim_worker: series select",
            ]
        );
        let columns = "select column_name::text from information_schema.role_column_grants
          where grantee = 'seriatim_app' and table_name = 'number' and privilege_type = 'UPDATE' order by 1";
        assert_eq!(
            list(&mut db, columns).await,
            ["config_version", "document_date", "document_ref", "due", "issued_at", "life", "metadata", "number", "state"],
            "which value a row is never changes"
        );
        // Full unique indexes beside the predecessor's key would slow a fresh table down a hundredfold.
        let full = "select indexrelid::regclass::text from pg_index where indrelid = 'number'::regclass and indisunique
          and indpred is null order by 1";
        assert_eq!(list(&mut db, full).await, ["number_pkey"]);
    });
}

#[test]
fn the_directorys_guards() {
    prove(async |app| {
        let mut db = app.superuser("directory").await;
        assert_eq!(list(&mut db, OPEN).await, ["_sqlx_migrations"]);
        let tables =
            ["api_key", "claim", "event", "issuer", "operator_claim", "operator_key", "pattern", "placement", "shard", "tenant"];
        let mut expected: Vec<String> = tables.iter().map(|t| format!("{t}.{t}_owner all to seriatim_owner")).collect();
        expected.extend(
            ["api_key", "claim", "event", "issuer", "pattern", "placement"]
                .map(|t| format!("{t}.{t}_tenant all to seriatim_app")),
        );
        expected.extend([
            "api_key.api_key_operator insert to seriatim_app".to_owned(),
            "event.event_operator insert to seriatim_app".to_owned(),
            "operator_claim.operator_claim_operator all to seriatim_app".to_owned(),
            "shard.shard_read select to seriatim_app,seriatim_worker".to_owned(),
            "tenant.tenant_operator all to seriatim_app".to_owned(),
            "tenant.tenant_self select to seriatim_app".to_owned(),
        ]);
        expected.sort();
        assert_eq!(list(&mut db, POLICIES).await, expected);
        assert_eq!(
            list(&mut db, GRANTS).await,
            [
                "seriatim_app: api_key insert select update",
                "seriatim_app: claim delete insert select",
                "seriatim_app: event insert select",
                "seriatim_app: issuer insert select update",
                "seriatim_app: operator_claim delete insert select",
                "seriatim_app: pattern insert select",
                "seriatim_app: placement insert select",
                "seriatim_app: shard select",
                "seriatim_app: tenant insert select update",
                "seriatim_worker: shard select",
            ]
        );
    });
}

#[test]
fn no_role_passes_the_policies() {
    prove(async |app| {
        let mut db = app.superuser("shard_1").await;
        let roles =
            "select format('%s %s %s', rolname, rolsuper, rolbypassrls) from pg_roles where rolname like 'seriatim%' order by 1";
        assert_eq!(list(&mut db, roles).await, ["seriatim_app f f", "seriatim_owner f f", "seriatim_worker f f"]);
        app.first.create_series("invoices", "A{seq:4}", json!({"reset": "never"})).await.expect(201);
        app.first.issue("invoices", "k", json!({"count": 3})).await.expect(201);
        let shard = app.shard_of("invoices").await;
        let mut tenant = app.superuser(&shard).await;
        let tenant: String = sqlx::query_scalar("select tenant_id::text from series").fetch_one(&mut tenant).await.unwrap();
        let mut db = PgConnection::connect(&app.url("seriatim_app", &shard)).await.unwrap();
        let seen = "select count(*)::text from number";
        assert_eq!(list(&mut db, seen).await, ["0"], "without a tenant there is nothing");
        sqlx::raw_sql("begin; set local seriatim.tenant = '0190b5a0-0000-7000-8000-000000000000'")
            .execute(&mut db)
            .await
            .unwrap();
        assert_eq!(list(&mut db, seen).await, ["0"], "as another tenant there is nothing");
        let foreign = format!(
            "insert into run (tenant_id, series, part, period, first, why, principal, at) values ('{tenant}', 'invoices', 0, 'all', 9, 'raised', 'x', now())"
        );
        let refused = sqlx::raw_sql(AssertSqlSafe(foreign)).execute(&mut db).await.unwrap_err().to_string();
        assert!(refused.contains("row-level security"), "{refused}");
        sqlx::raw_sql("rollback").execute(&mut db).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("begin; set local seriatim.tenant = '{tenant}'"))).execute(&mut db).await.unwrap();
        assert_eq!(list(&mut db, seen).await, ["3"]);
        for forbidden in [
            "delete from number",
            "update number set value = 9",
            "update history set reason = 'x'",
            "truncate claim",
            "drop table run",
        ] {
            let refused =
                sqlx::raw_sql(AssertSqlSafe(format!("savepoint s; {forbidden}"))).execute(&mut db).await.unwrap_err().to_string();
            assert!(refused.contains("permission denied") || refused.contains("must be owner"), "{forbidden}: {refused}");
            sqlx::raw_sql("rollback to s").execute(&mut db).await.unwrap();
        }
        // A worker finds what is open, and these are not.
        let mut worker = PgConnection::connect(&app.url("seriatim_worker", &shard)).await.unwrap();
        assert_eq!(list(&mut worker, "select value::text from number").await, Vec::<String>::new());
        assert_eq!(list(&mut worker, "select series from series").await, ["invoices"]);
        assert!(sqlx::query("select metadata from number").execute(&mut worker).await.is_err());
    });
}
