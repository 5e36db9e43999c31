//! Branches of the loop's `select!` that wait for ever while there is nothing to wait for.

use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// The result of the running work; pending without any.
pub(super) async fn in_flight<T>(work: &mut Option<BoxFuture<'_, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// At that time; never without one.
pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
