//! A set of items in the order in which they came.
//!
//! A ring holds the items, and a table of numbers finds them by key. With a key of 16 bytes an item takes 32 bytes in the
//! ring and 6 to 12 in the table. Both grow by half or double, and shrink when three quarters are empty, so each operation is
//! O(1) amortized.
//!
//! The first few items have left both. In a long line the place of each in the table is a miss of the processor's cache;
//! looked up together, these misses overlap.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::hint::black_box;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A ring of this capacity is not made smaller: 8 KB with a key of 16 bytes.
const KEPT_CAPACITY: usize = 256;

/// The number of items that leave the ring together.
const BLOCK: usize = 16;

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
    /// The first items, with the hashes of their keys. Empty only if the ring is.
    head: VecDeque<(u64, Waiting<K>)>,
    /// The items behind them. `None` is the hole of an item that was removed. The front is not a hole.
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
        let (head, ring, numbers) = (VecDeque::new(), VecDeque::new(), HashTable::new());
        Self { head, ring, numbers, first: 0, next: 0, hashes }
    }

    pub(super) fn len(&self) -> usize {
        self.head.len() + self.numbers.len()
    }

    pub(super) fn front(&self) -> Option<&Waiting<K>> {
        self.head.front().map(|(_, item)| item)
    }

    /// Appends an item, whose key must not be in the line.
    pub(super) fn push(&mut self, hash: u64, item: Waiting<K>) {
        if self.numbers.is_empty() && self.head.len() < BLOCK {
            return self.head.push_back((hash, item));
        }
        if self.numbers.len() == self.numbers.capacity() {
            self.number_again(self.numbers.len() + self.numbers.len() / 2 + 4);
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
        if let Some(at) = self.in_head(hash, key) {
            return self.head.get_mut(at).map(|(_, item)| item);
        }
        let Self { ring, numbers, first, .. } = self;
        let is_it = |number: &u32| at(ring, *first, *number).is_some_and(|item| item.key == *key);
        let number = *numbers.find(hash, is_it)?;
        ring.get_mut(position(*first, number))?.as_mut()
    }

    pub(super) fn remove(&mut self, hash: u64, key: &K) -> Option<Waiting<K>> {
        if let Some(at) = self.in_head(hash, key) {
            let (_, item) = self.head.remove(at)?;
            self.refill();
            return Some(item);
        }
        let Self { ring, numbers, first, .. } = self;
        let is_it = |number: &u32| at(ring, *first, *number).is_some_and(|item| item.key == *key);
        let (number, _) = numbers.find_entry(hash, is_it).ok()?.remove();
        let item = ring.get_mut(position(*first, number)).and_then(Option::take);
        self.tidy();
        item
    }

    /// Removes the first item. Returns it with the hash of its key.
    pub(super) fn pop(&mut self) -> Option<(u64, Waiting<K>)> {
        let first = self.head.pop_front()?;
        self.refill();
        Some(first)
    }

    fn in_head(&self, hash: u64, key: &K) -> Option<usize> {
        self.head.iter().position(|(other, item)| *other == hash && item.key == *key)
    }

    /// Fills an empty head from the ring.
    fn refill(&mut self) {
        if !self.head.is_empty() || self.ring.is_empty() {
            return;
        }
        let Self { head, ring, numbers, first, hashes, .. } = self;
        let mut left = Vec::with_capacity(BLOCK);
        while left.len() < BLOCK
            && let Some(item) = ring.pop_front()
        {
            if let Some(item) = item {
                let hash = hashes.hash_one(&item.key);
                head.push_back((hash, item));
                left.push((hash, *first));
            }
            *first = first.wrapping_add(1);
        }
        // Reads that do not wait for each other, as removals would.
        let found =
            left.iter().filter(|(hash, number)| numbers.find(*hash, |other| other == number).is_some());
        black_box(found.count());
        for (hash, number) in left {
            if let Ok(entry) = numbers.find_entry(hash, |other| *other == number) {
                entry.remove();
            }
        }
        self.tidy();
    }

    /// Removes holes at the front, and all of them when they are more than the items. Returns memory after a burst.
    fn tidy(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        let is_sparse = self.ring.capacity() > KEPT_CAPACITY && self.ring.capacity() / 4 > self.numbers.len();
        if is_sparse || self.ring.len() > 2 * self.numbers.len() + KEPT_CAPACITY {
            self.ring.retain(Option::is_some);
            self.ring.shrink_to(2 * self.numbers.len());
            self.number_again(2 * self.numbers.len());
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
