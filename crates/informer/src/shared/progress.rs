//! Where a cache stands, for those who watch or wait: status, sync, version, reports.

use std::collections::HashMap;
use std::sync::Mutex;

use informer_core::reflector::{Report, Status};
use informer_core::{Cache, ResourceVersion, SourceId};
use tokio::sync::{broadcast, watch};

use super::lock;

/// The observable state of one cache.
pub(crate) struct Progress {
    /// Per source; the status of the whole is the one that most needs a look.
    sources: Mutex<HashMap<SourceId, Status>>,
    status: watch::Sender<Status>,
    synced: watch::Sender<bool>,
    version: watch::Sender<ResourceVersion>,
    /// `None` once nothing more will be reported.
    reports: Mutex<Option<broadcast::Sender<Report>>>,
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
            reports: Mutex::new(Some(broadcast::Sender::new(REPORTS))),
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

    /// Whether content is being fetched for some source.
    pub(crate) fn is_listing(&self) -> bool {
        let is_listing = |status: &Status| matches!(status, Status::Connecting | Status::Syncing { .. });
        lock(&self.sources).values().any(is_listing)
    }

    pub(crate) fn version(&self) -> watch::Receiver<ResourceVersion> {
        self.version.subscribe()
    }

    /// Ends when the informer stops.
    pub(crate) fn reports(&self) -> broadcast::Receiver<Report> {
        match &*lock(&self.reports) {
            Some(reports) => reports.subscribe(),
            None => broadcast::Sender::new(1).subscribe(),
        }
    }

    pub(super) fn source_added(&self, source: SourceId) {
        lock(&self.sources).insert(source, Status::Connecting);
        self.publish_status();
    }

    pub(super) fn source_removed(&self, source: SourceId) {
        lock(&self.sources).remove(&source);
        self.publish_status();
    }

    /// What a source that was removed still says is of no interest.
    pub(super) fn source_status(&self, source: SourceId, status: Status) {
        if let Some(entry) = lock(&self.sources).get_mut(&source) {
            *entry = status;
        }
        self.publish_status();
    }

    pub(super) fn synced(&self) {
        self.synced.send_if_modified(|synced| !std::mem::replace(synced, true));
    }

    /// Says how far the cache is. It is asked here, so that of two who say it at once none says something older.
    pub(super) fn version_reached(&self, cache: &Cache) {
        self.version.send_if_modified(|current| {
            let reached = cache.resource_version();
            let changed = *current != reached;
            *current = reached;
            changed
        });
    }

    pub(super) fn report(&self, report: Report) {
        // Sending wakes: not under a lock.
        let reports = lock(&self.reports).clone();
        if let Some(reports) = reports {
            // Nobody may be listening.
            let _ = reports.send(report);
        }
    }

    pub(super) fn stopped(&self) {
        self.status.send_if_modified(|status| std::mem::replace(status, Status::Stopped) != Status::Stopped);
        let reports = lock(&self.reports).take();
        drop(reports);
    }

    fn publish_status(&self) {
        self.status.send_if_modified(|status| {
            // Looked at in here, so that of two who publish at once the later one knows what the earlier one did.
            let Some(whole) = whole(&lock(&self.sources)) else { return false };
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
