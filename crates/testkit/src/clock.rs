//! A clock that the test moves.

use std::sync::{Arc, Mutex, PoisonError};

use domain::clock::Clock;
use jiff::{SignedDuration, Timestamp};

/// Stands still until it is set.
#[derive(Clone, Debug)]
pub struct TestClock(Arc<Mutex<Timestamp>>);

impl TestClock {
    /// A clock that shows this instant, RFC 3339.
    pub fn at(instant: &str) -> Self {
        Self(Arc::new(Mutex::new(instant.parse().expect("an instant as RFC 3339"))))
    }

    /// Moves it on by so many seconds.
    pub fn advance(&self, seconds: i64) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.checked_add(SignedDuration::from_secs(seconds)).expect("an instant that exists");
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
