//! The private server of `dev`: started again when it ends without being asked.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cluster::Cluster;
use tokio::sync::watch;

use crate::{Failure, dev::say};

/// How often the server's process is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// So many ends within [`SPAN`] are no accident any more.
const MOST: usize = 5;
const SPAN: Duration = Duration::from_mins(1);

/// A cluster that is kept running.
pub(crate) struct Kept {
    /// None once it was stopped.
    cluster: Arc<Mutex<Option<Cluster>>>,
    pid: watch::Sender<u32>,
}

impl Kept {
    pub(crate) fn new(cluster: Cluster) -> Self {
        let pid = watch::Sender::new(cluster.pid());
        Self { cluster: Arc::new(Mutex::new(Some(cluster))), pid }
    }

    /// The server's process id, and each one that follows it.
    pub(crate) fn pid(&self) -> watch::Receiver<u32> {
        self.pid.subscribe()
    }

    /// Starts the server again whenever it has ended. Completes only when that is no use any more, with the reason.
    pub(crate) async fn watch(&self) -> Failure {
        match self.keep().await {
            Ok(never) => match never {},
            Err(failure) => failure,
        }
    }

    async fn keep(&self) -> Result<std::convert::Infallible, Failure> {
        let mut ends: Vec<Instant> = Vec::new();
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(how) = self.with(Cluster::ended).transpose()?.flatten() else { continue };
            let now = Instant::now();
            ends.retain(|end| now.duration_since(*end) < SPAN);
            ends.push(now);
            if ends.len() >= MOST {
                let log = self.with(|cluster| cluster.log()).unwrap_or_default();
                return Err(format!(
                    "PostgreSQL ended {MOST} times within a minute, so it is not started again ({how}); the end of its log:\n{log}"
                )
                .into());
            }
            say(&format!("PostgreSQL ended without being asked ({how}); starting it again"));
            let cluster = self.cluster.clone();
            let revive = move || lock(&cluster).as_mut().map(|cluster| cluster.revive().map(|_| cluster.pid()));
            match tokio::task::spawn_blocking(revive).await?.transpose() {
                Ok(Some(pid)) => drop(self.pid.send_replace(pid)),
                Ok(None) => {}
                // It may have been killed again while it started; that counts as one more end.
                Err(cluster::Error::NotReady(_)) if ends.len() + 1 < MOST => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Stops the server and waits for it, and for a start that is under way.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        // Waits, which must not hold up other tasks.
        Ok(tokio::task::spawn_blocking(move || drop(lock(&self.cluster).take())).await?)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Cluster) -> T) -> Option<T> {
        lock(&self.cluster).as_mut().map(work)
    }
}

/// A panic elsewhere leaves a cluster that can still be stopped.
fn lock(cluster: &Mutex<Option<Cluster>>) -> MutexGuard<'_, Option<Cluster>> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}
