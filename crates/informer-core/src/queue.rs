//! The work queue of a controller: which item is next, and which one is already with a worker.
//!
//! It has the semantics of client-go's work queue. An item that waits is not added twice. An item that is added while a
//! worker has it comes once more after it is done. So two workers never have the same item. Beyond client-go's queue, items
//! have priorities that cannot starve.
//!
//! Like the rest of this crate, it has no clock, no lock and no runtime; the crate `informer-controller` puts them around it.
//!
//! ```
//! use std::time::Duration;
//! use informer_core::Time;
//! use informer_core::queue::{Add, Queue};
//!
//! let start = Time::ZERO;
//! let mut queue = Queue::default();
//! queue.add(start, "shop/cart", Add::default());
//! queue.add(start, "shop/cart", Add::default());
//! queue.add(start, "shop/till", Add { after: Some(Duration::from_secs(5)), ..Add::default() });
//! assert_eq!(queue.len(), 1);
//!
//! let taken = queue.take(start).unwrap();
//! assert_eq!(taken.key, "shop/cart");
//! queue.add(start, "shop/cart", Add::default());
//! assert!(queue.take(start).is_none(), "a worker has it");
//! queue.done(start, &taken.key);
//! assert_eq!(queue.take(start).unwrap().key, "shop/cart");
//!
//! let later = start + Duration::from_secs(5);
//! assert_eq!(queue.next_ready(start), Some(later));
//! assert_eq!(queue.take(later).unwrap().key, "shop/till");
//! ```

mod delays;
mod fifo;
mod in_process;
mod lanes;
mod limiter;
mod metrics;

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use hashbrown::DefaultHashBuilder;

use crate::time::nanos;
use crate::{Histogram, Time};
use delays::{Delayed, Delays};
use fifo::Waiting;
use in_process::{Again, InProcess, Running};
use lanes::{Lanes, Popped};

pub use limiter::{Exponential, RateLimiter, TokenBucket, default_rate_limiter};
pub use metrics::Metrics;

/// The priority of items that can wait: those of an initial list or a resync. controller-runtime uses the same number.
pub const LOW_PRIORITY: i32 = -100;

/// The settings of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How much longer than an item an otherwise equal one waits whose priority is lower by one.
    ///
    /// While an item waits, another one whose priority is higher by `n` is taken before it only if that one became ready at
    /// most `n * handicap` later. So no priority starves, however many items of higher ones come. With the default, one
    /// second, items of [`LOW_PRIORITY`] let those of priority 0 pass that come within 100 s. With zero, a priority only
    /// decides between items that became ready at the same time.
    pub handicap: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { handicap: Duration::from_secs(1) }
    }
}

/// How an item is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Add {
    /// Higher ones come first, within the bounds of [`Config::handicap`]. The default is 0.
    pub priority: i32,
    /// The item is not ready before this delay has passed. `None` is at once. An add with a delay counts as a retry in the
    /// metrics, also if the delay is zero.
    pub after: Option<Duration>,
    /// Bits that mean something to the caller. [`Taken::marks`] has those of all adds since the item was last taken.
    pub marks: u32,
}

/// An item that a worker has got. It is in process until [`Queue::done`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken<K> {
    /// The item.
    pub key: K,
    /// The highest priority of the adds since it was last taken; a lower one with which it came sooner.
    pub priority: i32,
    /// The marks of these adds.
    pub marks: u32,
}

/// A work queue. A key is a name, such as an [`ObjectKey`](crate::ObjectKey), that is cheap to clone: the queue keeps one clone
/// while an item is in process.
///
/// The times that it is passed must not go back; an earlier one counts as the latest one.
///
/// Adding, taking and finishing an item are O(1) amortized in the number of items, and linear in the number of priorities
/// that wait. With a delay they are O(log delayed items). A waiting item takes about 43 bytes if its key takes 16. The memory of items that have left the queue is freed.
pub struct Queue<K> {
    /// Items that are ready, ...
    lanes: Lanes<K>,
    /// ... that wait for their time, ...
    delays: Delays<K>,
    /// ... and that workers have. A key is in one of the three.
    in_process: InProcess<K>,
    stage: Stage,
    /// The latest time that it was passed.
    now: u64,
    /// Waiting before this time is not measured.
    counted_from: u64,
    adds: u64,
    retries: u64,
    queue_duration: Histogram,
    work_duration: Histogram,
    hashes: DefaultHashBuilder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Draining,
    ShutDown,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new(config: &Config) -> Self {
        let hashes = DefaultHashBuilder::default();
        Self {
            lanes: Lanes::new(nanos(config.handicap), hashes.clone()),
            delays: Delays::new(hashes.clone()),
            in_process: InProcess::new(hashes.clone()),
            stage: Stage::Open,
            now: 0,
            counted_from: 0,
            adds: 0,
            retries: 0,
            queue_duration: Histogram::default(),
            work_duration: Histogram::default(),
            hashes,
        }
    }

