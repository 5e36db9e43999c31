//! A subscription whose reader builds a view from the changes, and checks that each change can be true.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use informer_core::engine::{Engine, Fanout, Subscriber};
use informer_core::mailbox::{self, Delivery, Filtered, Notice, WhenFull};
use informer_core::store::Snapshot;
use informer_core::{Cache, Change, Delta, Object};

use crate::doubt::Doubts;
use crate::invariant::{Invariant, Violation};
use crate::plan::{Mode, Reading};
use crate::stored;
use crate::truth::{KEYS, Key, State, Truth};

pub(crate) struct Subscription {
    pub(crate) reading: Reading,
    subscriber: Arc<Subscriber>,
    phase: Phase,
    /// The revision of the snapshot that it joined with.
    joined_at: u64,
    /// The number of objects of that snapshot that it has not received.
    snapshot_left: usize,
    /// The loaded objects, with the revision of the load.
    loaded: Option<(u64, Vec<Arc<Object>>)>,
    /// The objects that it knows; with a filter, those that the filter matches.
    believed: BTreeMap<Key, Arc<Object>>,
    /// The keys whose changes may have been dropped.
    unsure: [bool; KEYS as usize],
    is_synced: bool,
    /// The objects of the initial list, once it is complete.
    initial_list: Option<Vec<Arc<Object>>>,
    /// Every change that it must receive, or that `Lagged` must count; `None` if the mailbox may coalesce.
    exact: Option<VecDeque<(u64, Change)>>,
    cache_synced: bool,
    /// The keys whose changes may come in another order than they happened.
    pub(crate) doubts: Doubts,
    fanout: Arc<Fanout>,
    /// The snapshot that a requested resync repeats.
    resync: Option<Snapshot>,
    alarm: Arc<Alarm>,
}

/// Whether a reader was woken since it last read everything.
struct Alarm(AtomicBool);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

enum Phase {
    /// The mailbox collects changes.
    Registered,
    /// The snapshot is taken.
    Looked(Snapshot),
    Joined,
}

/// A capacity that no run exhausts.
pub(crate) const PLENTY: u16 = 10_000;

impl Subscription {
    /// `None` after a stop.
    pub(crate) fn new(reading: Reading, engine: &Engine, cache_synced: bool, doubts: Doubts) -> Option<Self> {
        let every = |capacity: u16, when_full| mailbox::Mode::Every { capacity: capacity.into(), when_full };
        let mode = match reading.mode {
            Mode::Latest => mailbox::Mode::Latest,
            Mode::Merged(capacity) => every(capacity, WhenFull::Coalesce),
            Mode::Dropped(capacity) => every(capacity, WhenFull::Drop),
        };
        let exact = (reading.mode == Mode::Merged(PLENTY) || is_dropped(reading.mode)) && !reading.split;
        Some(Self {
            reading,
            subscriber: engine.fanout().subscribe(Delivery {
                mode,
                split_recreated: reading.split,
                keep_cancelled: false,
            })?,
            phase: Phase::Registered,
            joined_at: 0,
            snapshot_left: 0,
            loaded: None,
            believed: BTreeMap::new(),
            unsure: [false; KEYS as usize],
            is_synced: false,
            initial_list: None,
            exact: exact.then(VecDeque::new),
            cache_synced,
            doubts,
            fanout: engine.fanout().clone(),
            resync: None,
            alarm: Arc::new(Alarm(AtomicBool::new(true))),
        })
    }

    /// It joins while user code has the writer. Its snapshot may have changes that no subscription has received, so
    /// the oracle cannot say which changes it will receive.
    pub(crate) fn joins_beside_user_code(&mut self) {
        if !self.is_joined() {
            self.exact = None;
        }
    }

    /// Whether the reader has something to read, as far as it knows.
    pub(crate) fn is_awake(&self) -> bool {
        self.alarm.0.load(Ordering::Relaxed)
    }

    /// The reader waits to be woken, after it has read.
    pub(crate) fn sleep(&self) {
        self.alarm.0.store(false, Ordering::Relaxed);
        self.subscriber.register(&Waker::from(self.alarm.clone()));
    }

    /// The reader goes on without being woken.
    pub(crate) fn is_not_done(&self) {
        self.alarm.0.store(true, Ordering::Relaxed);
    }

