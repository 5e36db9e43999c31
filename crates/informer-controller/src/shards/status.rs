//! Where a member stands, for observers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::Stream;
use informer::share::Ranges;
use tokio::sync::watch;

use super::ShardsMetrics;

/// Where a member of shards stands, as far as it knows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ShardsStatus {
    /// The name of the shards.
    pub name: String,
    /// This member.
    pub identity: String,
    /// The number of the map that was found last. It rises with each map.
    pub generation: Option<u64>,
    /// Which member has which hashes in that map.
    pub members: BTreeMap<String, Ranges>,
    /// The hashes on which this member acts: those that it has in the map, or fewer while a change is under way.
    pub acts_on: Ranges,
    /// The live members that have not acknowledged the map. While there are some, nobody begins with new hashes.
    pub waiting_for: Vec<String>,
    /// Why the member cannot look at the leases, or cannot follow the map.
    pub problem: Option<String>,
    /// How often the member has lost its lease.
    pub losses: u64,
    /// How many controllers were made for new shares.
    pub controllers: u64,
}

impl ShardsStatus {
    pub(super) fn new(name: &str, identity: &str) -> Self {
        Self {
            name: name.to_owned(),
            identity: identity.to_owned(),
            generation: None,
            members: BTreeMap::new(),
            acts_on: Ranges::none(),
            waiting_for: Vec::new(),
            problem: None,
            losses: 0,
            controllers: 0,
        }
    }

    /// The hashes that this member has in the map.
    pub fn share(&self) -> Ranges {
        self.members.get(&self.identity).cloned().unwrap_or_default()
    }

    /// Whether this member acts on all that it has in the map.
    pub fn is_settled(&self) -> bool {
        self.generation.is_some() && self.waiting_for.is_empty() && self.acts_on == self.share()
    }
}

/// A handle to a member that runs.
#[derive(Clone)]
pub struct ShardsHandle {
    status: Arc<watch::Sender<ShardsStatus>>,
}

impl ShardsHandle {
    pub(super) fn new(status: Arc<watch::Sender<ShardsStatus>>) -> Self {
        Self { status }
    }

    /// Where the member stands.
    pub fn status(&self) -> ShardsStatus {
        self.status.borrow().clone()
    }

    /// A stream of statuses, beginning with the current one. If the status changes several times between two polls, the
    /// stream returns only the latest. It never ends.
    pub fn status_changes(&self) -> impl Stream<Item = ShardsStatus> + Send + use<> {
        let mut receiver = self.status.subscribe();
        receiver.mark_changed();
        futures_util::stream::unfold((receiver, self.clone()), |(mut receiver, keep_alive)| async move {
            receiver.changed().await.ok()?;
            let status = receiver.borrow_and_update().clone();
            Some((status, (receiver, keep_alive)))
        })
    }

    /// The metrics at this moment.
    pub fn metrics(&self) -> ShardsMetrics {
        ShardsMetrics::of(&self.status())
    }
}

impl fmt::Debug for ShardsHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardsHandle").field("status", &*self.status.borrow()).finish()
    }
}
