//! Waiting with a deadline that only a failure meets.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use informer::{Informer, Status, View};

/// Longer than anything takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Waits for something that is about to happen.
///
/// # Panics
///
/// When it does not happen.
pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: not within {} s", DEADLINE.as_secs()),
    }
}

/// Waits until an informer has a status for which `is_it` is true.
///
/// # Panics
///
/// When it has none.
pub async fn status<T: View>(informer: &Informer<T>, is_it: impl Fn(&Status) -> bool) -> Status {
    let mut changes = pin!(informer.status_changes());
    let mut seen = Vec::new();
    let wanted = async {
        loop {
            let status = changes.next().await.expect("the informer has not ended");
            if is_it(&status) {
                return status;
            }
            seen.push(status.to_string());
        }
    };
    match tokio::time::timeout(DEADLINE, wanted).await {
        Ok(status) => status,
        Err(_) => panic!("the status did not come; these did: {seen:#?}"),
    }
}
