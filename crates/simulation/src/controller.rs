//! A controller of the tested informer: the control loop and the work queue are the real ones, the reconciler is a few
//! numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use informer_core::control::{Control, End, Step, Work};
use informer_core::engine::{Engine, Fanout, Subscriber};
use informer_core::mailbox::{Delivery, Mode, Notice, WhenFull};
use informer_core::queue::{Config, Queue};
use informer_core::{Cache, ObjectKey, Time};

use crate::invariant::{Invariant, Violation};
use crate::plan::Ending;
use crate::render::number;
use crate::server::Server;
use crate::stored;
use crate::trace::Trace;
use crate::truth::{Key, State};

/// A write of a reconciliation, with the epoch in which the server carried it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Write {
    key: Key,
    version: u64,
    epoch: usize,
}

pub(crate) struct Controller {
    fanout: Arc<Fanout>,
    subscriber: Arc<Subscriber>,
    control: Control<Write>,
    workers: usize,
    is_paused: bool,
    running: Vec<Work>,
    awaiting: Vec<(ObjectKey, Vec<Write>, Time)>,
    /// The state that each key's last reconciliation read; `None` for no object.
    read: BTreeMap<Key, Option<State>>,
    /// The writes of each key's last reconciliation, until the cache has them.
    written: BTreeMap<Key, Vec<Write>>,
    /// The keys whose last reconciliation did not end well.
    unfinished: BTreeSet<Key>,
}

/// The bound of the wait for writes, and the delay after it.
const AWAITED: Duration = Duration::from_secs(10);
const PUT_OFF: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_secs(7);

const CHANGED: u32 = 1;
const RETRIED: u32 = 2;

impl Controller {
    /// `None` after a stop.
    pub(crate) fn new(engine: &Engine, workers: u8) -> Option<Self> {
        // As a controller subscribes, but with room for a single change: the others are coalesced.
        let mode = Mode::Every { capacity: 1, when_full: WhenFull::Coalesce };
        let delivery = Delivery { mode, keep_cancelled: true, ..Delivery::default() };
        let subscriber = engine.fanout().subscribe(delivery)?;
        let snapshot = engine.cache().snapshot();
        let present: Vec<_> = snapshot.iter().cloned().collect();
        subscriber.with_mailbox(|mailbox| mailbox.join(present, snapshot.revision()));
        let workers = usize::from(workers);
        let mut control = Control::new(Queue::new(&Config::default()));
        control.set_workers(workers);
        control.resume();
        Some(Self {
            fanout: engine.fanout().clone(),
            subscriber,
            control,
            workers,
            is_paused: false,
            running: Vec::new(),
            awaiting: Vec::new(),
            read: BTreeMap::new(),
            written: BTreeMap::new(),
            unfinished: BTreeSet::new(),
        })
    }

    /// Takes all changes.
    pub(crate) fn listen(&mut self, now: Time) {
        while let Some(notice) = self.subscriber.take() {
            if let Notice::Change { change, initial } = notice {
                let priority = if initial { -100 } else { 0 };
                self.control.changed(now, change.key().clone(), CHANGED, priority);
            }
        }
    }