    /// Whether the reader sleeps although there is something to read.
    pub(crate) fn oversleeps(&self, cache_synced: bool) -> bool {
        let is_due = self.subscriber.backlog() > 0 || cache_synced != self.is_synced;
        self.reading.pace > 0 && self.is_joined() && is_due && !self.is_awake()
    }

    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.phase, Phase::Joined)
    }

    /// Takes the next of the two steps to join: the snapshot, then the mailbox.
    pub(crate) fn join(&mut self, cache: &Cache) {
        match std::mem::replace(&mut self.phase, Phase::Joined) {
            Phase::Registered => self.phase = Phase::Looked(cache.snapshot()),
            Phase::Looked(snapshot) => {
                let present: Vec<_> = snapshot.iter().cloned().collect();
                self.joined_at = snapshot.revision();
                let loaded = self.loaded.take().filter(|(revision, _)| *revision > snapshot.revision());
                self.snapshot_left = loaded.map_or(present.len(), |(_, content)| content.len());
                if let Some(exact) = &mut self.exact {
                    exact.retain(|(revision, _)| *revision > snapshot.revision());
                }
                if snapshot.is_synced() && self.initial_list.is_none() {
                    self.initial_list = Some(present.clone());
                }
                self.subscriber.with_mailbox(|mailbox| mailbox.join(present, snapshot.revision()));
            }
            Phase::Joined => {}
        }
    }

    /// The cache changed, and has this revision by now.
    pub(crate) fn offered(&mut self, revision: u64, change: &Change, initial: bool) {
        let is_in_snapshot = match &self.phase {
            Phase::Registered => false,
            Phase::Looked(snapshot) => snapshot.revision() >= revision,
            Phase::Joined => self.joined_at >= revision,
        };
        let may_coalesce = self.may_coalesce(initial);
        if let Some(exact) = self.exact.as_mut().filter(|_| !may_coalesce && !is_in_snapshot) {
            exact.push_back((revision, change.clone()));
        }
    }

    /// The cache loaded these objects.
    pub(crate) fn load(&mut self, revision: u64, content: &[Arc<Object>]) {
        if self.is_joined() {
            self.snapshot_left = content.len();
        } else {
            self.loaded = Some((revision, content.to_vec()));
        }
    }

    pub(crate) fn cache_synced(&mut self, initial_list: &[Arc<Object>]) {
        self.cache_synced = true;
        self.initial_list = Some(initial_list.to_vec());
    }

    /// A mailbox that drops changes keeps the initial list, but coalesces it.
    fn may_coalesce(&self, initial: bool) -> bool {
        initial && is_dropped(self.reading.mode)
    }

    pub(crate) fn take(&mut self) -> Option<Notice> {
        self.subscriber.take()
    }

    pub(crate) fn receive(
        &mut self,
        notice: &Notice,
        cache: &Cache,
        cache_synced: bool,
        truth: &Truth,
    ) -> Result<(), Violation> {
        match notice {
            Notice::Change { change, initial } => {
                Invariant::Story.holds(!initial || !self.is_synced, || {
                    format!("{change:?} belongs to the initial list, which was complete")
                })?;
                self.check_order(change, *initial)?;
                self.check_change(change, cache, truth)
            }
            Notice::Synced => {
                Invariant::Story.holds(cache_synced && !self.is_synced, || {
                    "synced twice, or before the cache is".to_owned()
                })?;
                self.is_synced = true;
                self.check_initial_list(cache)
            }
            Notice::Lagged(count) => {
                let drops = matches!(self.reading.mode, Mode::Dropped(capacity) if capacity < PLENTY);
                Invariant::Story.holds(drops && *count > 0, || format!("lagged by {count}"))?;
                if let Some(exact) = &mut self.exact {
                    let count = usize::try_from(*count).unwrap_or(usize::MAX);
                    Invariant::Story.holds(count <= exact.len(), || {
                        format!("lagged by {count}, and only {} changes were pending", exact.len())
                    })?;
                    exact.drain(..count);
                }
                self.unsure = [true; KEYS as usize];
                Ok(())
            }
        }
    }

    /// Where the mailbox may not coalesce, the reader receives each change exactly as it was made.
    fn check_order(&mut self, change: &Change, initial: bool) -> Result<(), Violation> {
        if self.snapshot_left > 0 {
            self.snapshot_left -= 1;
            let is_addition = initial && matches!(change.delta, Delta::Added(_));
            return Invariant::Story
                .holds(is_addition, || format!("{change:?} instead of an addition from the snapshot"));
        }
        if self.may_coalesce(initial) {
            return Ok(());
        }
        let Some(exact) = &mut self.exact else { return Ok(()) };
        let made = exact.pop_front().map(|(_, made)| made);
        Invariant::Story.holds(made.as_ref().is_some_and(|made| is_same(made, change)), || {
            format!("{change:?}, and the next change is {made:?}")
        })
    }

    fn check_change(&mut self, change: &Change, cache: &Cache, truth: &Truth) -> Result<(), Violation> {
        let doubts = self.doubts.clone();
        let illegal = |what: &str| Invariant::Story.violated(format!("{change:?}: {what}"));
        let Some(key) = Key::of(change.key().as_str()) else { return Err(illegal("no such key")) };
        let state = |object: &Object| {
            let read = stored::read(object).filter(|(_, state)| truth.was_ever(key, *state));
            read.map(|(_, state)| state).ok_or_else(|| illegal("the object never had that state"))
        };
        let forwards = |old: State, new: State| doubts.has(key) || old.version < new.version;
        // A filter must not hide a state that was never true.
        let now = match &change.delta {
            Delta::Added(new) => state(new)?,
            Delta::Updated { old, new: last } | Delta::Deleted { old, last } => {
                state(old).and(state(last))?
            }
        };
        let filter = |object: &Arc<Object>| self.matches(object);
        // A change that the filter hides after `Lagged` leaves the reader as unsure of the key as before.
        let Some(filtered) = Filtered::of(change.delta.clone(), filter, filter) else { return Ok(()) };
        let believed = self.believed.get(&key);
        let unsure = self.unsure.get_mut(usize::from(key.0)).is_none_or(std::mem::take);
        let follows = |old: &Arc<Object>| unsure || believed.is_some_and(|known| is_same_object(known, old));
        match &filtered {
            Filtered::Added(new) => {
                let state = state(new)?;
                if !unsure && believed.is_some() {
                    return Err(illegal("the view has the object"));
                }
                if !doubts.has(key)
                    && cache.get(new.key()).is_some_and(|cached| {
                        stored::read(&cached).is_none_or(|(_, cached)| cached.version < state.version)
                    })
                {
                    return Err(illegal("the cache has an older state"));
                }
                self.believed.insert(key, new.clone());
            }
            Filtered::Updated { old, new } => {
                let (before, after) = (state(old)?, state(new)?);
                // The same version as another version of the API shows it.
                let is_reshaped = before == after && stored::resource(old) != stored::resource(new);
                if !follows(old) {
                    return Err(illegal("the view has another state"));
                }
                if !forwards(before, after) && !is_reshaped {
                    return Err(illegal("time goes back"));
                }
                if self.reading.split && before.uid != after.uid {
                    return Err(illegal("a re-creation as an update, though it has to be split"));
                }
                self.believed.insert(key, new.clone());
            }
            Filtered::Left { last } => {
                let before = state(last)?;
                if !follows(last) {
                    return Err(illegal("the view has another state"));
                }
                if before.uid != now.uid {
                    return Err(illegal("an incarnation has left the view, and was deleted"));
                }
                self.believed.remove(&key);
            }
            Filtered::Deleted { old, last } => {
                let (before, after) = (state(old)?, state(last)?);
                if matches!(change.delta, Delta::Updated { .. }) && before.uid == now.uid {
                    return Err(illegal("a deletion of what has only left the view"));
                }
                if !follows(old) {
                    return Err(illegal("the view has another state"));
                }
                if !forwards(before, after) && before != after {
                    return Err(illegal("time goes back"));
                }
                if !doubts.has(key) && before.uid != after.uid {
                    return Err(illegal("it deletes an incarnation that the view does not have"));
                }
                self.believed.remove(&key);
            }
        }
        Ok(())
    }

    /// Every object of the initial list was received, unless it changed or was deleted meanwhile.
    fn check_initial_list(&self, cache: &Cache) -> Result<(), Violation> {
        for object in self.initial_list.iter().flatten() {
            let is_current = cache.get(object.key()).is_some_and(|now| Arc::ptr_eq(&now, object));
            let is_received = !self.matches(object)
                || Key::of(object.key().as_str()).is_some_and(|key| self.believed.contains_key(&key));
            Invariant::Story
                .holds(is_received || !is_current, || format!("synced before {object:?} was received"))?;
        }
        Ok(())
    }

    pub(crate) fn check_bound(&self) -> Result<(), String> {
        if !self.is_joined() {
            return Ok(());
        }
        let bound = match self.reading.mode {
            Mode::Latest => 0,
            Mode::Merged(capacity) | Mode::Dropped(capacity) => usize::from(capacity.max(1)),
        };
        let (backlog, bound) = (self.subscriber.backlog(), bound + usize::from(KEYS) + self.snapshot_left);
        if backlog <= bound { Ok(()) } else { Err(format!("a backlog of {backlog} is more than {bound}")) }
    }

    /// Asks for a resync.
    pub(crate) fn resync(&mut self, cache: &Cache) {
        if self.is_joined() && self.resync.is_none() {
            self.resync = Some(cache.snapshot());
            self.is_not_done();
        }
    }

    pub(crate) fn waits_for_resync(&self) -> bool {
        self.resync.is_some()
    }

    /// Checks a subscription that has read everything: it knows what the cache has, and a resync repeats only what it
    /// received (D4, R2).
    pub(crate) fn is_up_to_date(&mut self, cache: &Cache, is_listing: bool) -> Result<(), String> {
        let received = self.subscriber.with_mailbox(|mailbox| mailbox.revision()).unwrap_or_default();
        let revision = cache.snapshot().revision();
        if received < revision {
            return Err(format!("it is at revision {received}, the cache at {revision}"));
        }
        self.believes(cache)?;
        if is_listing {
            return Ok(());
        }
        let Some(snapshot) = self.resync.take().filter(|snapshot| snapshot.revision() <= received) else {
            return Ok(());
        };
        let current = |object: &&Arc<Object>| {
            cache.get(object.key()).is_some_and(|current| Arc::ptr_eq(&current, object))
        };
        for object in snapshot.iter().filter(current).filter(|object| self.matches(object)) {
            let Some(key) = Key::of(object.key().as_str()) else { continue };
            let is_known = self.believed.get(&key).is_some_and(|known| is_same_object(known, object));
            if !is_known && !self.is_unsure(key) {
                return Err(format!("a resync repeats {object:?}, which was never received"));
            }
        }
        Ok(())
    }

    /// Whether the filter matches the object.
    fn matches(&self, object: &Object) -> bool {
        // The last bit is the label, by which the server may select.
        let is_in = |(_, state): (Key, State)| state.value & 2 == 0;
        !self.reading.filters || stored::read(object).is_some_and(is_in)
    }

    fn is_unsure(&self, key: Key) -> bool {
        self.unsure.get(usize::from(key.0)).copied().unwrap_or_default()
    }

    /// Checks that nothing is pending, and that the view equals the cache.
    pub(crate) fn knows_all_of(&self, cache: &Cache, cache_synced: bool) -> Result<(), String> {
        if self.subscriber.backlog() > 0 {
            return Err(format!("{} changes are pending after all were read", self.subscriber.backlog()));
        }
        if let Some((_, made)) = self.exact.iter().flatten().next() {
            return Err(format!("{made:?} was neither received nor counted as lag"));
        }
        if self.is_synced != cache_synced {
            return Err(format!("synced: {}, the cache: {cache_synced}", self.is_synced));
        }
        self.believes(cache)
    }

    /// Checks that the view equals what the filter matches of the cache.
    fn believes(&self, cache: &Cache) -> Result<(), String> {
        for key in Key::all().filter(|key| !self.is_unsure(*key)) {
            let cached = cache.get_str(key.text()).filter(|cached| self.matches(cached));
            let believed = self.believed.get(&key);
            let same = match (believed, &cached) {
                (None, None) => true,
                (Some(believed), Some(cached)) => is_same_object(believed, cached),
                _ => false,
            };
            if !same {
                return Err(format!("the view has {believed:?}, the cache {cached:?}"));
            }
        }
        Ok(())
    }
}

fn is_dropped(mode: Mode) -> bool {
    matches!(mode, Mode::Dropped(_))
}

/// Whether both are the same version, perhaps fetched twice.
fn is_same_object(a: &Arc<Object>, b: &Arc<Object>) -> bool {
    Arc::ptr_eq(a, b) || stored::read(a) == stored::read(b)
}

fn is_same(a: &Change, b: &Change) -> bool {
    a.origin == b.origin
        && match (&a.delta, &b.delta) {
            (Delta::Added(a), Delta::Added(b)) => Arc::ptr_eq(a, b),
            (Delta::Updated { old: a, new: to_a }, Delta::Updated { old: b, new: to_b })
            | (Delta::Deleted { old: a, last: to_a }, Delta::Deleted { old: b, last: to_b }) => {
                Arc::ptr_eq(a, b) && Arc::ptr_eq(to_a, to_b)
            }
            _ => false,
        }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.fanout.unsubscribe(&self.subscriber);
        self.subscriber.remove();
    }
}
