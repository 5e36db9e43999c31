//! A hash table whose clones share memory.
//!
//! It uses linear hashing over small tables: the table grows by splitting one of them, never as a whole. So no single insert
//! takes long, and a write beside a clone copies one small table.

use std::sync::Arc;

use hashbrown::HashTable;

use super::cow_vec::CowVec;
use crate::memory::{COUNTS, allocated};

/// Average entries per leaf. Leaves hold 0.7 to 1.4 times as many, which fits 128 buckets at hashbrown's load factor.
const LOAD: usize = 75;

/// A set of `T`. The caller supplies the hashes and the comparison.
#[derive(Clone)]
pub(super) struct CowTable<T> {
    leaves: CowVec<Option<Arc<HashTable<T>>>>,
    len: usize,
}

impl<T> Default for CowTable<T> {
    fn default() -> Self {
        Self { leaves: CowVec::default(), len: 0 }
    }
}

impl<T: Clone> CowTable<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The bytes of memory that it takes, as if no clone shared them. O(n / 75).
    pub(super) fn held_bytes(&self) -> usize {
        let leaf = |leaf: &HashTable<T>| {
            allocated(COUNTS + size_of::<HashTable<T>>()) + allocated(leaf.allocation_size())
        };
        let leaves = self.leaves.iter().filter_map(|(_, it)| it.as_deref()).map(leaf).sum::<usize>();
        self.leaves.held_bytes() + leaves
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.leaves.iter().filter_map(|(_, leaf)| leaf.as_deref()).flat_map(HashTable::iter)
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        self.leaves.get(self.home(hash))?.as_ref()?.find(hash, is_it)
    }

    /// Adds an entry that the table does not contain yet. `rehash` returns the hash of an entry.
    pub(super) fn insert(&mut self, hash: u64, entry: T, rehash: impl Fn(&T) -> u64) {
        self.len += 1;
        // Each insert above the average load splits one leaf, which spreads the cost of growing over the inserts.
        if self.len > self.leaves.len() as usize * LOAD {
            self.split(&rehash);
        }
        let home = self.home(hash);
        if let Some(leaf) = self.leaves.get_mut(home) {
            Arc::make_mut(leaf.get_or_insert_default()).insert_unique(hash, entry, rehash);
        }
    }

    /// Removes an entry. Copies nothing if the table does not contain it.
    pub(super) fn remove(
        &mut self,
        hash: u64,
        mut is_it: impl FnMut(&T) -> bool,
        rehash: impl Fn(&T) -> u64,
    ) -> Option<T> {
        self.find(hash, &mut is_it)?;
        let home = self.home(hash);
        let leaf = Arc::make_mut(self.leaves.get_mut(home)?.as_mut()?);
        let (entry, _) = leaf.find_entry(hash, is_it).ok()?.remove();
        self.len -= 1;
        // A table shrinks only at a third of the load, so that one at a limit is not split and merged in turns.
        if self.len * 3 < self.leaves.len() as usize * LOAD {
            self.merge(&rehash);
        }
        Some(entry)
    }

    /// The leaf of a hash. hashbrown uses the lowest bits and the seven highest ones inside a leaf, so this uses the bits
    /// from the middle upwards. In a table whose number of leaves is not a power of two, the leaves that were not split yet
    /// also hold the entries of their missing halves.
    #[inline]
    fn home(&self, hash: u64) -> u32 {
        let count = self.leaves.len();
        let mask = count.next_power_of_two() - 1;
        let home = spread(hash) & mask;
        if home < count { home } else { home & (mask >> 1) }
    }

    /// Adds a leaf, and moves to it those entries of an older leaf that now belong to it.
    fn split(&mut self, rehash: &impl Fn(&T) -> u64) {
        let added = self.leaves.len();
        // The first leaf has no older one to take entries from.
        let Some(halved) = halved_by(added) else {
            self.leaves.push(None);
            return;
        };
        let bit = added - halved;
        let full = self.leaves.get_mut(halved).and_then(Option::take).unwrap_or_default();
        // Both halves are new tables: a clone may still use the full one.
        let mut halves = [HashTable::with_capacity(LOAD), HashTable::with_capacity(LOAD)];
        for entry in full.iter() {
            let hash = rehash(entry);
            halves[usize::from(spread(hash) & bit != 0)].insert_unique(hash, entry.clone(), rehash);
        }
        let [stay, leave] = halves;
        if let Some(leaf) = self.leaves.get_mut(halved) {
            *leaf = Some(Arc::new(stay));
        }
        self.leaves.push(Some(Arc::new(leave)));
    }

    /// Undoes the latest split.
    fn merge(&mut self, rehash: &impl Fn(&T) -> u64) {
        let Some(halved) = self.leaves.len().checked_sub(1).and_then(halved_by) else { return };
        // Leaves are removed in the reverse order of the splits, so `home` needs no further state.
        let last = self.leaves.pop().flatten().unwrap_or_default();
        if let Some(leaf) = self.leaves.get_mut(halved) {
            let leaf = Arc::make_mut(leaf.get_or_insert_default());
            for entry in last.iter() {
                leaf.insert_unique(rehash(entry), entry.clone(), rehash);
            }
        }
    }
}

/// The leaf that the one numbered `added` takes its entries from; `None` for the first leaf.
fn halved_by(added: u32) -> Option<u32> {
    (added > 0).then(|| added - (added + 1).next_power_of_two() / 2)
}

#[inline]
fn spread(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn grows_and_shrinks_without_losing_entries() {
        let mut table = CowTable::default();
        let rehash = |&number: &u64| hash(number);
        for number in 0..20_000 {
            table.insert(hash(number), number, rehash);
        }
        let full = table.clone();
        for number in 0..19_990 {
            assert_eq!(table.remove(hash(number), |&other| other == number, rehash), Some(number));
            assert_eq!(table.remove(hash(number), |&other| other == number, rehash), None);
        }
        assert_eq!((table.len(), table.leaves.len()), (10, 1));
        for number in 0..20_000 {
            let expected = (number >= 19_990).then_some(&number);
            assert_eq!(table.find(hash(number), |&other| other == number), expected);
            assert_eq!(full.find(hash(number), |&other| other == number), Some(&number));
        }
        assert_eq!(full.iter().count(), 20_000);
        let largest = full.leaves.iter().filter_map(|(_, leaf)| leaf.as_ref().map(|leaf| leaf.len())).max();
        assert!(largest < Some(3 * LOAD), "{largest:?}");
    }
}
