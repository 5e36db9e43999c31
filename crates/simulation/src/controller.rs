//! A controller of the tested informer: the control loop and the work queue are the real ones, the reconciler is a few
//! numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use informer_core::control::{CacheStates, Control, End, Found, OwnWrite, Retries, Step, Work};
use informer_core::engine::{Engine, Fanout, Subscriber};
use informer_core::mailbox::{Delivery, Mode, Notice, WhenFull};
use informer_core::queue::{Config, Exponential, Queue};
use informer_core::{Cache, Object, ObjectKey, ResourceVersion, Time, Uid};

use crate::content::Content;
use crate::invariant::{Invariant, Violation};
use crate::plan::Ending;
use crate::render::{self, OPAQUE, number};
use crate::server::Server;
use crate::stored;
use crate::trace::Trace;
use crate::truth::{Key, State};

/// A write that the server has carried out, as the oracle knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effect {
    key: Key,
    /// The state after it; the one that it deleted.
    state: State,
    /// The version of the change.
    version: u64,
    deletes: bool,
    is_answered: bool,
    /// The controller asked for it, and the server had no such object.
    is_gone: bool,
    epoch: usize,
}

pub(crate) struct Controller {
    fanout: Arc<Fanout>,
    subscriber: Arc<Subscriber>,
    control: Control,
    retries: Retries,
    workers: usize,
    is_paused: bool,
    running: Vec<Work>,
    awaiting: Vec<(ObjectKey, Vec<OwnWrite>, Time)>,
    /// The state that each key's last reconciliation read; `None` for no object.
    read: BTreeMap<Key, Option<State>>,
    /// The effects of each key's last reconciliation, until the cache has them.
    effects: BTreeMap<Key, Vec<Effect>>,
    /// The keys whose last reconciliation did not end well.
    unfinished: BTreeSet<Key>,
    failing: BTreeMap<Key, Failing>,
}

/// A key whose last reconciliations failed.
#[derive(Clone, Copy, Default)]
struct Failing {
    failures: u32,
    /// How many waits it has begun since it failed first.
    waits: u32,
    /// When it may be retried without another cause.
    retried_at: Time,
}

/// The cache of the informer, which is the controller's only one.
struct TheCache<'a>(&'a Cache);

impl CacheStates for TheCache<'_> {
    fn object(&self, _: usize, key: &ObjectKey) -> Option<Arc<Object>> {
        self.0.get(key)
    }

    fn version(&self, _: usize) -> ResourceVersion {
        self.0.resource_version()
    }
}

/// The bound of the wait for writes, and the delay after it.
const AWAITED: Duration = Duration::from_secs(10);
const PUT_OFF: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_secs(7);
/// The first delay after a failure; it doubles with each one.
const BACKOFF: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

