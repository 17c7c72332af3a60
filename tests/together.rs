//! Doing things at once.

use std::future::Future;

use tokio::task::JoinSet;

/// Runs them all at the same time; the results in their order.
pub(crate) async fn all<T: Send + 'static>(work: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>) -> Vec<T> {
    let mut set = JoinSet::new();
    for (place, work) in work.into_iter().enumerate() {
        set.spawn(async move { (place, work.await) });
    }
    let mut done = set.join_all().await;
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Fails unless these are exactly the values from `first` on, in any order.
#[track_caller]
pub(crate) fn contiguous(mut values: Vec<i64>, first: i64) {
    values.sort_unstable();
    let last = first + i64::try_from(values.len()).unwrap();
    assert_eq!(values, (first..last).collect::<Vec<_>>());
}
