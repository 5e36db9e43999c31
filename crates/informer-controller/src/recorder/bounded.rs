//! A table that forgets the entry used longest ago when it is full.

use std::collections::HashMap;
use std::hash::Hash;

use informer_core::Time;

#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    entries: HashMap<K, (V, Time)>,
    limit: usize,
}

impl<K: Hash + Eq + Clone, V> Bounded<K, V> {
    pub(super) fn new(limit: usize) -> Self {
        Self { entries: HashMap::new(), limit }
    }

    /// The entry, which is used now.
    pub(super) fn using(&mut self, now: Time, key: &K) -> Option<&mut V> {
        let (value, used) = self.entries.get_mut(key)?;
        *used = now;
        Some(value)
    }

    /// The entry, and when it was used last.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<(&mut V, Time)> {
        self.entries.get_mut(key).map(|(value, used)| (value, *used))
    }

    /// Adds an entry, which is used now. O(1), and O(entries) where it displaces another one.
    pub(super) fn insert(&mut self, now: Time, key: K, value: V) {
        if self.entries.len() >= self.limit && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.entries.insert(key, (value, now));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Drops entries: `keep` gets each with the time when it was used last.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V, Time) -> bool) {
        self.entries.retain(|key, (value, used)| keep(key, value, *used));
    }
}
