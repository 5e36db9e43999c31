//! What the watches and lists of a replica show: everything, or less for a while.

use std::collections::BTreeMap;

use tokio::sync::watch;

/// The sight of one replica, which the bench changes and all its watches follow.
pub(crate) struct Sight(watch::Sender<Limits>);

#[derive(Default)]
pub(crate) struct Limits {
    /// How many disturbances hold the watch of a resource.
    held: BTreeMap<String, u32>,
    /// Up to this revision the server has forgotten the changes of a resource.
    forgotten: BTreeMap<String, u64>,
    /// The server that the replica reads from stands still at this revision.
    frozen: Option<u64>,
}

impl Sight {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Limits::default()))
    }

    pub(crate) fn follow(&self) -> watch::Receiver<Limits> {
        self.0.subscribe()
    }

    pub(crate) fn hold(&self, resource: &str) {
        self.0.send_modify(|limits| *limits.held.entry(resource.to_owned()).or_default() += 1);
    }

    pub(crate) fn go_on(&self, resource: &str) {
        self.0.send_modify(|limits| {
            if let Some(held) = limits.held.get_mut(resource) {
                *held = held.saturating_sub(1);
            }
        });
    }

    pub(crate) fn forget(&self, resource: &str, upto: u64) {
        self.0.send_modify(|limits| {
            limits.forgotten.insert(resource.to_owned(), upto);
        });
    }

    pub(crate) fn freeze(&self, revision: u64) {
        self.0.send_modify(|limits| limits.frozen = Some(revision));
    }

    pub(crate) fn thaw(&self) {
        self.0.send_modify(|limits| limits.frozen = None);
    }

    pub(crate) fn frozen(&self) -> Option<u64> {
        self.0.borrow().frozen
    }

    pub(crate) fn forgotten(&self, resource: &str) -> u64 {
        self.0.borrow().forgotten.get(resource).copied().unwrap_or(0)
    }
}

impl Limits {
    pub(crate) fn holds(&self, resource: &str) -> bool {
        self.frozen.is_some() || self.held.get(resource).is_some_and(|held| *held > 0)
    }
}
