//! The proof has a test of its own: a connection left inside a transaction is seen too.

use testkit::prove;

#[test]
fn the_proof_sees_a_missing_guard_and_an_open_transaction() {
    prove(async |app| {
        let mut db = app.superuser("shard_1").await;
        sqlx::raw_sql("begin; select 1").execute(&mut db).await.unwrap();
        let found = app.findings().await.join("\n");
        assert!(found.contains("left inside a transaction"), "{found}");
        sqlx::raw_sql("rollback; alter table number drop constraint number_follows").execute(&mut db).await.unwrap();
        let found = app.findings().await.join("\n");
        assert!(found.contains("a guard is gone: number_follows"), "{found}");
        sqlx::raw_sql(
            "alter table number add constraint number_follows
               foreign key (tenant_id, series, part, period, prev) references number",
        )
        .execute(&mut db)
        .await
        .unwrap();
        assert_eq!(app.findings().await, Vec::<String>::new());
    });
}
