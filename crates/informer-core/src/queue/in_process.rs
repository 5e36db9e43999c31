//! The items that workers have.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// A table of this capacity is not made smaller.
const KEPT_CAPACITY: usize = 256;

/// An item that a worker has.
#[derive(Debug)]
pub(super) struct Running<K> {
    pub(super) key: K,
    /// When it was taken, in nanoseconds.
    pub(super) began: u64,
    /// Set if it was added again meanwhile.
    pub(super) again: Option<Again>,
}

/// How an item comes again after it is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Again {
    /// Not before this time, in nanoseconds.
    pub(super) at: u64,
    pub(super) priority: i32,
    pub(super) marks: u32,
    /// Whether it was counted as an add: it was to come at once.
    pub(super) is_counted: bool,
}

/// The items in process.
pub(super) struct InProcess<K> {
    table: HashTable<Running<K>>,
    hashes: DefaultHashBuilder,
}

impl<K: Eq + Hash> InProcess<K> {
    pub(super) fn new(hashes: DefaultHashBuilder) -> Self {
        Self { table: HashTable::new(), hashes }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Running<K>> {
        self.table.iter()
    }

    pub(super) fn insert(&mut self, hash: u64, item: Running<K>) {
        self.table.insert_unique(hash, item, |item| self.hashes.hash_one(&item.key));
    }

    pub(super) fn get_mut(&mut self, hash: u64, key: &K) -> Option<&mut Running<K>> {
        self.table.find_mut(hash, |item| item.key == *key)
    }

    pub(super) fn remove(&mut self, hash: u64, key: &K) -> Option<Running<K>> {
        let (item, _) = self.table.find_entry(hash, |item| item.key == *key).ok()?.remove();
        if self.table.capacity() > KEPT_CAPACITY && self.table.capacity() / 4 > self.table.len() {
            self.table.shrink_to(2 * self.table.len(), |item| self.hashes.hash_one(&item.key));
        }
        Some(item)
    }

    /// Forgets what is to come again later than `now`.
    pub(super) fn forget_delays(&mut self, now: u64) {
        for item in self.table.iter_mut() {
            item.again = item.again.filter(|again| again.at <= now);
        }
    }
}

impl<K> Running<K> {
    /// Adds the item again while it is in process. Returns whether this counts as an add.
    pub(super) fn add(&mut self, now: u64, again: Again) -> bool {
        let before = self.again.take();
        let mut again = match before {
            None => again,
            Some(before) => Again {
                at: before.at.min(again.at),
                priority: before.priority.max(again.priority),
                marks: before.marks | again.marks,
                is_counted: before.is_counted || again.is_counted,
            },
        };
        let counts = !again.is_counted && again.at <= now;
        again.is_counted |= counts;
        self.again = Some(again);
        counts
    }
}
