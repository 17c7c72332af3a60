//! One flight per idempotency key: whoever repeats a key while its first request still runs in this gateway
//! waits here, holding no connection. Across gateways the database makes them wait.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::refusal::Refusal;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// How long a repeated request waits for the first one.
const WAIT: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct Flights(Mutex<HashMap<String, Arc<Turn<()>>>>);

/// Held while a request with its key runs.
pub(crate) struct Flight<'a> {
    flights: &'a Flights,
    scope: String,
    turn: Option<OwnedMutexGuard<()>>,
}

impl Flights {
    /// Waits until no other request with this scope and key runs here.
    pub(crate) async fn board(&self, scope: String) -> Result<Flight<'_>, Refusal> {
        let turn = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(scope.clone()).or_default().clone();
        // Made before waiting, so that one who gives up tidies up as well.
        let mut flight = Flight { flights: self, scope, turn: None };
        let boarded = tokio::time::timeout(WAIT, turn.lock_owned()).await;
        flight.turn = Some(boarded.map_err(|_| Refusal::KeyInProgress)?);
        Ok(flight)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        drop(self.turn.take());
        let mut flights = self.flights.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One reference is the map's own: nobody else flies or waits under this key.
        if flights.get(&self.scope).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            flights.remove(&self.scope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_second_waits_and_then_gives_up() {
        let flights = Flights::default();
        let first = flights.board("k".into()).await.unwrap();
        assert!(flights.board("other".into()).await.is_ok());
        assert_eq!(flights.board("k".into()).await.err(), Some(Refusal::KeyInProgress));
        drop(first);
        assert!(flights.board("k".into()).await.is_ok());
        assert!(flights.0.lock().unwrap().is_empty(), "nothing is left behind");
    }
}
