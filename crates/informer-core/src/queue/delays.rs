//! The items that are not ready before a time.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// A table of this capacity is not made smaller.
const KEPT_CAPACITY: usize = 256;

/// An item that waits for its time.
#[derive(Debug)]
pub(super) struct Delayed<K> {
    pub(super) key: K,
    pub(super) priority: i32,
    pub(super) marks: u32,
}

/// The place of an item among the others: its time in nanoseconds, then the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: u64,
    order: u64,
}

/// Items by their time. Operations are O(log items).
pub(super) struct Delays<K> {
    by_time: BTreeMap<Place, Delayed<K>>,
    /// The places of the items, by their keys.
    places: HashTable<Place>,
    next_order: u64,
    hashes: DefaultHashBuilder,
}

impl<K: Eq + Hash> Delays<K> {
    pub(super) fn new(hashes: DefaultHashBuilder) -> Self {
        Self { by_time: BTreeMap::new(), places: HashTable::new(), next_order: 0, hashes }
    }

    pub(super) fn len(&self) -> usize {
        self.by_time.len()
    }

    /// The time of the first item.
    pub(super) fn next(&self) -> Option<u64> {
        self.by_time.first_key_value().map(|(place, _)| place.at)
    }

    /// Adds an item, whose key must not have a place.
    pub(super) fn insert(&mut self, hash: u64, at: u64, item: Delayed<K>) {
        let place = Place { at, order: self.next_order };
        self.next_order += 1;
        self.by_time.insert(place, item);
        let Self { by_time, places, hashes, .. } = self;
        let hash_of = |place: &Place| by_time.get(place).map_or(0, |item| hashes.hash_one(&item.key));
        places.insert_unique(hash, place, hash_of);
    }

    /// Removes an item. Returns it with its time.
    pub(super) fn remove(&mut self, hash: u64, key: &K) -> Option<(u64, Delayed<K>)> {
        if self.by_time.is_empty() {
            return None;
        }
        let Self { by_time, places, .. } = self;
        let is_it = |place: &Place| by_time.get(place).is_some_and(|item| item.key == *key);
        let (place, _) = places.find_entry(hash, is_it).ok()?.remove();
        Some((place.at, by_time.remove(&place)?))
    }

    /// Removes the first item if its time has come by `now`. Returns it with its time and the hash of its key.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<(u64, u64, Delayed<K>)> {
        let (place, item) = self.by_time.first_key_value().filter(|(place, _)| place.at <= now)?;
        let (place, hash) = (*place, self.hashes.hash_one(&item.key));
        if let Ok(entry) = self.places.find_entry(hash, |other| *other == place) {
            entry.remove();
        }
        let item = self.by_time.remove(&place)?;
        self.shrink();
        Some((place.at, hash, item))
    }

    pub(super) fn clear(&mut self) {
        (self.by_time, self.places) = (BTreeMap::new(), HashTable::new());
    }

    /// Returns memory after a burst.
    fn shrink(&mut self) {
        let Self { by_time, places, hashes, .. } = self;
        if places.capacity() > KEPT_CAPACITY && places.capacity() / 4 > places.len() {
            let hash_of = |place: &Place| by_time.get(place).map_or(0, |item| hashes.hash_one(&item.key));
            places.shrink_to(2 * places.len(), hash_of);
        }
    }
}