const CHANGED: u32 = 1;
const AGAIN_LATER: u32 = 2;
const RETRIED: u32 = 4;

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
        control.resume(Time::ZERO);
        Some(Self {
            fanout: engine.fanout().clone(),
            subscriber,
            control,
            retries: Retries::new(Exponential::new(BACKOFF, LONGEST_BACKOFF)),
            workers,
            is_paused: false,
            running: Vec::new(),
            awaiting: Vec::new(),
            read: BTreeMap::new(),
            effects: BTreeMap::new(),
            unfinished: BTreeSet::new(),
            failing: BTreeMap::new(),
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
        content: &Content,
        server: &Server,
        trace: &mut Trace,
    ) -> Result<(), Violation> {
        let cache = content.cache();
        // The cache may lose an object that it had: the object leaves the selection.
        self.effects.retain(|_, effects| {
            effects.retain(|effect| !has(content, server, *effect));
            !effects.is_empty()
        });
        for (key, writes, until) in std::mem::take(&mut self.awaiting) {
            let is_moot = |write: &OwnWrite| {
                write.is_moot(&version(server.version), &found(server, write), &TheCache(cache))
            };
            if writes.iter().all(|write| write.is_reflected(&TheCache(cache))) {
                self.control.written(&key);
            } else if until > now {
                self.awaiting.push((key, writes, until));
            } else if writes.iter().all(|write| write.is_reflected(&TheCache(cache)) || is_moot(write)) {
                self.control.written(&key);
            } else {
                self.control.not_written(now, &key, PUT_OFF);
            }
        }
        while let Some(step) = self.control.next(now, &TheCache(cache)) {
            trace.line(|| format!("       controller: {step:?}"));
            match step {
                Step::AwaitWrites(key, writes) => {
                    let of_key = Key::of(key.as_str()).and_then(|key| self.effects.get_mut(&key));
                    for effect in of_key.into_iter().flatten() {
                        effect.is_gone |= !effect.is_answered && server.get(effect.key).is_none();
                    }
                    let at = version(server.version);
                    let known = |write: OwnWrite| write.resolve(&found(server, &write), &at);
                    let writes = writes.into_iter().flat_map(known).collect();
                    self.awaiting.push((key, writes, now + AWAITED));
                }
                Step::Reconcile(work) => self.begin(now, work, cache)?,
            }
        }
        Ok(())
    }

    fn begin(&mut self, now: Time, work: Work, cache: &Cache) -> Result<(), Violation> {
        let holds = |holds: bool, what: &str| {
            Invariant::Reconcile.holds(holds, || format!("{} is reconciled {what}", work.key))
        };
        let Some(key) = Key::of(work.key.as_str()) else { return holds(false, "and was never notified of") };
        holds(!self.is_paused, "while the controller is paused")?;
        holds(self.running.len() < self.workers, "by more workers than there are")?;
        holds(self.running.iter().all(|other| other.key != work.key), "by two workers")?;
        holds(work.causes != 0, "without a cause")?;
        holds(!self.effects.contains_key(&key), "before the cache has what it wrote")?;
        let Failing { failures, retried_at, .. } = self.failing.get(&key).copied().unwrap_or_default();
        holds(self.retries.failures(&work.key) == failures, "with a wrong count of failures")?;
        holds(work.causes != RETRIED || now >= retried_at, "before its delay after a failure has passed")?;
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
        let Some(of) = Key::of(work.key.as_str()) else { return };
        let (writes, effects) = carry_out(ending, server);
        if !effects.is_empty() {
            self.effects.entry(of).or_default().extend(effects);
        }
        let end = match ending {
            Ending::Done | Ending::Writes(_) | Ending::Deletes(_) => End::Settled,
            Ending::Again => End::Again(AGAIN, AGAIN_LATER),
            Ending::Interrupted(_) => {
                self.unfinished.insert(of);
                return self.control.interrupted(now, &work, writes);
            }
            Ending::WritesAndFails(_) | Ending::Unanswered { .. } | Ending::Fails => {
                let failing = self.failing.entry(of).or_default();
                failing.failures += 1;
                // An attempt before its time, for another cause, makes no later wait longer.
                if now >= failing.retried_at {
                    let delay = BACKOFF.saturating_mul(1 << failing.waits.min(20)).min(LONGEST_BACKOFF);
                    (failing.waits, failing.retried_at) = (failing.waits + 1, now + delay);
                }
                self.unfinished.insert(of);
                let end = End::Again(self.retries.failed(now, &work.key), RETRIED);
                return self.control.finished(now, &work, end, writes);
            }
        };
        self.failing.remove(&of);
        self.retries.settled(&work.key);
        self.unfinished.remove(&of);
        self.control.finished(now, &work, end, writes);
    }

    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
        self.control.pause();
    }

    pub(crate) fn resume(&mut self, now: Time) {
        self.is_paused = false;
        self.control.resume(now);
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

/// Carries out the writes of an ending. Returns the own writes that the controller remembers, and the effects on the server.
fn carry_out(ending: Ending, server: &mut Server) -> (Vec<OwnWrite>, Vec<Effect>) {
    let (key, deletes, arrives) = match ending {
        Ending::Writes(key) | Ending::WritesAndFails(key) | Ending::Interrupted(key) => (key, false, true),
        Ending::Deletes(key) => (key, true, true),
        Ending::Unanswered { key, deletes, arrives } => (key, deletes, arrives),
        Ending::Done | Ending::Again | Ending::Fails => return (Vec::new(), Vec::new()),
    };
    let before = server.get(key);
    match (arrives, deletes) {
        (true, true) => server.delete(key),
        (true, false) => server.put(key),
        (false, _) => {}
    }
    let is_answered = !matches!(ending, Ending::Unanswered { .. });
    let state = if deletes { before } else { server.get(key) };
    let (version, epoch, is_gone) = (server.version, server.truth.epoch(), false);
    let effect = state.filter(|_| arrives);
    let effect = effect.map(|state| Effect { key, state, version, deletes, is_answered, is_gone, epoch });
    let write = if is_answered { effect.map(answered) } else { Some(uncertain(key)) };
    (write.into_iter().collect(), effect.into_iter().collect())
}

fn answered(Effect { key, state, deletes, .. }: Effect) -> OwnWrite {
    let key = object_key(key);
    if deletes {
        OwnWrite::Gone { cache: 0, key, uid: uid(state) }
    } else {
        OwnWrite::Written { cache: 0, key, version: version(state.version) }
    }
}

fn uncertain(key: Key) -> OwnWrite {
    let key = object_key(key);
    OwnWrite::Uncertain {
        cache: 0,
        namespace: key.namespace().map(str::to_owned),
        name: Some(key.name().to_owned()),
    }
}

/// The answer to a question for the object of a write.
fn found(server: &Server, write: &OwnWrite) -> Vec<Found> {
    let key = match write {
        OwnWrite::Written { key, .. } | OwnWrite::Gone { key, .. } | OwnWrite::Absent { key, .. } => {
            Some(key.clone())
        }
        OwnWrite::Uncertain { namespace, name, .. } => {
            name.as_ref().and_then(|name| ObjectKey::new(namespace.as_deref(), name).ok())
        }
    };
    let found = key.and_then(|key| {
        let state = server.get(Key::of(key.as_str())?)?;
        Some(Found { key, version: version(state.version) })
    });
    found.into_iter().collect()
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(&render::version(number))
}

fn uid(state: State) -> Uid {
    Uid::new(&state.uid.to_string())
}

#[expect(clippy::expect_used, reason = "the names of the simulation are valid")]
fn object_key(key: Key) -> ObjectKey {
    key.text().parse().expect("a key")
}

/// Whether a cache has an effect, or something newer. A restored server voids the writes after its backup.
fn has(content: &Content, server: &Server, effect: Effect) -> bool {
    let state = cached(content.cache(), effect.key);
    let has_it = match effect.deletes {
        // A later state of a deleted incarnation is of before a restore that the informer cannot know of.
        true => state.is_none_or(|state| state.uid != effect.state.uid || state.version > effect.version),
        false => state.is_some_and(|state| state.version >= effect.version),
    };
    // While user code runs, only the version of the whole cache is known. Versions that cannot be compared block nothing.
    let whole = content.cache().resource_version();
    let reached = [whole, content.source_version(None), content.source_version(Some(effect.key.namespace()))];
    let is_past = reached.iter().any(|at| number(at) >= effect.version) || effect.version >= OPAQUE;
    // An object that nobody has any more needs no event.
    let is_gone = || effect.is_gone || !effect.is_answered && server.get(effect.key).is_none();
    let is_over = state.is_none() && is_gone();
    server.truth.epoch() != effect.epoch || has_it || is_past || is_over
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.fanout.unsubscribe(&self.subscriber);
        self.subscriber.remove();
    }
}
