//! The control loop of a controller, without its I/O: which object is reconciled, and when.
//!
//! [`Control`] knows the keys that wait, those that are being reconciled, and the writes that each key has made. Its owner
//! feeds it changes and results, with the time, and starts what [`Control::next`] returns:
//!
//! - [`Step::Reconcile`]: run the reconciler for a key, then call [`Control::finished`].
//! - [`Step::AwaitWrites`]: the last reconciliation of this key wrote objects. Wait until the caches reflect these writes,
//!   then call [`Control::written`]. A reconciliation on older caches could repeat a write, for example create a second
//!   child because the first one is not in the cache yet.
//!
//! A key has one reconciliation at a time, and another one after each change that comes meanwhile. No key is lost while
//! the loop is paused: a controller that waits for leadership keeps what changes, as long as it exists ([`Control::forget`]).

mod own_write;
mod retries;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::queue::{Add, Queue};
use crate::{ObjectKey, Time};

pub use own_write::{CacheStates, Found, OwnWrite};
pub use retries::Retries;

/// The state of a control loop.
#[derive(Debug)]
pub struct Control {
    queue: Queue<ObjectKey>,
    /// The writes of each key's last reconciliation, with their numbers, until the caches reflect them; under `None` those for
    /// which every key waits.
    writes: HashMap<Option<ObjectKey>, Vec<(u64, OwnWrite)>>,
    /// The number of the last write.
    written: u64,
    /// Whether every key waits for the writes of all.
    waits_for_all: bool,
    /// How long a change waits for further ones of its key.
    debounce: Option<Duration>,
    /// The number of keys with writes at which the reflected ones are forgotten.
    forget_at: usize,
    /// Keys that were taken and have not begun: the writes up to a number are awaited, or have arrived.
    aside: HashMap<ObjectKey, (Work, u64)>,
    /// Keys of `aside` whose writes have arrived, in the order of arrival.
    ready: VecDeque<ObjectKey>,
    workers: usize,
    running: usize,
    phase: Phase,
}

/// The number of keys with writes from which on it pays to check which of them the caches reflect.
const FEW_WRITES: usize = 64;

/// The maximum number of keys that wait for news of their caches at a time: each makes a change of a cache more expensive. The others
/// look again after [`LOOK_AGAIN`].
const MOST_ASIDE: usize = 1_000;

/// How long a key waits whose writes are not reflected while too many others wait for news of their caches.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Collects keys and starts nothing.
    Paused,
    Running,
    /// Starts nothing any more.
    Stopped,
}

/// A key to reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The object.
    pub key: ObjectKey,
    /// Why, as bits whose meaning is the caller's: those of all changes since the last reconciliation began.
    pub causes: u32,
    /// The priority with which it waited.
    pub priority: i32,
}

/// The next step of the owner of a [`Control`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Reconcile this key now.
    Reconcile(Work),
    /// Wait until the caches reflect these writes of a key.
    AwaitWrites(ObjectKey, Vec<OwnWrite>),
}

/// How a reconciliation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The key waits for its next change.
    Settled,
    /// The key is reconciled again after a while, or after its next change if that is earlier. The bits are added to the
    /// causes of that reconciliation.
    Again(Duration, u32),
}

impl Control {
    /// A paused loop that runs one reconciliation at a time.
    pub fn new(queue: Queue<ObjectKey>) -> Self {
        Self {
            queue,
            writes: HashMap::new(),
            written: 0,
            waits_for_all: false,
            debounce: None,
            forget_at: FEW_WRITES,
            aside: HashMap::new(),
            ready: VecDeque::new(),
            workers: 1,
            running: 0,
            phase: Phase::Paused,
        }
    }

    /// Runs up to this many reconciliations at a time from now on, at least one.
    pub fn set_workers(&mut self, workers: usize) {
        self.workers = workers.max(1);
    }

    /// From now on each key waits for the writes of all keys that have ended, not only for its own.
    pub fn wait_for_all(&mut self) {
        self.waits_for_all = true;
    }

    /// From now on a change waits so long for further ones of its key, unless it waits behind others anyway (a priority below 0).
    pub fn set_debounce(&mut self, wait: Duration) {
        self.debounce = Some(wait);
    }

    /// A key has changed.
    pub fn changed(&mut self, now: Time, key: ObjectKey, causes: u32, priority: i32) {
        match self.aside.get_mut(&key) {
            // Its reconciliation has not begun, and covers this change.
            Some((work, _)) => work.causes |= causes,
            None => {
                let after = self.debounce.filter(|_| priority >= 0);
                self.queue.add(now, key, Add { priority, marks: causes, after });
            }
        }
    }

    /// The object of this key is gone, and another process sees to it: the key leaves the queue, unless it is being reconciled.
    pub fn forget(&mut self, now: Time, key: &ObjectKey) {
        self.queue.forget(now, key);
    }

    /// Starts or continues. Metrics count keys that wait already as added now.
    pub fn resume(&mut self, now: Time) {
        if self.phase == Phase::Paused {
            self.phase = Phase::Running;
            self.queue.count_from(now);
        }
    }

