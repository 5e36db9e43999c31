//! Armed faults and their effects.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::fault::Fault;
use super::matcher::Matcher;
use super::random::Random;
use crate::{Call, Verb};

/// The number of fired faults that are kept.
const FIRED_MAX: usize = 10_000;

/// An armed fault. Dropping this changes nothing; [`disarm`](Self::disarm) does.
#[derive(Debug, Clone)]
pub struct Armed(pub(super) Arc<Rule>);

/// A fault that has taken effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Fired {
    /// The fault.
    pub fault: Fault,
    /// The number of the request: [`Call::number`].
    pub request: u64,
}

#[derive(Debug)]
pub(super) struct Rule {
    matcher: Matcher,
    recipe: Recipe,
    /// How many requests meet it; `None` for all.
    times: Option<u64>,
    /// How many requests have matched it, and how many have met it.
    seen: AtomicU64,
    met: AtomicU64,
    disarmed: AtomicBool,
    hits: watch::Sender<u64>,
}

#[derive(Debug)]
pub(super) enum Recipe {
    Always(Vec<Fault>),
    Random(Random),
}

/// The fired faults of all rules.
#[derive(Debug)]
pub(super) struct Record {
    fired: Mutex<VecDeque<Fired>>,
    hits: watch::Sender<u64>,
}

/// One fault of one request, which may take effect once.
#[derive(Debug, Clone)]
pub(super) struct Hit(Arc<HitOnce>);

#[derive(Debug)]
struct HitOnce {
    fault: Fault,
    request: u64,
    rule: Arc<Rule>,
    record: Arc<Record>,
    done: AtomicBool,
}

impl Armed {
    /// Disarms it: no further request meets it. Responses that have met it keep it.
    pub fn disarm(&self) {
        self.0.disarmed.store(true, Ordering::Release);
    }

    /// How many requests have met it.
    pub fn met(&self) -> u64 {
        self.0.met.load(Ordering::Acquire)
    }

    /// How often it has taken effect. A response that ends before the place of its fault has met the fault, but is no
    /// hit.
    pub fn hits(&self) -> u64 {
        *self.0.hits.borrow()
    }

    /// Waits until it takes effect.
    pub async fn hit(&self) {
        self.hit_times(1).await;
    }

    /// Waits until it has taken effect this many times.
    pub async fn hit_times(&self, times: u64) {
        reach(&self.0.hits, times).await;
    }
}

impl Rule {
    pub(super) fn new(matcher: Matcher, recipe: Recipe, times: Option<u64>) -> Self {
        Self {
            matcher,
            recipe,
            times,
            seen: AtomicU64::new(0),
            met: AtomicU64::new(0),
            disarmed: AtomicBool::new(false),
            hits: watch::Sender::new(0),
        }
    }

    /// Whether a request can still meet it.
    pub(super) fn is_armed(&self) -> bool {
        let used_up = self.times.is_some_and(|times| self.met.load(Ordering::Acquire) >= times);
        let is_empty = matches!(&self.recipe, Recipe::Always(faults) if faults.is_empty());
        !used_up && !is_empty && !self.disarmed.load(Ordering::Acquire)
    }

    /// Whether it is armed for a number of requests.
    pub(super) fn is_counted(&self) -> bool {
        self.times.is_some()
    }

    /// Whether the rule selects a request; counts it.
    pub(super) fn sees(&self, call: &Call) -> bool {
        let fits = |fault: &Fault| call.verb == Verb::Watch || !fault.is_for_watches();
        let fits = match &self.recipe {
            Recipe::Always(faults) => faults.iter().all(fits),
            Recipe::Random(_) => true,
        };
        self.is_armed()
            && fits
            && self.matcher.matches(call)
            && self.seen.fetch_add(1, Ordering::AcqRel) + 1 >= self.matcher.from_nth
    }

    /// The faults for a request that the rule selects.
    pub(super) fn meet(self: &Arc<Self>, call: &Call, record: &Arc<Record>) -> Vec<Hit> {
        let faults = match &self.recipe {
            Recipe::Always(faults) => faults.clone(),
            Recipe::Random(random) => random.draw(call),
        };
        if !faults.is_empty() {
            self.met.fetch_add(1, Ordering::AcqRel);
        }
        let hit = |fault| HitOnce {
            fault,
            request: call.number,
            rule: self.clone(),
            record: record.clone(),
            done: AtomicBool::new(false),
        };
        faults.into_iter().map(|fault| Hit(Arc::new(hit(fault)))).collect()
    }
}

/// `watch pods: 1 of 2 times [CutAfter(Events(3))]`
impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: met {}", self.matcher, self.met.load(Ordering::Acquire))?;
        match self.times {
            Some(times) => write!(f, " of {times} times")?,
            None => write!(f, " times")?,
        }
        match &self.recipe {
            Recipe::Always(faults) => write!(f, " {faults:?}"),
            Recipe::Random(random) => write!(f, " {random}"),
        }
    }
}

impl Record {
    pub(super) fn new() -> Self {
        Self { fired: Mutex::default(), hits: watch::Sender::new(0) }
    }

    pub(super) fn all(&self) -> Vec<Fired> {
        self.fired.lock().iter().cloned().collect()
    }

    pub(super) fn hits(&self) -> u64 {
        *self.hits.borrow()
    }

    pub(super) async fn reach(&self, times: u64) {
        reach(&self.hits, times).await;
    }

    fn add(&self, fired: Fired) {
        let mut all = self.fired.lock();
        if all.len() == FIRED_MAX {
            all.pop_front();
        }
        all.push_back(fired);
        drop(all);
        self.hits.send_modify(|hits| *hits += 1);
    }
}

impl Hit {
    pub(super) fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// Records that the fault takes effect. A second call changes nothing.
    pub(super) fn fire(&self) {
        if !self.0.done.swap(true, Ordering::AcqRel) {
            self.0.record.add(Fired { fault: self.0.fault.clone(), request: self.0.request });
            self.0.rule.hits.send_modify(|hits| *hits += 1);
        }
    }
}

async fn reach(count: &watch::Sender<u64>, times: u64) {
    // The sender is borrowed, so the channel cannot be closed.
    let _ = count.subscribe().wait_for(|hits| *hits >= times).await;
}
