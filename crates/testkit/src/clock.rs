//! A clock that the test moves.

use std::sync::{Arc, Mutex, PoisonError};

use domain::clock::Clock;
use jiff::Timestamp;

/// Stands still until it is set.
#[derive(Clone, Debug)]
pub struct TestClock(Arc<Mutex<Timestamp>>);

impl TestClock {
    /// A clock that shows this instant, RFC 3339.
    pub fn at(instant: &str) -> Self {
        Self(Arc::new(Mutex::new(instant.parse().expect("an instant as RFC 3339"))))
    }

    /// Moves it.
    pub fn set(&self, instant: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = instant.parse().expect("an instant as RFC 3339");
    }
}

impl Clock for TestClock {
    fn instant(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
