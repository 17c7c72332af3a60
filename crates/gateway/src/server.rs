//! The accept loop: our own, so that a slow head has a deadline and a shutdown has an end.

use std::{future::Future, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Exposition, app::Gateway, routes};

/// How long a connection may take over the head of a request, or wait for the next one.
const HEAD: Duration = Duration::from_secs(30);
/// The most connections at once; more wait in the system's queue.
const CONNECTIONS: usize = 4_096;

/// Serves until `shutdown` completes, then takes no new work, lets what runs end within `grace`, and returns.
///
/// True if everything ended in time.
pub async fn serve(gateway: Gateway, listener: TcpListener, shutdown: impl Future<Output = ()>, grace: Duration) -> bool {
    let ending = Ending { tasks: &gateway.tasks, draining: &gateway.draining, cutting: &gateway.cutting, grace };
    accept_all(routes::router(&gateway), listener, shutdown, ending).await
}

/// Serves nothing but `/metrics` and `/healthz`: for a process that has no other HTTP.
pub async fn serve_metrics(metrics: Exposition, listener: TcpListener, shutdown: impl Future<Output = ()>) {
    let (tasks, draining) = (TaskTracker::new(), CancellationToken::new());
    let ending = Ending { tasks: &tasks, draining: &draining, cutting: &draining, grace: Duration::from_secs(2) };
    accept_all(routes::metrics_alone(metrics), listener, shutdown, ending).await;
}

/// What there is to do at the end.
struct Ending<'a> {
    /// What is waited for.
    tasks: &'a TaskTracker,
    /// Cancelled at once: nothing new is begun.
    draining: &'a CancellationToken,
    /// Cancelled when most of the grace time is over: answers that are still being written are cut off.
    cutting: &'a CancellationToken,
    grace: Duration,
}

async fn accept_all(
    router: Router,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
    Ending { tasks, draining, cutting, grace }: Ending<'_>,
) -> bool {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, place)) = accepted else { continue };
        let service = TowerToHyperService::new(router.clone());
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    draining.cancel();
    tasks.close();
    let ended = async {
        graceful.shutdown().await;
        tasks.wait().await;
    };
    tokio::pin!(ended);
    if tokio::time::timeout(grace.mul_f32(0.8), &mut ended).await.is_ok() {
        return true;
    }
    cutting.cancel();
    tokio::time::timeout(grace.mul_f32(0.2), ended).await.is_ok()
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // An answer is one small packet: waiting to fill it would cost 40 ms.
            let _ = stream.set_nodelay(true);
            Some((stream, place))
        }
        Err(error) => {
            // Out of file descriptors, mostly: better a pause than a loop at full speed.
            tracing::warn!(%error, "can't accept a connection");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}
