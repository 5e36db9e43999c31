//! Waiting for first contents, and what to say when they do not come.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use informer_core::reflector::Status;

use crate::resource::ResourceType;
use crate::shared::Core;

/// Some informers did not get their first content.
#[derive(Debug, Clone)]
pub struct NotSynced {
    missing: Vec<Missing>,
}

/// One informer that has no content yet.
#[derive(Debug, Clone)]
pub struct Missing {
    /// Of what.
    pub resource: ResourceType,
    /// Where it stands: the reason why.
    pub status: Status,
    /// Whether it was started at all.
    pub started: bool,
}

impl NotSynced {
    /// The informers that are missing, and where they stand.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Whether the server has denied one of them ([`Status::Denied`]).
    pub fn is_denied(&self) -> bool {
        self.missing.iter().any(|missing| matches!(missing.status, Status::Denied { .. }))
    }
}

impl std::error::Error for NotSynced {}

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not synced: ")?;
        for (index, missing) in self.missing.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            match missing.started {
                true => write!(f, "{separator}{} ({})", missing.resource, missing.status)?,
                false => write!(f, "{separator}{} (not started)", missing.resource)?,
            }
        }
        Ok(())
    }
}

/// Waits for all of them at once.
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
    let missing: Vec<_> = informers
        .iter()
        .filter(|informer| !informer.progress.is_synced())
        .map(|informer| Missing {
            resource: informer.resource.clone(),
            status: informer.progress.status().borrow().clone(),
            started: informer.is_started(),
        })
        .collect();
    // The last one may have arrived at the limit.
    if missing.is_empty() { Ok(()) } else { Err(NotSynced { missing }) }
}

/// Whether it has its content, once that is known for good.
async fn synced(informer: &Core, give_up_when_denied: bool) -> bool {
    let mut sync = informer.progress.sync();
    let mut status = informer.progress.status();
    let hopeless = status.wait_for(|status| match status {
        Status::Stopped => true,
        Status::Denied { .. } => give_up_when_denied,
        _ => false,
    });
    tokio::select! {
        biased;
        synced = sync.wait_for(|synced| *synced) => synced.is_ok(),
        _ = hopeless => false,
    }
}
