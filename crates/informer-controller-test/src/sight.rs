//! The view of a replica's watches and lists: everything, or less for a while.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The sight of one replica, which the bench changes and all its watches follow.
#[derive(Default)]
pub(crate) struct Sight {
    limits: Mutex<Limits>,
    /// Its waiters wake in the order in which they came.
    changed: Notify,
}

#[derive(Default)]
struct Limits {
    /// How many disturbances hold the watch of a resource.
    held: BTreeMap<String, u32>,
    /// Up to this revision the server has forgotten the changes of a resource.
    forgotten: BTreeMap<String, u64>,
    /// The server that the replica reads from stands still at this revision.
    frozen: Option<u64>,
}

impl Sight {
    fn change(&self, change: impl FnOnce(&mut Limits)) {
        change(&mut self.limits.lock());
        self.changed.notify_waiters();
    }

    pub(crate) fn hold(&self, resource: &str) {
        self.change(|limits| *limits.held.entry(resource.to_owned()).or_default() += 1);
    }

    pub(crate) fn go_on(&self, resource: &str) {
        self.change(|limits| {
            if let Some(held) = limits.held.get_mut(resource) {
                *held = held.saturating_sub(1);
            }
        });
    }

    pub(crate) fn forget(&self, resource: &str, upto: u64) {
        self.change(|limits| {
            limits.forgotten.insert(resource.to_owned(), upto);
        });
    }

    pub(crate) fn freeze(&self, revision: u64) {
        self.change(|limits| limits.frozen = Some(revision));
    }

    pub(crate) fn thaw(&self) {
        self.change(|limits| limits.frozen = None);
    }

    pub(crate) fn frozen(&self) -> Option<u64> {
        self.limits.lock().frozen
    }

    pub(crate) fn forgotten(&self, resource: &str) -> u64 {
        self.limits.lock().forgotten.get(resource).copied().unwrap_or(0)
    }

    /// Waits until the watch of a resource stands still, or until it goes on.
    pub(crate) async fn until(&self, resource: &str, still: bool) {
        loop {
            let changed = self.changed.notified();
            if self.limits.lock().holds(resource) == still {
                return;
            }
            changed.await;
        }
    }
}

impl Limits {
    fn holds(&self, resource: &str) -> bool {
        self.frozen.is_some() || self.held.get(resource).is_some_and(|held| *held > 0)
    }
}