    /// Adds an item.
    ///
    /// If the item waits already, both adds become one: with the earlier time, the higher priority and the marks of both.
    /// If its priority rises, it goes to the end of the items of that priority, unless it has waited so long that it comes
    /// sooner with the lower one. If a worker has it, it comes again after it
    /// is done. A queue that was shut down ignores the add.
    pub fn add(&mut self, now: Time, key: K, add: Add) {
        let now = self.advance_to(now);
        if self.stage != Stage::Open {
            return;
        }
        self.retries += u64::from(add.after.is_some());
        let at = now.saturating_add(nanos(add.after.unwrap_or_default()));
        let hash = self.hashes.hash_one(&key);
        if let Some(running) = self.in_process.get_mut(hash, &key) {
            let again = Again { at, priority: add.priority, marks: add.marks, is_counted: false };
            self.adds += u64::from(running.add(now, again));
        } else if let Some((priority, waiting)) = self.lanes.find(hash, &key) {
            waiting.marks |= add.marks;
            let joined = waiting.joined;
            if add.priority > priority && self.lanes.is_sooner((now, add.priority), (joined, priority)) {
                self.raise(priority, hash, &key, add.priority);
            }
        } else {
            let mut item = Delayed { key, priority: add.priority, marks: add.marks };
            let mut at = at;
            if let Some((other_at, other)) = self.delays.remove(hash, &item.key) {
                at = at.min(other_at);
                item.priority = item.priority.max(other.priority);
                item.marks |= other.marks;
            }
            if at <= now {
                self.adds += 1;
                self.join(now, hash, now, item);
            } else {
                self.delays.insert(hash, at, item);
            }
        }
    }

    /// Takes the next item that is ready. It is in process until [`done`](Self::done) is called with its key.
    pub fn take(&mut self, now: Time) -> Option<Taken<K>> {
        let now = self.advance_to(now);
        let Popped { hash, priority, item } = self.lanes.pop()?;
        let Waiting { key, joined, waited, marks } = item;
        let before = if joined < self.counted_from { Duration::ZERO } else { seconds(waited) };
        let since = joined.max(self.counted_from);
        self.queue_duration.observe(Duration::from_nanos(now.saturating_sub(since)) + before);
        self.in_process.insert(hash, Running { key: key.clone(), began: now, again: None });
        Some(Taken { key, priority, marks })
    }

    /// Metrics leave out the time for which items waited before this call, because no worker was to take them.
    pub fn count_from(&mut self, now: Time) {
        self.counted_from = self.advance_to(now);
    }

    /// Forgets an item that waits. One that is in process stays.
    pub fn forget(&mut self, now: Time, key: &K) {
        self.advance_to(now);
        let hash = self.hashes.hash_one(key);
        if let Some((priority, _)) = self.lanes.find(hash, key) {
            self.lanes.remove(priority, hash, key);
        } else {
            self.delays.remove(hash, key);
        }
    }

    /// Ends the processing of an item. If it was added meanwhile, it waits again. A key that is not in process is ignored.
    pub fn done(&mut self, now: Time, key: &K) {
        let now = self.advance_to(now);
        let hash = self.hashes.hash_one(key);
        let Some(Running { key, began, again }) = self.in_process.remove(hash, key) else { return };
        self.work_duration.observe(Duration::from_nanos(now.saturating_sub(began)));
        let Some(Again { at, priority, marks, is_counted }) = again else { return };
        let item = Delayed { key, priority, marks };
        if at <= now {
            self.adds += u64::from(!is_counted);
            self.join(now, hash, at, item);
        } else {
            self.delays.insert(hash, at, item);
        }
    }

    /// The time from which [`take`](Self::take) has an item: `now` if one is ready. `None` if no item waits, not even for
    /// its time.
    pub fn next_ready(&self, now: Time) -> Option<Time> {
        match self.lanes.len() {
            0 => self.next_delayed().map(|at| at.max(now)),
            _ => Some(now),
        }
    }

