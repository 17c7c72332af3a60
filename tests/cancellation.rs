//! A client that hangs up loses, repeats and skips nothing.

use std::time::Duration;

use serde_json::json;
use testkit::{Setup, prove_with};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::together::all;

/// 300 clients hang up at all moments of their request; afterwards each key gives one number, the values are
/// contiguous, and no connection of the small pool was left inside a transaction.
#[test]
fn clients_that_hang_up_leave_nothing_behind() {
    prove_with(Setup { connections: Some(3), ..Setup::default() }, async |app| {
        app.first.create_series("invoices", "A{yyyy}{seq:6}", json!({})).await.expect(201);
        let body = r#"{"document_date":"2026-01-01"}"#;
        let address = app.base.strip_prefix("http://").unwrap().to_owned();
        let hang_ups = all((0..300_u64).map(|n| {
            let (address, key) = (address.clone(), app.first.key.clone());
            async move {
                let mut stream = TcpStream::connect(&address).await.unwrap();
                let request = format!(
                    "POST /v1/series/invoices/numbers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nIdempotency-Key: k{n}\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                // Some never finish their request; the others leave within the time that an issue takes.
                let sent = if n % 10 == 0 { request.len() / 2 } else { request.len() };
                stream.write_all(&request.as_bytes()[..sent]).await.unwrap();
                tokio::time::sleep(Duration::from_micros(n * 97 % 12_000)).await;
            }
        }));
        hang_ups.await;
        let replies = all((0..300).map(|n| {
            let api = app.first.clone();
            async move { api.issue("invoices", &format!("k{n}"), json!({"document_date": "2026-01-01"})).await.expect(201) }
        }))
        .await;
        let before = replies.iter().filter(|reply| reply.replayed()).count();
        assert!(before > 0, "some requests ran to their end although nobody waited");
        crate::together::contiguous(replies.iter().map(testkit::Reply::value).collect(), 1);
    });
}

/// The guard of every pool: a connection that comes back inside a transaction (as a `begin` dropped half way
/// leaves it) is rolled back before anybody gets it.
#[test]
fn a_connection_given_back_inside_a_transaction_is_clean() {
    testkit::prove(async |app| {
        let pool = store::pool(&app.url("seriatim_app", "shard_1"), 1).unwrap();
        for poison in ["begin; select 1", "begin; select 1/0", "begin; savepoint s; select nothing from nowhere"] {
            let mut poisoned = pool.acquire().await.unwrap();
            let _ = sqlx::raw_sql(poison).execute(&mut *poisoned).await;
            drop(poisoned);
            let mut next = pool.acquire().await.unwrap();
            // In a transaction, two statements have one now().
            let now = "select now()::text";
            let first: String = sqlx::query_scalar(now).fetch_one(&mut *next).await.unwrap();
            let second: String = sqlx::query_scalar(now).fetch_one(&mut *next).await.unwrap();
            assert_ne!(first, second, "{poison}: the next borrower is inside it");
        }
        pool.close().await;
    });
}
