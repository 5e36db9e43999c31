//! The observable state of an informer: status, sync, changes of the cache, reports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use informer_core::reflector::{Report, Status};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, broadcast, watch};

use crate::lock::lock;

/// The observable state of one informer.
pub(crate) struct Progress {
    status: watch::Sender<Status>,
    is_synced: AtomicBool,
    /// Fires after each change of the status, and when it is synced. As of `changed`, its waiters wake in the order in which
    /// they came, which those of a `watch` do not: a deterministic factory needs that.
    news: Notify,
    /// Fires after each change of the cache, that by a bookmark included, and when a scope was removed.
    changed: Notify,
    is_listing: AtomicBool,
    /// `None` once nothing more will be reported.
    reports: Mutex<Option<broadcast::Sender<Report>>>,
}

/// The number of reports that are kept for a slow observer. It misses older ones, and gets their number.
const REPORTS: usize = 256;

impl Default for Progress {
    fn default() -> Self {
        Self {
            status: watch::Sender::new(Status::NotStarted),
            is_synced: AtomicBool::new(false),
            news: Notify::new(),
            changed: Notify::new(),
            is_listing: AtomicBool::new(false),
            reports: Mutex::new(Some(broadcast::Sender::new(REPORTS))),
        }
    }
}

impl Progress {
    pub(crate) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Waits until the status and the sync are as wanted.
    pub(crate) async fn until(&self, is_wanted: impl Fn(&Status, bool) -> bool) {
        loop {
            let news = self.news.notified();
            if is_wanted(&self.status.borrow(), self.is_synced()) {
                return;
            }
            news.await;
        }
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced.load(Ordering::Acquire)
    }

    /// Whether a list is under way for some scope.
    pub(crate) fn is_listing(&self) -> bool {
        self.is_listing.load(Ordering::Acquire)
    }

    /// The next change after this call.
    pub(crate) fn next_change(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// The receiver ends when the informer stops.
    pub(crate) fn reports(&self) -> broadcast::Receiver<Report> {
        match &*lock(&self.reports) {
            Some(reports) => reports.subscribe(),
            None => broadcast::Sender::new(1).subscribe(),
        }
    }

    /// The informer was started: from here on the engine sets the status.
    pub(super) fn started(&self) {
        self.status.send_if_modified(|status| {
            let is_new = *status == Status::NotStarted;
            if is_new {
                *status = Status::Connecting;
            }
            is_new
        });
        self.news.notify_waiters();
    }

    /// Nothing follows [`Status::Stopped`].
    pub(super) fn status_changed(&self, status: Status) {
        self.status.send_if_modified(|current| {
            let changed = *current != status && *current != Status::Stopped;
            if changed {
                *current = status;
            }
            changed
        });
        self.news.notify_waiters();
    }

    pub(super) fn listing(&self, is_listing: bool) {
        self.is_listing.store(is_listing, Ordering::Release);
    }

    pub(super) fn synced(&self) {
        self.is_synced.store(true, Ordering::Release);
        self.news.notify_waiters();
    }

    /// Wakes the callers that wait for something of the cache.
    pub(super) fn changed(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn report(&self, report: Report) {
        // Sending wakes receivers, so this does not happen under the lock.
        let reports = lock(&self.reports).clone();
        if let Some(reports) = reports {
            // There may be no receiver.
            let _ = reports.send(report);
        }
    }

    pub(super) fn stopped(&self) {
        self.status_changed(Status::Stopped);
        let reports = lock(&self.reports).take();
        drop(reports);
    }
}