    /// Starts what can start.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        cache: &Cache,
        server: &Server,
        trace: &mut Trace,
    ) -> Result<(), Violation> {
        let reflects = |write: &Write| reflects(cache, server, *write);
        // The cache may lose an object that it had: the object leaves the selection.
        self.written.retain(|_, writes| {
            writes.retain(|write| !reflects(write));
            !writes.is_empty()
        });
        for (key, writes, until) in std::mem::take(&mut self.awaiting) {
            if writes.iter().all(reflects) {
                self.control.written(&key);
            } else if until <= now {
                self.control.not_written(now, &key, PUT_OFF);
            } else {
                self.awaiting.push((key, writes, until));
            }
        }
        while let Some(step) = self.control.next(now, reflects) {
            trace.line(|| format!("       controller: {step:?}"));
            match step {
                Step::AwaitWrites(key, writes) => self.awaiting.push((key, writes, now + AWAITED)),
                Step::Reconcile(work) => self.begin(work, cache)?,
            }
        }
        Ok(())
    }

    fn begin(&mut self, work: Work, cache: &Cache) -> Result<(), Violation> {
        let holds = |holds: bool, what: &str| {
            Invariant::Reconcile.holds(holds, || format!("{} is reconciled {what}", work.key))
        };
        let Some(key) = Key::of(work.key.as_str()) else { return holds(false, "and was never notified of") };
        holds(!self.is_paused, "while the controller is paused")?;
        holds(self.running.len() < self.workers, "by more workers than there are")?;
        holds(self.running.iter().all(|other| other.key != work.key), "by two workers")?;
        holds(work.causes != 0, "without a cause")?;
        holds(!self.written.contains_key(&key), "before the cache has what it wrote")?;
        self.read.insert(key, cached(cache, key));
        self.running.push(work);
        Ok(())
    }

    /// Ends a reconciliation, if one runs.
    pub(crate) fn end(&mut self, now: Time, which: u8, ending: Ending, server: &mut Server) {
        if self.running.is_empty() {
            return;
        }
        let work = self.running.remove(usize::from(which) % self.running.len());
        let mut writes = Vec::new();
        if let Ending::Writes(key) | Ending::WritesAndFails(key) | Ending::Interrupted(key) = ending {
            server.put(key);
            writes.push(Write { key, version: server.version, epoch: server.truth.epoch() });
        }
        if let Some(key) = Key::of(work.key.as_str()) {
            if !writes.is_empty() {
                self.written.entry(key).or_default().extend(writes.iter().copied());
            }
            match ending {
                Ending::WritesAndFails(_) | Ending::Interrupted(_) => self.unfinished.insert(key),
                _ => self.unfinished.remove(&key),
            };
        }
        match ending {
            Ending::Done | Ending::Writes(_) => self.control.finished(now, &work, End::Settled, writes),
            Ending::Again => self.control.finished(now, &work, End::Again(AGAIN, RETRIED), writes),
            Ending::WritesAndFails(_) => {
                self.control.finished(now, &work, End::Again(PUT_OFF, RETRIED), writes);
            }
            Ending::Interrupted(_) => self.control.interrupted(now, &work, writes),
        }
    }

    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
        self.control.pause();
    }

    pub(crate) fn resume(&mut self) {
        self.is_paused = false;
        self.control.resume();
    }

    pub(crate) fn deadline(&self, now: Time) -> Option<Time> {
        let awaited = self.awaiting.iter().map(|(_, _, until)| *until);
        awaited.chain(self.control.wake(now)).min()
    }

    /// Nothing runs, and nothing waits.
    pub(crate) fn is_at_rest(&self, now: Time) -> bool {
        self.running.is_empty() && self.awaiting.is_empty() && self.control.wake(now).is_none()
    }

    /// Every object was reconciled at its last version, and well.
    pub(crate) fn check_rest(&self, cache: &Cache) -> Result<(), Violation> {
        Invariant::Reconcile.holds(self.unfinished.is_empty(), || {
            format!("the last reconciliation of {:?} did not end well", self.unfinished)
        })?;
        for key in Key::all() {
            let (read, cached) = (self.read.get(&key).copied().flatten(), cached(cache, key));
            Invariant::Reconcile.holds(read == cached, || {
                format!("the last reconciliation of {key:?} read {read:?}, the cache has {cached:?}")
            })?;
        }
        Ok(())
    }
}

fn cached(cache: &Cache, key: Key) -> Option<State> {
    stored::read(&*cache.get_str(key.text())?).map(|(_, state)| state)
}

/// Whether a cache has a write, or something newer. A restored server voids the writes after its backup.
fn reflects(cache: &Cache, server: &Server, write: Write) -> bool {
    let has_it = || cached(cache, write.key).is_some_and(|state| state.version >= write.version);
    server.truth.epoch() != write.epoch || number(&cache.resource_version()) >= write.version || has_it()
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.fanout.unsubscribe(&self.subscriber);
        self.subscriber.remove();
    }
}
