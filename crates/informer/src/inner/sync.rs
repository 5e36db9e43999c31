//! Waiting until informers are synced.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use informer_core::reflector::Status;

use crate::inner::Core;
use crate::options::resource::ResourceType;
use crate::options::selection::Selection;

/// Some informers are not synced.
///
/// ```
/// # async fn example(factory: informer::SharedInformerFactory) {
/// use std::time::Duration;
///
/// if let Err(not_synced) = factory.wait_for_sync(Duration::from_secs(30)).await {
///     // not synced: secrets.v1 (all namespaces): denied: Forbidden ...
///     eprintln!("{not_synced}");
///     for missing in not_synced.missing() {
///         println!("{} in {}: {}", missing.resource, missing.selection, missing.status);
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct NotSynced {
    missing: Vec<Missing>,
}

/// One informer that is not synced.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Missing {
    /// Its resource.
    pub resource: ResourceType,
    /// Its selection.
    pub selection: Selection,
    /// The status: why it is not synced.
    pub status: Status,
}

impl NotSynced {
    /// The informers that are not synced, with their status.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Whether the server has denied one of them ([`Status::Denied`]).
    pub fn is_denied(&self) -> bool {
        self.missing.iter().any(|missing| matches!(missing.status, Status::Denied { .. }))
    }

    /// Whether one of them was not started ([`Status::NotStarted`]).
    pub fn is_not_started(&self) -> bool {
        self.missing.iter().any(|missing| missing.status == Status::NotStarted)
    }
}

impl std::error::Error for NotSynced {}

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not synced: ")?;
        for (index, missing) in self.missing.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            let Missing { resource, selection, status } = missing;
            write!(f, "{separator}{resource} ({selection}): {status}")?;
        }
        Ok(())
    }
}

/// Waits for all informers at once. An informer that was not started is an error at once, because nothing may ever start
/// it.
pub(crate) async fn wait_for_all_started(
    informers: &[Arc<Core>],
    limit: Duration,
    give_up_when_denied: bool,
) -> Result<(), NotSynced> {
    if informers.iter().all(|informer| informer.is_started() || informer.life.is_stopped()) {
        return wait_for_all(informers, limit, give_up_when_denied).await;
    }
    Err(NotSynced { missing: missing(informers) })
}

/// Waits for all informers at once.
pub(crate) async fn wait_for_all(
    informers: &[Arc<Core>],
    limit: Duration,
    give_up_when_denied: bool,
) -> Result<(), NotSynced> {
    let mut waits: FuturesUnordered<_> =
        informers.iter().map(|informer| synced(informer, give_up_when_denied)).collect();
    let all = async {
        while let Some(synced) = waits.next().await {
            if !synced {
                return false;
            }
        }
        true
    };
    if tokio::time::timeout(limit, all).await.unwrap_or(false) {
        return Ok(());
    }
    let missing = missing(informers);
    // The last one may have arrived at the limit.
    if missing.is_empty() { Ok(()) } else { Err(NotSynced { missing }) }
}

fn missing(informers: &[Arc<Core>]) -> Vec<Missing> {
    let missing = informers.iter().filter(|informer| !informer.progress.is_synced());
    let missing = missing.map(|informer| Missing {
        resource: informer.resource.clone(),
        selection: informer.selection.clone(),
        status: informer.progress.status().borrow().clone(),
    });
    missing.collect()
}

/// Waits until the informer is synced. Returns `false` when it cannot become synced any more.
async fn synced(informer: &Core, give_up_when_denied: bool) -> bool {
    let is_hopeless = |status: &Status| match status {
        Status::Stopped => true,
        Status::Denied { .. } => give_up_when_denied,
        _ => false,
    };
    informer.progress.until(|status, is_synced| is_synced || is_hopeless(status)).await;
    informer.progress.is_synced()
}
