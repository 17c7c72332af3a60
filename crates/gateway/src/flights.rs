//! One flight per key: whoever asks for the same thing while the first still runs in this gateway waits here,
//! holding no connection. Across gateways the database makes them wait.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::refusal::Refusal;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// How long the second waits for the first.
const WAIT: Duration = Duration::from_secs(2);

pub(crate) struct Flights<Key>(Mutex<HashMap<Key, Arc<Turn<()>>>>);

impl<Key> Default for Flights<Key> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// Held while what has this key runs.
pub(crate) struct Flight<'a, Key: Eq + Hash> {
    flights: &'a Flights<Key>,
    key: Key,
    turn: Option<OwnedMutexGuard<()>>,
}

impl<Key: Clone + Eq + Hash> Flights<Key> {
    /// Waits until nothing else with this key runs here.
    pub(crate) async fn board(&self, key: Key) -> Result<Flight<'_, Key>, Refusal> {
        let turn = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default().clone();
        // Made before waiting, so that one who gives up tidies up as well.
        let mut flight = Flight { flights: self, key, turn: None };
        let boarded = tokio::time::timeout(WAIT, turn.lock_owned()).await;
        flight.turn = Some(boarded.map_err(|_| Refusal::KeyInProgress)?);
        Ok(flight)
    }
}

impl<Key: Eq + Hash> Drop for Flight<'_, Key> {
    fn drop(&mut self) {
        drop(self.turn.take());
        let mut flights = self.flights.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One reference is the map's own: nobody else flies or waits under this key.
        if flights.get(&self.key).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            flights.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_second_waits_and_then_gives_up() {
        let flights = Flights::default();
        let first = flights.board("k").await.unwrap();
        assert!(flights.board("other").await.is_ok());
        assert_eq!(flights.board("k").await.err(), Some(Refusal::KeyInProgress));
        drop(first);
        assert!(flights.board("k").await.is_ok());
        assert!(flights.0.lock().unwrap().is_empty(), "nothing is left behind");
    }
}