    /// Starts nothing until [`Control::resume`]. Running reconciliations are not affected: their owner ends them, and reports each key with
    /// [`Control::interrupted`] or [`Control::finished`].
    pub fn pause(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Paused;
        }
    }

    /// Starts nothing any more. Later changes are ignored.
    pub fn stop(&mut self, now: Time) {
        self.phase = Phase::Stopped;
        self.queue.shut_down(now);
        self.ready.clear();
        self.aside.clear();
    }

    /// The next step, if any: call this until it returns `None` after each other call.
    pub fn next(&mut self, now: Time, caches: &impl CacheStates) -> Option<Step> {
        self.forget_reflected(caches);
        if self.phase != Phase::Running || self.running >= self.workers {
            return None;
        }
        loop {
            let work = match self.ready.pop_front().and_then(|key| self.aside.remove(&key)) {
                Some((work, _)) => work,
                None if self.all_wait() => return None,
                None => {
                    let taken = self.queue.take(now)?;
                    Work { key: taken.key, causes: taken.marks, priority: taken.priority }
                }
            };
            // Also of a key whose writes have arrived: another one may have written since.
            let scope = self.scope(&work.key);
            if let Some(writes) = self.writes.get_mut(&scope) {
                writes.retain(|(_, write)| !write.is_reflected(caches));
                if !writes.is_empty() && self.aside.len() >= MOST_ASIDE {
                    // It holds up no key that waits for nothing.
                    self.again(now, &work, LOOK_AGAIN, 0);
                    continue;
                }
                if !writes.is_empty() {
                    let awaited = writes.iter().map(|(_, write)| write.clone()).collect();
                    let step = Step::AwaitWrites(work.key.clone(), awaited);
                    self.aside.insert(work.key.clone(), (work, self.written));
                    return Some(step);
                }
                self.writes.remove(&scope);
            }
            self.running += 1;
            return Some(Step::Reconcile(work));
        }
    }

    /// The entry of `writes` for which a key waits.
    fn scope(&self, key: &ObjectKey) -> Option<ObjectKey> {
        (!self.waits_for_all).then(|| key.clone())
    }

    /// Whether every key would wait for the writes for which one waits already.
    fn all_wait(&self) -> bool {
        self.waits_for_all && !self.aside.is_empty()
    }

    /// Forgets writes that the caches reflect, of keys that may never be reconciled again. Each look at all of them is paid
    /// for by as many writes since the last one.
    fn forget_reflected(&mut self, caches: &impl CacheStates) {
        if self.writes.len() < self.forget_at {
            return;
        }
        self.writes.retain(|key, writes| {
            key.as_ref().is_some_and(|key| self.aside.contains_key(key)) || {
                writes.retain(|(_, write)| !write.is_reflected(caches));
                !writes.is_empty()
            }
        });
        self.forget_at = (2 * self.writes.len()).max(FEW_WRITES);
    }

    /// When [`Control::next`] may have something to do although nothing else is called: the end of the next delay.
    pub fn wake(&self, now: Time) -> Option<Time> {
        let takes = self.running < self.workers && !self.all_wait();
        if self.phase == Phase::Running && takes { self.queue.next_ready(now) } else { None }
    }

    /// The caches reflect the writes of a key: it is reconciled next.
    pub fn written(&mut self, key: &ObjectKey) {
        let Some((_, awaited)) = self.aside.get(key) else { return };
        let scope = self.scope(key);
        if let Some(writes) = self.writes.get_mut(&scope) {
            writes.retain(|(number, _)| number > awaited);
            if writes.is_empty() {
                self.writes.remove(&scope);
            }
        }
        self.ready.push_back(key.clone());
    }

    /// The caches do not reflect the writes of a key within the bound: it waits again, for `delay`, and its writes stay
    /// awaited.
    pub fn not_written(&mut self, now: Time, key: &ObjectKey, delay: Duration) {
        if let Some((work, _)) = self.aside.remove(key) {
            self.again(now, &work, delay, 0);
        }
    }

    /// A reconciliation has ended, and has made these writes.
    pub fn finished(&mut self, now: Time, work: &Work, end: End, writes: Vec<OwnWrite>) {
        self.running = self.running.saturating_sub(1);
        if !writes.is_empty() {
            let scope = self.scope(&work.key);
            let numbered = writes.into_iter().zip(self.written + 1..).map(|(write, number)| (number, write));
            let all = self.writes.entry(scope).or_default();
            all.extend(numbered);
            self.written = all.last().map_or(self.written, |(number, _)| *number);
        }
        match end {
            End::Settled => self.queue.done(now, &work.key),
            End::Again(delay, cause) => {
                let again = Work { causes: cause, ..work.clone() };
                self.again(now, &again, delay, cause);
            }
        }
    }

    /// A reconciliation was cut off after these writes: the key is reconciled again, for the same causes.
    pub fn interrupted(&mut self, now: Time, work: &Work, writes: Vec<OwnWrite>) {
        self.finished(now, work, End::Again(Duration::ZERO, work.causes), writes);
    }

    fn again(&mut self, now: Time, work: &Work, delay: Duration, cause: u32) {
        self.queue.done(now, &work.key);
        let add = Add { priority: work.priority, marks: work.causes | cause, after: Some(delay) };
        self.queue.add(now, work.key.clone(), add);
    }

    /// The number of reconciliations that run.
    pub fn running(&self) -> usize {
        self.running
    }

    /// The queue, for its metrics.
    pub fn queue(&self) -> &Queue<ObjectKey> {
        &self.queue
    }
}
