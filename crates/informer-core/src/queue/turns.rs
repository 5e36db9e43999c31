//! Items whose groups take turns: one item of each group, then again.

use std::collections::{BTreeSet, VecDeque};
use std::hash::Hash;

use hashbrown::{DefaultHashBuilder, HashMap};

use super::fifo::{Fifo, Waiting};

/// A line for each group. Operations are O(log groups).
pub(super) struct Turns<K> {
    lines: HashMap<u32, Fifo<K>>,
    /// The groups that have a line, the next one first. A line whose items were all removed stays until its turn.
    order: VecDeque<u32>,
    /// When the first item of each line joined it.
    fronts: BTreeSet<(u64, u32)>,
    len: usize,
    hashes: DefaultHashBuilder,
}

impl<K: Eq + Hash> Turns<K> {
    pub(super) fn new(hashes: DefaultHashBuilder) -> Self {
        Self { lines: HashMap::new(), order: VecDeque::new(), fronts: BTreeSet::new(), len: 0, hashes }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// When the item joined that has waited longest.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.fronts.first().map(|(joined, _)| *joined)
    }

    /// Appends an item to the line of its group. A group without a line is last.
    pub(super) fn push(&mut self, group: u32, hash: u64, item: Waiting<K>) {
        let line = self.lines.entry(group).or_insert_with(|| {
            self.order.push_back(group);
            Fifo::new(self.hashes.clone())
        });
        if line.len() == 0 {
            self.fronts.insert((item.joined, group));
        }
        line.push(hash, item);
        self.len += 1;
    }

    pub(super) fn get_mut(&mut self, group: u32, hash: u64, key: &K) -> Option<&mut Waiting<K>> {
        self.lines.get_mut(&group)?.get_mut(hash, key)
    }

    pub(super) fn remove(&mut self, group: u32, hash: u64, key: &K) -> Option<Waiting<K>> {
        let line = self.lines.get_mut(&group)?;
        let front = line.front().map(|front| front.joined);
        let item = line.remove(hash, key)?;
        self.len -= 1;
        self.front_changed(group, front);
        Some(item)
    }

    /// Removes the first item of the group whose turn it is. Returns it with its group and the hash of its key.
    pub(super) fn pop(&mut self) -> Option<(u32, u64, Waiting<K>)> {
        loop {
            let group = self.order.pop_front()?;
            let Some(line) = self.lines.get_mut(&group) else { continue };
            let front = line.front().map(|front| front.joined);
            let popped = line.pop();
            if line.len() == 0 {
                self.lines.remove(&group);
            } else {
                self.order.push_back(group);
            }
            if let Some((hash, item)) = popped {
                self.len -= 1;
                self.front_changed(group, front);
                return Some((group, hash, item));
            }
        }
    }

    fn front_changed(&mut self, group: u32, before: Option<u64>) {
        let now = self.lines.get(&group).and_then(Fifo::front).map(|front| front.joined);
        if before != now {
            before.map(|joined| self.fronts.remove(&(joined, group)));
            now.map(|joined| self.fronts.insert((joined, group)));
        }
    }
}
