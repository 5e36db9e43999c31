//! Where a cache stands, for those who watch or wait: status, sync, version, reports.

use std::collections::HashMap;
use std::sync::Mutex;

use informer_core::reflector::{Report, Status};
use informer_core::{ResourceVersion, SourceId};
use tokio::sync::{broadcast, watch};

use super::lock;

/// The observable state of one cache.
pub(crate) struct Progress {
    /// Per source; the status of the whole is the one that most needs a look.
    sources: Mutex<HashMap<SourceId, Status>>,
    status: watch::Sender<Status>,
    synced: watch::Sender<bool>,
    version: watch::Sender<ResourceVersion>,
    reports: broadcast::Sender<Report>,
}

/// Reports are for observers: one that is slower than this many misses some, and is told so.
const REPORTS: usize = 256;

impl Default for Progress {
    fn default() -> Self {
        Self {
            sources: Mutex::default(),
            status: watch::Sender::new(Status::Connecting),
            synced: watch::Sender::new(false),
            version: watch::Sender::new(ResourceVersion::UNSET),
            reports: broadcast::Sender::new(REPORTS),
        }
    }
}

impl Progress {
    pub(crate) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(crate) fn sync(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    pub(crate) fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Whether the content is being fetched.
    pub(crate) fn is_listing(&self) -> bool {
        matches!(*self.status.borrow(), Status::Connecting | Status::Syncing { .. })
    }

    pub(crate) fn version(&self) -> watch::Receiver<ResourceVersion> {
        self.version.subscribe()
    }

    pub(crate) fn reports(&self) -> broadcast::Receiver<Report> {
        self.reports.subscribe()
    }

    pub(super) fn source_added(&self, source: SourceId) {
        self.source_status(source, Status::Connecting);
    }

    pub(super) fn source_removed(&self, source: SourceId) {
        lock(&self.sources).remove(&source);
        self.publish_status();
    }

    pub(super) fn source_status(&self, source: SourceId, status: Status) {
        lock(&self.sources).insert(source, status);
        self.publish_status();
    }

    pub(super) fn synced(&self) {
        self.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
    }

    pub(super) fn version_reached(&self, version: ResourceVersion) {
        self.version.send_if_modified(|current| {
            let changed = *current != version;
            *current = version;
            changed
        });
    }

    pub(super) fn report(&self, report: Report) {
        // Nobody may be listening.
        let _ = self.reports.send(report);
    }

    pub(super) fn stopped(&self) {
        self.status.send_if_modified(|status| std::mem::replace(status, Status::Stopped) != Status::Stopped);
    }

    fn publish_status(&self) {
        let Some(whole) = whole(&lock(&self.sources)) else { return };
        self.status.send_if_modified(|status| {
            let changed = *status != whole && *status != Status::Stopped;
            if changed {
                *status = whole;
            }
            changed
        });
    }
}

/// The status that most needs a look; of several that are syncing, their sum.
fn whole(sources: &HashMap<SourceId, Status>) -> Option<Status> {
    let worst = sources.values().max_by_key(|status| match status {
        Status::Stopped => 0,
        Status::Live { .. } => 1,
        Status::Syncing { .. } => 2,
        Status::Connecting => 3,
        Status::Retrying { .. } => 4,
        Status::Denied { .. } => 5,
    })?;
    Some(match worst {
        Status::Syncing { .. } => {
            let received = sources.values().map(|status| match status {
                Status::Syncing { received } => *received,
                _ => 0,
            });
            Status::Syncing { received: received.sum() }
        }
        other => other.clone(),
    })
}
