//! Trying again: what, how often and how long.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::time::{Instant, error::Elapsed};

use crate::{Error, Stop};

/// How long an operation goes on.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// No attempt begins later than this.
    pub whole: Duration,
    /// An attempt that takes longer is given up: the other end may be gone without a word, and nothing but a
    /// clock can tell that from a slow one.
    pub attempt: Duration,
}

impl Patience {
    /// Both limits, in seconds.
    pub const fn seconds(whole: u64, attempt: u64) -> Self {
        Self { whole: Duration::from_secs(whole), attempt: Duration::from_secs(attempt) }
    }
}

/// Runs an operation until it succeeds, is refused, or has failed for as long as `patience` allows.
///
/// `attempt` is a whole transaction that is safe to repeat: it carries its idempotency key, or changes nothing
/// the second time.
/// One that is given up is dropped: its connection is rolled back, or closed if it does not answer, before
/// anybody else gets it. Whether it committed is unknown until another attempt finds out.
pub async fn repeat<T, Attempt>(patience: Patience, attempt: impl FnMut() -> Attempt) -> Result<T, Stop>
where
    Attempt: Future<Output = Result<T, Stop>>,
{
    attempts(patience, attempt, |late| Error::Unknown(late.into())).await
}

/// The same for what only reads, so that nothing about it can be unknown.
pub async fn read<T, Attempt>(patience: Patience, attempt: impl FnMut() -> Attempt) -> Result<T, Stop>
where
    Attempt: Future<Output = Result<T, Stop>>,
{
    attempts(patience, attempt, |late| Error::Unavailable(late.into())).await
}

async fn attempts<T, Attempt>(
    patience: Patience,
    mut attempt: impl FnMut() -> Attempt,
    given_up: fn(Elapsed) -> Error,
) -> Result<T, Stop>
where
    Attempt: Future<Output = Result<T, Stop>>,
{
    let mut retry = Retry::within(patience.whole);
    loop {
        let limit = patience.attempt.min(retry.left());
        let failure = match tokio::time::timeout(limit, attempt()).await {
            Ok(Err(Stop::Failure(failure))) => failure,
            Ok(done) => return done,
            Err(late) => given_up(late),
        };
        retry.again(failure).await?;
    }
}

/// Decides after each failed attempt whether the whole transaction is run again.
#[derive(Debug)]
struct Retry {
    deadline: Instant,
    attempt: u32,
    lost: u32,
    unknown: bool,
}

/// A lost connection is worth a few attempts: the pool may hold several that a restart has killed.
pub const LOST: u32 = 12;

impl Retry {
    /// Attempts until this much time has passed.
    fn within(patience: Duration) -> Self {
        Self { deadline: Instant::now() + patience, attempt: 0, lost: 0, unknown: false }
    }

    /// The time that is left, and never so little that an attempt could not end.
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(500))
    }

    /// Waits a little if another attempt makes sense, otherwise hands the error back.
    ///
    /// Once an outcome is unknown, only another attempt can find it out, so it stays
    /// [`Error::Unknown`] until one succeeds.
    async fn again(&mut self, error: Error) -> Result<(), Error> {
        self.attempt += 1;
        self.lost += u32::from(matches!(error, Error::Unavailable(_) | Error::Unknown(_)));
        self.unknown |= matches!(error, Error::Unknown(_));
        let hopeless = self.lost > LOST || matches!(error, Error::Corrupt(_) | Error::Failed(_));
        let pause = pause(self.attempt);
        if hopeless || Instant::now() + pause >= self.deadline {
            return Err(if self.unknown { Error::Unknown(error.into()) } else { error });
        }
        tracing::debug!(attempt = self.attempt, error = %error, "running the transaction again");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

/// How long to wait after so many failed attempts in a row. Full jitter: somewhere between nothing and a bound that
/// doubles, 4 ms to 128 ms. The noise only spreads waiters out, so the hasher's random keys are random enough.
pub fn pause(attempts: u32) -> Duration {
    let bound = 4_000_u64 << attempts.min(5);
    Duration::from_micros(RandomState::new().hash_one(attempts) % bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> Error {
        Error::Busy("in the way".into())
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_at_the_deadline() {
        let mut retry = Retry::within(Duration::from_secs(2));
        let begun = Instant::now();
        while retry.again(busy()).await.is_ok() {}
        let spent = begun.elapsed();
        assert!(spent > Duration::from_millis(1_800) && spent < Duration::from_secs(2), "{spent:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_never_ends_is_given_up() {
        let mut attempts = 0;
        let begun = Instant::now();
        let done = repeat(Patience::seconds(8, 3), || {
            attempts += 1;
            std::future::pending::<Result<(), Stop>>()
        });
        let done = done.await;
        assert!(matches!(done, Err(Stop::Failure(Error::Unknown(_)))), "{done:?}");
        assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
        assert_eq!(attempts, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_statement_is_not_tried_again() {
        let mut retry = Retry::within(Duration::from_secs(2));
        assert!(retry.again(Error::Failed("no such column".into())).await.is_err());
        assert!(retry.again(Error::corrupt("a state")).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_outcome_stays_unknown() {
        let mut retry = Retry::within(Duration::from_secs(2));
        assert!(retry.again(Error::Unknown("cut".into())).await.is_ok());
        let last = loop {
            if let Err(error) = retry.again(busy()).await {
                break error;
            }
        };
        assert!(matches!(last, Error::Unknown(_)), "{last:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn lost_connections_are_tried_a_few_times() {
        let mut retry = Retry::within(Duration::from_mins(1));
        for _ in 0..LOST {
            assert!(retry.again(Error::Unavailable("gone".into())).await.is_ok());
        }
        assert!(retry.again(Error::Unavailable("gone".into())).await.is_err());
    }
}
