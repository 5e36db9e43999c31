//! The pending notifications of one subscription.
//!
//! A mailbox has a bound that does not depend on its reader (design D7). It keeps one pending change per key (`Latest`), or
//! every change up to a capacity, with a rule for changes beyond that. The writer never waits for a reader.
//!
//! ```text
//!   joining:                the cached objects (from a snapshot)                  ->  Synced  ->  the changes since
//!   before the first sync:  the initial list                                      ->  Synced  ->  the changes since
//!   loaded:                 the saved objects  ->  how the initial list differs   ->  Synced  ->  the changes since
//! ```

mod coalesced;
mod filter;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Change, Delta, Object, Origin};
use coalesced::Coalesced;

pub use filter::Filtered;

/// How changes reach a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Which changes are delivered.
    pub mode: Mode,
    /// Whether a key that was deleted and created again between two reads is delivered as a deletion and an addition.
    /// Otherwise it is one update, whose objects differ in their uids.
    pub split_recreated: bool,
    /// Whether coalesced changes of a key are delivered even if they cancel each other out: an object that came and went is
    /// an addition and a deletion, and one that is again as it was is an update. For a reader who also reads the cache, which
    /// may have had the states in between. Memory: a key that comes and goes while nobody reads keeps its place.
    pub keep_cancelled: bool,
}

/// Which changes are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// One pending change per key, from the last delivered state to the newest one. Memory: O(distinct keys).
    #[default]
    Latest,
    /// Every change. Up to `capacity` of them wait.
    Every {
        /// The maximum number of pending changes.
        capacity: usize,
        /// The treatment of changes beyond the capacity.
        when_full: WhenFull,
    },
}

/// The treatment of a change for which a mailbox has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WhenFull {
    /// It is coalesced with other changes of its key until there is room again, so the net change is not lost. Memory: the
    /// capacity and O(distinct keys).
    #[default]
    Coalesce,
    /// The oldest pending change is dropped, and the reader gets the number of dropped changes (`Change::Lagged`). Objects of
    /// the initial list are never dropped. Memory: the capacity and O(distinct keys).
    Drop,
}

impl Default for Delivery {
    /// The latest state of each key, with re-creations as updates.
    fn default() -> Self {
        Self { mode: Mode::Latest, split_recreated: false, keep_cancelled: false }
    }
}

/// A notification.
#[derive(Debug, Clone)]
pub enum Notice {
    /// A change, or an object of the initial list.
    Change {
        /// The change.
        change: Change,
        /// Whether this belongs to the subscription's initial list.
        initial: bool,
    },
    /// The initial list is complete.
    Synced,
    /// This many changes were dropped. Earlier notifications may be outdated: read a snapshot.
    Lagged(u64),
}

/// The pending notices of one subscription.
#[derive(Debug)]
pub struct Mailbox {
    delivery: Delivery,
    /// Changes that were offered before the mailbox joined a snapshot, each with its revision and whether it is initial.
    arrived: Option<Vec<(u64, Change, bool)>>,
    /// The objects that the cache was loaded with before the mailbox joined a snapshot, and the cache's revision after the
    /// load.
    loaded: Option<(u64, Vec<Arc<Object>>)>,
    /// Objects of the joined snapshot that were not delivered yet.
    present: std::vec::IntoIter<Arc<Object>>,
    /// The revision of the joined snapshot.
    joined: u64,
    /// The revision of the last change offered.
    revision: u64,
    every: VecDeque<(Change, bool)>,
    coalesced: Coalesced,
    lagged: u64,
    /// Changes in `every` that belong to the initial list.
    initial_in_every: usize,
    sync: Sync,
}

/// The progress of the subscription's initial list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// The cache itself is not synced yet.
    Upstream,
    /// The whole initial list is in the mailbox.
    Pending,
    Told,
}

impl Mailbox {
    /// A mailbox that collects changes from now on, and then joins a snapshot that must be taken afterwards. `cache_synced`
    /// says whether the cache already has its initial list.
    pub fn new(delivery: Delivery, cache_synced: bool) -> Self {
        Self {
            delivery,
            arrived: Some(Vec::new()),
            loaded: None,
            present: Vec::new().into_iter(),
            joined: 0,
            revision: 0,
            every: VecDeque::new(),
            coalesced: Coalesced::default(),
            lagged: 0,
            initial_in_every: 0,
            sync: if cache_synced { Sync::Pending } else { Sync::Upstream },
        }
    }

    /// Joins a snapshot. Changes up to its revision are in the snapshot, and later ones follow it. So no change is delivered
    /// twice or missed, and no other subscription pauses.
    pub fn join(&mut self, present: Vec<Arc<Object>>, revision: u64) {
        self.present = match self.loaded.take() {
            Some((loaded, content)) if loaded > revision => content.into_iter(),
            _ => present.into_iter(),
        };
        self.joined = revision;
        self.revision = self.revision.max(revision);
        for (arrived_revision, change, initial) in self.arrived.take().unwrap_or_default() {
            if arrived_revision > revision {
                self.split_and_push(&change, initial);
            }
        }
    }