    /// The time of the next delayed item, whether or not others are ready.
    pub fn next_delayed(&self) -> Option<Time> {
        self.delays.next().map(Time::from_nanos)
    }

    /// Makes the items ready whose time has come. All methods that change the queue do so first.
    pub fn advance(&mut self, now: Time) {
        self.advance_to(now);
    }

    /// The number of items that are ready. Those whose time has come count from the next call on that has the time.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether no item is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shuts the queue down: adds are ignored from now on, and delayed items are dropped. Items that are ready can still be
    /// taken, and items in process that were added again come again. This ends a wait for the drain.
    pub fn shut_down(&mut self, now: Time) {
        self.close(now, Stage::ShutDown);
    }

    /// Shuts the queue down, for a caller that waits until it [`is_drained`](Self::is_drained).
    pub fn shut_down_with_drain(&mut self, now: Time) {
        self.close(now, Stage::Draining);
    }

    /// Whether the queue was shut down.
    pub fn is_shut_down(&self) -> bool {
        self.stage != Stage::Open
    }

    /// Whether a wait for the drain has ended: nothing is ready or in process, or [`shut_down`](Self::shut_down) was called
    /// last.
    pub fn is_drained(&self) -> bool {
        match self.stage {
            Stage::Open => false,
            Stage::Draining => self.is_empty() && self.in_process.len() == 0,
            Stage::ShutDown => true,
        }
    }

    /// The numbers of the queue. O(items in process).
    pub fn metrics(&self, now: Time) -> Metrics {
        let now = self.now.max(now.nanos());
        let mut depth = self.lanes.depths().collect::<std::collections::BTreeMap<_, _>>();
        let (mut unfinished_work, mut longest_running) = (Duration::ZERO, Duration::ZERO);
        for running in self.in_process.iter() {
            if let Some(again) = running.again.filter(|again| again.at <= now) {
                *depth.entry(again.priority).or_default() += 1;
            }
            let time = Duration::from_nanos(now.saturating_sub(running.began));
            unfinished_work = unfinished_work.saturating_add(time);
            longest_running = longest_running.max(time);
        }
        Metrics {
            depth,
            delayed: self.delays.len(),
            in_process: self.in_process.len(),
            adds: self.adds,
            retries: self.retries,
            queue_duration: self.queue_duration.clone(),
            work_duration: self.work_duration.clone(),
            unfinished_work,
            longest_running,
        }
    }

    fn close(&mut self, now: Time, stage: Stage) {
        let now = self.advance_to(now);
        self.stage = stage;
        self.delays.clear();
        self.in_process.forget_delays(now);
    }

    /// Makes due items ready. Returns the time in nanoseconds.
    fn advance_to(&mut self, now: Time) -> u64 {
        self.now = self.now.max(now.nanos());
        while let Some((at, hash, item)) = self.delays.pop_due(self.now) {
            self.adds += 1;
            // No earlier call had this time, so no item has joined later than it.
            self.join(at, hash, at, item);
        }
        self.now
    }

    /// Appends an item at the time `joined`, which has waited to be taken since `since`.
    fn join(&mut self, joined: u64, hash: u64, since: u64, item: Delayed<K>) {
        let Delayed { key, priority, marks } = item;
        let waited = Duration::from_nanos(joined.saturating_sub(since)).as_secs_f32();
        self.lanes.push(priority, hash, Waiting { key, joined, waited, marks });
    }

    /// Moves a waiting item to another priority.
    fn raise(&mut self, priority: i32, hash: u64, key: &K, to: i32) {
        let Some(mut item) = self.lanes.remove(priority, hash, key) else { return };
        item.waited += Duration::from_nanos(self.now.saturating_sub(item.joined)).as_secs_f32();
        item.joined = self.now;
        self.lanes.push(to, hash, item);
    }
}

/// A time that was kept in 4 bytes, to 7 digits.
fn seconds(seconds: f32) -> Duration {
    Duration::try_from_secs_f32(seconds).unwrap_or_default()
}

impl<K: Clone + Eq + Hash> Default for Queue<K> {
    /// An empty queue with the default settings.
    fn default() -> Self {
        Self::new(&Config::default())
    }
}

impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("stage", &self.stage).finish_non_exhaustive()
    }
}
