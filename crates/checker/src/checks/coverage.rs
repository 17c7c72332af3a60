//! Coverage: a fault that struck while nothing was in flight has shown nothing.

use crate::{Observed, history::Attempt};

/// Each fault with the number of attempts that were in flight when it struck.
pub(crate) fn check(observed: &Observed) -> Vec<(String, usize)> {
    let flights = flights(&observed.history);
    let mut starts: Vec<i64> = flights.iter().map(|flight| flight.0).collect();
    let mut ends: Vec<i64> = flights.iter().map(|flight| flight.1).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let met = |at: i64| starts.partition_point(|start| *start <= at) - ends.partition_point(|end| *end < at);
    observed.faults.iter().map(|fault| (fault.name.clone(), met(fault.from))).collect()
}

/// From when to when each attempt is known to have been in flight.
///
/// A client asks one thing at a time, so an attempt whose end nobody saw was over when its client asked the
/// next. The last of a client has no such bound; it counts for the moment at which it was sent and no later,
/// or the attempts of a client that was killed would cover every fault that came afterwards.
fn flights(history: &[Attempt]) -> Vec<(i64, i64)> {
    let mut by_client: Vec<&Attempt> = history.iter().collect();
    by_client.sort_by_key(|attempt| (attempt.client, attempt.invoked, attempt.id));
    let next = |place: usize| by_client.get(place + 1).filter(|next| next.client == by_client[place].client);
    let end = |place: usize, attempt: &Attempt| {
        attempt.completed.unwrap_or_else(|| next(place).map_or(attempt.invoked, |next| next.invoked))
    };
    by_client.iter().enumerate().map(|(place, attempt)| (attempt.invoked, end(place, attempt))).collect()
}
