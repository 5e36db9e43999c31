//! The items that are ready: a lane for each priority.

use std::hash::Hash;

use hashbrown::DefaultHashBuilder;

use super::fifo::{Fifo, Waiting};

/// Lanes without items that are kept for the next ones. A controller has two or three priorities.
const KEPT_LANES: usize = 4;

/// Items by priority. Operations are linear in the number of priorities that wait.
pub(super) struct Lanes<K> {
    /// The highest priority first.
    lanes: Vec<Lane<K>>,
    len: usize,
    /// The time that one step of priority is worth, in nanoseconds.
    handicap: u64,
    hashes: DefaultHashBuilder,
}

/// The items of one priority.
struct Lane<K> {
    priority: i32,
    line: Fifo<K>,
}

/// An item that left its lane.
pub(super) struct Popped<K> {
    pub(super) hash: u64,
    pub(super) priority: i32,
    pub(super) item: Waiting<K>,
}

impl<K: Eq + Hash> Lanes<K> {
    pub(super) fn new(handicap: u64, hashes: DefaultHashBuilder) -> Self {
        Self { lanes: Vec::new(), len: 0, handicap, hashes }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of items of each priority that has some.
    pub(super) fn depths(&self) -> impl Iterator<Item = (i32, usize)> {
        self.lanes.iter().map(|lane| (lane.priority, lane.line.len())).filter(|(_, len)| *len > 0)
    }

    /// Appends an item, whose key must not be in a lane.
    pub(super) fn push(&mut self, priority: i32, hash: u64, item: Waiting<K>) {
        let at = self.lanes.partition_point(|lane| lane.priority > priority);
        if self.lanes.get(at).is_none_or(|lane| lane.priority != priority) {
            self.lanes.insert(at, Lane { priority, line: Fifo::new(self.hashes.clone()) });
        }
        if let Some(lane) = self.lanes.get_mut(at) {
            lane.line.push(hash, item);
            self.len += 1;
        }
    }

    /// The item with this key, and its priority.
    pub(super) fn find(&mut self, hash: u64, key: &K) -> Option<(i32, &mut Waiting<K>)> {
        let mut lanes = self.lanes.iter_mut();
        lanes.find_map(|lane| Some((lane.priority, lane.line.get_mut(hash, key)?)))
    }

    pub(super) fn remove(&mut self, priority: i32, hash: u64, key: &K) -> Option<Waiting<K>> {
        let at = self.lanes.iter().position(|lane| lane.priority == priority)?;
        let item = self.lanes.get_mut(at)?.line.remove(hash, key)?;
        self.len -= 1;
        self.drop_if_empty(at);
        Some(item)
    }

    /// Removes the next item.
    ///
    /// It is of the lane whose oldest item joined first, after each step of priority has counted as a longer wait; of two
    /// such lanes, of the higher one. So while an item waits, one with a priority that is higher by `n` is taken before it
    /// only if that one joined less than `n` handicaps later, or just so much.
    pub(super) fn pop(&mut self) -> Option<Popped<K>> {
        let rank = |lane: &Lane<K>| Some(self.rank(lane.line.front()?.joined, lane.priority));
        let ranks = self.lanes.iter().enumerate().filter_map(|(at, lane)| Some((rank(lane)?, at)));
        let (_, at) = ranks.min()?;
        let lane = self.lanes.get_mut(at)?;
        let priority = lane.priority;
        let (hash, item) = lane.line.pop()?;
        self.len -= 1;
        self.drop_if_empty(at);
        Some(Popped { hash, priority, item })
    }

    /// Whether an item that joins at a time with a priority is taken before one of another time and a lower priority.
    pub(super) fn is_sooner(&self, (joined, priority): (u64, i32), (other, lower): (u64, i32)) -> bool {
        self.rank(joined, priority) <= self.rank(other, lower)
    }

    /// When an item with priority 0 would have joined to be taken at the same time.
    fn rank(&self, joined: u64, priority: i32) -> i128 {
        i128::from(joined) - i128::from(self.handicap) * i128::from(priority)
    }

    fn drop_if_empty(&mut self, at: usize) {
        if self.lanes.len() > KEPT_LANES && self.lanes.get(at).is_some_and(|lane| lane.line.len() == 0) {
            self.lanes.remove(at);
        }
    }
}
