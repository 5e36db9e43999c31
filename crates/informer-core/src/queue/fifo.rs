//! A set of items in the order in which they came.
//!
//! A ring holds the items, and a table of numbers finds them by key. With a key of 16 bytes an item takes 32 bytes in the
//! ring and 6 to 12 in the table. Both grow by half or double, and shrink when three quarters are empty, so each operation is
//! O(1) amortized.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// A ring of this capacity is not made smaller: 8 KB with a key of 16 bytes.
const KEPT_CAPACITY: usize = 256;

/// An item that waits in a line.
#[derive(Debug)]
pub(super) struct Waiting<K> {
    pub(super) key: K,
    /// When it joined the line, in nanoseconds.
    pub(super) joined: u64,
    /// The seconds that it had waited before that, elsewhere.
    pub(super) waited: f32,
    pub(super) marks: u32,
}

/// Items in the order of their arrival.
pub(super) struct Fifo<K> {
    /// `None` is the hole of an item that was removed. The front is not a hole.
    ring: VecDeque<Option<Waiting<K>>>,
    /// The numbers of the items, by their keys. Number `first + i` is at the position `i` of the ring. With less than 2^32
    /// items, which take 137 GB, no two have the same number.
    numbers: HashTable<u32>,
    first: u32,
    /// The number of the next item.
    next: u32,
    hashes: DefaultHashBuilder,
}

impl<K: Eq + Hash> Fifo<K> {
    pub(super) fn new(hashes: DefaultHashBuilder) -> Self {
        Self { ring: VecDeque::new(), numbers: HashTable::new(), first: 0, next: 0, hashes }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn front(&self) -> Option<&Waiting<K>> {
        self.ring.front()?.as_ref()
    }

    /// Appends an item, whose key must not be in the line.
    pub(super) fn push(&mut self, hash: u64, item: Waiting<K>) {
        if self.numbers.len() == self.numbers.capacity() {
            self.number_again(self.len() + self.len() / 2 + 4);
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.ring.push_back(Some(item));
        let Self { ring, numbers, first, hashes, .. } = self;
        numbers.insert_unique(hash, number, |number| {
            at(ring, *first, *number).map_or(0, |item| hashes.hash_one(&item.key))
        });
    }

    pub(super) fn get_mut(&mut self, hash: u64, key: &K) -> Option<&mut Waiting<K>> {
        let Self { ring, numbers, first, .. } = self;
        let is_it = |number: &u32| at(ring, *first, *number).is_some_and(|item| item.key == *key);
        let number = *numbers.find(hash, is_it)?;
        ring.get_mut(position(*first, number))?.as_mut()
    }

    pub(super) fn remove(&mut self, hash: u64, key: &K) -> Option<Waiting<K>> {
        let Self { ring, numbers, first, .. } = self;
        let is_it = |number: &u32| at(ring, *first, *number).is_some_and(|item| item.key == *key);
        let (number, _) = numbers.find_entry(hash, is_it).ok()?.remove();
        let item = ring.get_mut(position(*first, number)).and_then(Option::take);
        self.tidy();
        item
    }

    /// Removes the first item. Returns it with the hash of its key.
    pub(super) fn pop(&mut self) -> Option<(u64, Waiting<K>)> {
        let hash = self.hashes.hash_one(&self.front()?.key);
        let number = self.first;
        if let Ok(entry) = self.numbers.find_entry(hash, |other| *other == number) {
            entry.remove();
        }
        let item = self.ring.front_mut().and_then(Option::take)?;
        self.tidy();
        Some((hash, item))
    }

    /// Removes holes at the front, and all of them when they are more than the items. Returns memory after a burst.
    fn tidy(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        let is_sparse = self.ring.capacity() > KEPT_CAPACITY && self.ring.capacity() / 4 > self.len();
        if is_sparse || self.ring.len() > 2 * self.len() + KEPT_CAPACITY {
            self.ring.retain(Option::is_some);
            self.ring.shrink_to(2 * self.len());
            self.number_again(2 * self.len());
        }
    }

    /// Builds the table again, for `capacity` items. This reads the items in their order, which is several times as fast as
    /// in the order of the table, as a table reads them that grows by itself.
    fn number_again(&mut self, capacity: usize) {
        let mut numbers = HashTable::with_capacity(capacity);
        let mut number = self.first;
        for item in &self.ring {
            if let Some(item) = item {
                // It has room for all, so it asks for no hash.
                numbers.insert_unique(self.hashes.hash_one(&item.key), number, |_| 0);
            }
            number = number.wrapping_add(1);
        }
        (self.numbers, self.next) = (numbers, number);
    }
}

fn at<K>(ring: &VecDeque<Option<Waiting<K>>>, first: u32, number: u32) -> Option<&Waiting<K>> {
    ring.get(position(first, number))?.as_ref()
}

fn position(first: u32, number: u32) -> usize {
    number.wrapping_sub(first) as usize
}
