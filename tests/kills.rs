//! Processes are killed under load: gateways, the server, its backends. Clients write down what they ask and
//! hear, and the checker holds that against what is there afterwards.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use checker::Verdict;
use serde_json::json;
use testkit::{Api, App, Ask, Journal, Process, Setup, Victim, prove_with};

use crate::together::all;

const CLIENTS: u64 = 64;
/// Each issues at least so many numbers.
const EACH: usize = 200;
const SERIES: [&str; 4] = ["a", "b", "c", "d"];
const GATEWAYS: usize = 3;
const GATEWAY_KILLS: usize = 20;
const SERVER_KILLS: usize = 5;
/// Between two kills there is time to be at work again.
const PAUSE: Duration = Duration::from_millis(350);

/// Where gateways listen now; a new one has a new port.
type Bases = Arc<RwLock<Vec<String>>>;

#[test]
fn gateways_and_servers_are_killed_under_load() {
    prove_with(Setup { own_server: true, ..Setup::default() }, async |app| {
        for name in SERIES {
            app.first.create_series(name, &format!("{name}-{{seq:6}}"), json!({"reset": "never"})).await.expect(201);
        }
        let journal = Arc::new(Journal::begin("kills"));
        let mut gateways = Vec::new();
        for _ in 0..GATEWAYS {
            gateways.push(app.gateway_process().await);
        }
        let bases: Bases = Arc::new(RwLock::new(gateways.iter().map(|gateway| gateway.base.clone()).collect()));
        let (calm, issued) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let tenant = app.first_id.to_string();
        let clients = all((0..CLIENTS).map(|client| {
            let (api, tenant, journal) = (app.first.clone(), tenant.clone(), journal.clone());
            let (bases, calm, issued) = (bases.clone(), calm.clone(), issued.clone());
            async move { work(client, &api, &tenant, &journal, &bases, &calm, &issued).await }
        }));
        let trouble = async {
            kill(app, &journal, &mut gateways, &bases, &issued).await;
            calm.store(true, Ordering::SeqCst);
        };
        tokio::join!(clients, trouble);
        for gateway in gateways {
            assert_eq!(gateway.stop().await, Some(0), "what is left ends in order");
        }
        let journal = Arc::into_inner(journal).expect("the clients are done");
        assert_eq!(journal.faults(), GATEWAY_KILLS + SERVER_KILLS);
        let report = journal.check(&app.superuser_shards()).await;
        assert_eq!(report.verdict, Verdict::Right, "{report}");
        println!("{} numbers; {report}", issued.load(Ordering::SeqCst));
    });
}

/// Issues number after number, each key until it is answered, until there is calm and it has had its share.
async fn work(client: u64, api: &Api, tenant: &str, journal: &Journal, bases: &Bases, calm: &AtomicBool, issued: &AtomicU64) {
    let mut asked = 0_usize;
    while !calm.load(Ordering::SeqCst) || asked < EACH {
        asked += 1;
        let series = SERIES[(usize::try_from(client).unwrap() + asked) % SERIES.len()];
        let (key, document_ref) = (format!("k{client}-{asked}"), format!("order-{client}-{asked}"));
        let body = json!({"document_ref": document_ref});
        let mut ask = Ask { tenant: tenant.to_owned(), series: series.to_owned(), key, document_ref, client, attempt: 0 };
        loop {
            ask.attempt += 1;
            let base = {
                let bases = bases.read().unwrap_or_else(PoisonError::into_inner);
                bases[(asked + usize::try_from(ask.attempt).unwrap()) % GATEWAYS].clone()
            };
            if journal.issue(&api.at(&base), &ask, &body).await.is_some() {
                break;
            }
            assert!(ask.attempt < 600, "{} has no number after {} attempts", ask.key, ask.attempt);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        issued.fetch_add(1, Ordering::SeqCst);
    }
}

/// Kills, one after the other, and each time waits until numbers are issued again.
async fn kill(app: &App, journal: &Journal, gateways: &mut Vec<Process>, bases: &Bases, issued: &AtomicU64) {
    let every = GATEWAY_KILLS / SERVER_KILLS;
    for n in 0..GATEWAY_KILLS {
        tokio::time::sleep(PAUSE).await;
        let from = journal.now();
        let victim = n % GATEWAYS;
        // Killed by order, or by itself at a named point of its next transactions.
        gateways.remove(victim).kill().await;
        let fault = ["after_write:9", "after_commit:9"][n / 4 % 2];
        let doomed = n % 4 == 3 && n + GATEWAYS < GATEWAY_KILLS;
        let fresh = if doomed { app.doomed_gateway(fault).await } else { app.gateway_process().await };
        bases.write().unwrap_or_else(PoisonError::into_inner)[victim].clone_from(&fresh.base);
        gateways.insert(victim, fresh);
        journal.fault(format!("gateway {victim} killed"), from);
        if n % every == every - 1 {
            let from = journal.now();
            let what = app.kill_server([Victim::Postmaster, Victim::All, Victim::Backend][n / every % 3]).await;
            journal.fault(what, from);
        }
        progress(issued).await;
    }
}

/// Waits until numbers are issued again.
async fn progress(issued: &AtomicU64) {
    let before = issued.load(Ordering::SeqCst);
    let again = async {
        while issued.load(Ordering::SeqCst) < before + CLIENTS {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.expect("numbers are issued again");
}
