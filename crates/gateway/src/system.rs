//! The machine's clock and randomness, asked for in this one place; everything else takes them as arguments.

use std::fmt;

use domain::clock::Clock;
use jiff::Timestamp;
use uuid::Uuid;

/// Where random bytes come from.
pub trait Entropy: Send + Sync {
    /// Fills the slice with bytes that nobody can guess.
    fn fill(&self, bytes: &mut [u8]);
}

/// The system's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    fn instant(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The system's source of randomness.
#[derive(Clone, Copy, Debug)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system gives random bytes; without them no secret can be made");
    }
}

impl fmt::Debug for dyn Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

/// A new id (UUID version 7, RFC 9562 §5.7): ordered by time, unguessable in the rest.
pub fn uuid(at: Timestamp, entropy: &dyn Entropy) -> Uuid {
    let mut random = [0; 10];
    entropy.fill(&mut random);
    let millis = u64::try_from(at.as_millisecond()).unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}