    /// Offers a change, with the cache's revision after it. Changes must be offered in the order of their revisions. All
    /// changes of one step have the same revision.
    pub fn offer(&mut self, revision: u64, change: &Change) {
        let initial = self.sync == Sync::Upstream;
        self.revision = self.revision.max(revision);
        match &mut self.arrived {
            Some(arrived) => arrived.push((revision, change.clone(), initial)),
            // The cache may be ahead of the changes offered: the snapshot has this one already.
            None if revision <= self.joined => {}
            None => self.split_and_push(change, initial),
        }
    }

    /// The cache, which was empty, was loaded with these objects, at this revision. All of them are delivered even if they
    /// change before that, so that an object that was deleted while no process ran is delivered as a deletion.
    pub fn load(&mut self, revision: u64, content: Vec<Arc<Object>>) {
        self.revision = self.revision.max(revision);
        match self.arrived {
            Some(_) => self.loaded = Some((revision, content)),
            // The snapshot has them already.
            None if revision <= self.joined => {}
            None => self.present = content.into_iter(),
        }
    }

    /// The cache's revision up to which all changes were offered.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The cache is synced: the changes offered so far are the initial list.
    pub fn cache_synced(&mut self) {
        if self.sync == Sync::Upstream {
            self.sync = Sync::Pending;
        }
    }

    /// The next notice.
    pub fn take(&mut self) -> Option<Notice> {
        if self.arrived.is_some() {
            return None;
        }
        if let Some(object) = self.present.next() {
            let change = Change { delta: Delta::Added(object), origin: Origin::List };
            return Some(Notice::Change { change, initial: true });
        }
        self.present = Vec::new().into_iter();
        let first_content_left = self.initial_in_every + self.coalesced.initial_len() > 0;
        if self.sync == Sync::Pending && !first_content_left {
            self.sync = Sync::Told;
            return Some(Notice::Synced);
        }
        // Only changes after the initial list are dropped. A notice before the end of the list would not show that objects
        // delivered later are outdated.
        if self.lagged > 0 && !first_content_left {
            return Some(Notice::Lagged(std::mem::take(&mut self.lagged)));
        }
        // Coalesced changes are newer than the others. But in a mailbox that drops changes, the coalesced ones are the
        // initial list, which comes first.
        let (change, initial) = if self.drops() {
            self.coalesced.pop().or_else(|| self.pop_every())?
        } else {
            self.pop_every().or_else(|| self.coalesced.pop())?
        };
        Some(Notice::Change { change, initial })
    }

    /// The number of pending changes.
    pub fn backlog(&self) -> usize {
        let arrived = self.arrived.as_ref().map_or(0, Vec::len);
        arrived + self.present.len() + self.every.len() + self.coalesced.len()
    }

    fn split_and_push(&mut self, change: &Change, initial: bool) {
        match self.delivery.split_recreated.then(|| split(change)).flatten() {
            None => self.push(change.clone(), initial),
            Some([deleted, added]) => {
                self.push(deleted, initial);
                self.push(added, initial);
            }
        }
    }

    fn push(&mut self, change: Change, initial: bool) {
        match self.delivery.mode {
            Mode::Latest => self.merge(change, initial),
            Mode::Every { capacity, when_full } => {
                let full = self.every.len() >= capacity.max(1);
                match when_full {
                    WhenFull::Drop if initial => return self.merge(change, initial),
                    // While coalesced changes wait, new ones join them, so that the changes of each key stay in order.
                    WhenFull::Coalesce if full || self.coalesced.len() > 0 => {
                        return self.merge(change, initial);
                    }
                    // `every` has no change of the initial list here, so none of those is dropped.
                    WhenFull::Drop if full => self.lagged += u64::from(self.every.pop_front().is_some()),
                    _ => {}
                }
                self.initial_in_every += usize::from(initial);
                self.every.push_back((change, initial));
            }
        }
    }

    fn drops(&self) -> bool {
        matches!(self.delivery.mode, Mode::Every { when_full: WhenFull::Drop, .. })
    }

    fn pop_every(&mut self) -> Option<(Change, bool)> {
        let (change, initial) = self.every.pop_front()?;
        self.initial_in_every -= usize::from(initial);
        Some((change, initial))
    }

    fn merge(&mut self, change: Change, initial: bool) {
        self.coalesced.push(change, initial, self.delivery);
    }
}

/// Splits a re-creation into a deletion and an addition.
fn split(change: &Change) -> Option<[Change; 2]> {
    let Delta::Updated { old, new } = &change.delta else { return None };
    if old.uid() == new.uid() {
        return None;
    }
    let origin = change.origin;
    Some([
        Change { delta: Delta::Deleted { old: old.clone(), last: old.clone() }, origin },
        Change { delta: Delta::Added(new.clone()), origin },
    ])
}
