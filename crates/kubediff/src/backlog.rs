//! A queue for a consumer that may be slow, such as a disk or a reader of the output; bounded in bytes.
//!
//! As long as there is room, everything waits as it came. Beyond the bound, the changes of one object are merged, the oldest
//! first; nothing is ever dropped. So the backlog holds at most its bound and one merged item per object.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

/// An item of the queue.
pub trait Item {
    /// The key of items that belong together: items with equal keys can be merged. `None` for an item that stays as it is.
    type Key: Clone + Eq + Hash;

    /// Its key.
    fn key(&self) -> Option<Self::Key>;

    /// How much memory it takes.
    fn bytes(&self) -> usize;

    /// Becomes this item and the next one of the same key in one.
    fn merge(&mut self, next: Self);
}

/// A queue that merges items beyond its bound.
///
/// ```
/// use kubediff::backlog::{Backlog, Item};
///
/// #[derive(Debug, PartialEq)]
/// struct Steps(&'static str, u32);
///
/// impl Item for Steps {
///     type Key = &'static str;
///     fn key(&self) -> Option<&'static str> {
///         Some(self.0)
///     }
///     fn bytes(&self) -> usize {
///         10
///     }
///     fn merge(&mut self, next: Self) {
///         self.1 += next.1;
///     }
/// }
///
/// let mut backlog = Backlog::new(30);
/// for object in ["a", "b", "a", "a"] {
///     backlog.push(Steps(object, 1));
/// }
/// assert_eq!(backlog.pop(), Some(Steps("a", 2)));
/// assert_eq!(backlog.pop(), Some(Steps("b", 1)));
/// assert_eq!(backlog.pop(), Some(Steps("a", 1)));
/// ```
#[derive(Debug)]
pub struct Backlog<T: Item> {
    bound: usize,
    bytes: usize,
    /// Counts items and turns.
    next: u64,
    /// By their places in the queue.
    waiting: BTreeMap<u64, T>,
    places: HashMap<T::Key, Places>,
    /// The keys with more than one item, the one to be merged next first.
    turns: BTreeMap<u64, T::Key>,
    merged: u64,
}

/// Where the items of one key wait.
#[derive(Debug, Default)]
struct Places {
    /// In order.
    at: VecDeque<u64>,
    /// Its turn to be merged: present as long as it has more than one item.
    turn: Option<u64>,
}

impl<T: Item> Backlog<T> {
    /// An empty backlog with this bound in bytes.
    pub fn new(bound: usize) -> Self {
        Self {
            bound,
            bytes: 0,
            next: 0,
            waiting: BTreeMap::new(),
            places: HashMap::new(),
            turns: BTreeMap::new(),
            merged: 0,
        }
    }

    /// Adds an item at the end, and merges others while the bound is exceeded.
    pub fn push(&mut self, item: T) {
        let place = self.next();
        self.bytes += item.bytes();
        if let Some(key) = item.key() {
            self.places.entry(key.clone()).or_default().at.push_back(place);
            self.turn(key);
        }
        self.waiting.insert(place, item);
        while self.bytes > self.bound && self.merge_one() {}
    }

    /// Removes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        let (_, item) = self.waiting.pop_first()?;
        self.bytes -= item.bytes();
        if let Some(key) = item.key()
            && let Some(places) = self.places.get_mut(&key)
        {
            places.at.pop_front();
            self.turn(key);
        }
        if self.waiting.is_empty() {
            // A long backlog must not leave its capacity behind.
            self.places = HashMap::new();
        }
        Some(item)
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many bytes wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many items were merged into others since the start.
    pub fn merged(&self) -> u64 {
        self.merged
    }

    /// Merges the two oldest items of the key whose turn it is. Returns whether there was one.
    fn merge_one(&mut self) -> bool {
        let Some((_, key)) = self.turns.pop_first() else { return false };
        let Some(places) = self.places.get_mut(&key) else { return false };
        places.turn = None;
        let (first, second) = (places.at.front().copied(), places.at.remove(1));
        if let Some(second) = second.and_then(|place| self.waiting.remove(&place))
            && let Some(first) = first.and_then(|place| self.waiting.get_mut(&place))
        {
            self.bytes -= first.bytes() + second.bytes();
            first.merge(second);
            self.bytes += first.bytes();
            self.merged += 1;
        }
        self.turn(key);
        true
    }

    /// Gives the key a turn, the last one, or takes it away, after its number of items has changed.
    fn turn(&mut self, key: T::Key) {
        let next = self.next();
        let Some(places) = self.places.get_mut(&key) else { return };
        match (places.at.len(), places.turn) {
            (2.., None) => {
                places.turn = Some(next);
                self.turns.insert(next, key);
            }
            (2.., Some(_)) => {}
            (length, turn) => {
                if let Some(turn) = turn {
                    self.turns.remove(&turn);
                }
                places.turn = None;
                if length == 0 {
                    self.places.remove(&key);
                }
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
