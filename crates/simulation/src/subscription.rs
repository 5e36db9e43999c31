//! One subscription of the engine's, and a reader that believes what it is told and checks that it can be true.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use informer_core::engine::{Engine, Fanout, Subscriber};
use informer_core::mailbox::{self, Delivery, Notice, WhenFull};
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
    /// Of the snapshot that it joined with, what was not told yet.
    present_left: usize,
    /// What the cache was loaded with, and at which revision.
    loaded: Option<(u64, Vec<Arc<Object>>)>,
    believed: BTreeMap<Key, Arc<Object>>,
    /// Keys of which changes were dropped.
    unsure: [bool; KEYS as usize],
    told_synced: bool,
    /// What belongs to the first content, once that is known.
    first: Option<Vec<Arc<Object>>>,
    /// Exactly what is to be told or dropped, where nothing may be merged.
    exact: Option<VecDeque<(u64, Change)>>,
    cache_synced: bool,
    /// What may be told of in another order than it happened.
    pub(crate) doubts: Doubts,
    fanout: Arc<Fanout>,
    /// What it wants to be told once more.
    resync: Option<Snapshot>,
}

enum Phase {
    /// Changes are collected.
    Registered,
    /// The snapshot is taken.
    Looked(Snapshot),
    Joined,
}

/// Room for whatever a run can change.
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
            subscriber: engine.fanout().subscribe(Delivery { mode, split_recreated: reading.split })?,
            phase: Phase::Registered,
            joined_at: 0,
            present_left: 0,
            loaded: None,
            believed: BTreeMap::new(),
            unsure: [false; KEYS as usize],
            told_synced: false,
            first: None,
            exact: exact.then(VecDeque::new),
            cache_synced,
            doubts,
            fanout: engine.fanout().clone(),
            resync: None,
        })
    }

    /// Its snapshot may have changes of which no subscription was notified yet: which ones it hears of is not known here.
    pub(crate) fn joins_beside_user_code(&mut self) {
        if !self.is_joined() {
            self.exact = None;
        }
    }

    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.phase, Phase::Joined)
    }

    /// Takes the next of the two steps from being registered to being joined.
    pub(crate) fn join(&mut self, cache: &Cache) {
        match std::mem::replace(&mut self.phase, Phase::Joined) {
            Phase::Registered => self.phase = Phase::Looked(cache.snapshot()),
            Phase::Looked(snapshot) => {
                let present: Vec<_> = snapshot.iter().cloned().collect();
                self.joined_at = snapshot.revision();
                let loaded = self.loaded.take().filter(|(revision, _)| *revision > snapshot.revision());
                self.present_left = loaded.map_or(present.len(), |(_, content)| content.len());
                if let Some(exact) = &mut self.exact {
                    exact.retain(|(revision, _)| *revision > snapshot.revision());
                }
                if snapshot.is_synced() && self.first.is_none() {
                    self.first = Some(present.clone());
                }
                self.subscriber.with_mailbox(|mailbox| mailbox.join(present, snapshot.revision()));
            }
            Phase::Joined => {}
        }
    }

    /// A change was made, and the cache has this revision by now.
    pub(crate) fn offered(&mut self, revision: u64, change: &Change, initial: bool) {
        let is_in_snapshot = match &self.phase {
            Phase::Registered => false,
            Phase::Looked(snapshot) => snapshot.revision() >= revision,
            Phase::Joined => self.joined_at >= revision,
        };
        let may_merge = self.may_merge(initial);
        if let Some(exact) = self.exact.as_mut().filter(|_| !may_merge && !is_in_snapshot) {
            exact.push_back((revision, change.clone()));
        }
    }

    /// The cache has begun with what was saved.
    pub(crate) fn load(&mut self, revision: u64, content: &[Arc<Object>]) {
        if self.is_joined() {
            self.present_left = content.len();
        } else {
            self.loaded = Some((revision, content.to_vec()));
        }
    }

    pub(crate) fn cache_synced(&mut self, first: &[Arc<Object>]) {
        self.cache_synced = true;
        self.first = Some(first.to_vec());
    }

    /// Where changes are dropped the first content is kept, but merged.
    fn may_merge(&self, initial: bool) -> bool {
        initial && is_dropped(self.reading.mode)
    }

    pub(crate) fn take(&mut self) -> Option<Notice> {
        self.subscriber.take()
    }

    pub(crate) fn told(
        &mut self,
        notice: &Notice,
        cache: &Cache,
        cache_synced: bool,
        truth: &Truth,
    ) -> Result<(), Violation> {
        match notice {
            Notice::Change { change, initial } => {
                Invariant::Story.holds(!initial || !self.told_synced, || {
                    format!("{change:?} is initial, after the first content")
                })?;
                self.told_in_order(change, *initial)?;
                self.told_change(change, cache, truth)
            }
            Notice::Synced => {
                Invariant::Story.holds(cache_synced && !self.told_synced, || {
                    "synced twice, or before the cache".to_owned()
                })?;
                self.told_synced = true;
                self.check_first_content(cache)
            }
            Notice::Lagged(count) => {
                let drops = matches!(self.reading.mode, Mode::Dropped(capacity) if capacity < PLENTY);
                Invariant::Story.holds(drops && *count > 0, || format!("lagged by {count}"))?;
                if let Some(exact) = &mut self.exact {
                    let count = usize::try_from(*count).unwrap_or(usize::MAX);
                    Invariant::Story.holds(count <= exact.len(), || {
                        format!("lagged by {count}, and only {} were left to tell", exact.len())
                    })?;
                    exact.drain(..count);
                }
                self.unsure = [true; KEYS as usize];
                Ok(())
            }
        }
    }

    /// Each change as it was made, and none left out but those that were counted, where none may be merged.
    fn told_in_order(&mut self, change: &Change, initial: bool) -> Result<(), Violation> {
        if self.present_left > 0 {
            self.present_left -= 1;
            let is_addition = initial && matches!(change.delta, Delta::Added(_));
            return Invariant::Story.holds(is_addition, || format!("{change:?} instead of what was there"));
        }
        if self.may_merge(initial) {
            return Ok(());
        }
        let Some(exact) = &mut self.exact else { return Ok(()) };
        let made = exact.pop_front().map(|(_, made)| made);
        Invariant::Story.holds(made.as_ref().is_some_and(|made| is_same(made, change)), || {
            format!("{change:?} where {made:?} was made")
        })
    }

    fn told_change(&mut self, change: &Change, cache: &Cache, truth: &Truth) -> Result<(), Violation> {
        let doubts = self.doubts.clone();
        let illegal = |what: &str| Invariant::Story.violated(format!("{change:?}: {what}"));
        let Some(key) = Key::of(change.key().as_str()) else { return Err(illegal("no such key")) };
        let believed = self.believed.get(&key);
        let unsure = self.unsure.get_mut(usize::from(key.0)).is_none_or(std::mem::take);
        let follows = |old: &Arc<Object>| unsure || believed.is_some_and(|known| is_same_object(known, old));
        let state = |object: &Object| {
            let read = stored::read(object).filter(|(_, state)| truth.was_ever(key, *state));
            read.map(|(_, state)| state).ok_or_else(|| illegal("that was never true"))
        };
        let forwards = |old: State, new: State| doubts.has(key) || old.version < new.version;
        match &change.delta {
            Delta::Added(new) => {
                let state = state(new)?;
                if !unsure && believed.is_some() {
                    return Err(illegal("it was there already"));
                }
                if !doubts.has(key)
                    && cache.get(new.key()).is_some_and(|cached| {
                        stored::read(&cached).is_none_or(|(_, cached)| cached.version < state.version)
                    })
                {
                    return Err(illegal("the cache is behind it"));
                }
                self.believed.insert(key, new.clone());
            }
            Delta::Updated { old, new } => {
                let (before, after) = (state(old)?, state(new)?);
                if !follows(old) {
                    return Err(illegal("something else was told before"));
                }
                if !forwards(before, after) {
                    return Err(illegal("time goes back"));
                }
                if self.reading.split && before.uid != after.uid {
                    return Err(illegal("a re-creation in one, where it was to be two"));
                }
                self.believed.insert(key, new.clone());
            }
            Delta::Deleted { old, last } => {
                let (before, after) = (state(old)?, state(last)?);
                if !follows(old) {
                    return Err(illegal("something else was told before"));
                }
                if !forwards(before, after) && before != after {
                    return Err(illegal("time goes back"));
                }
                if !doubts.has(key) && before.uid != after.uid {
                    return Err(illegal("it ends an incarnation that was never told of"));
                }
                self.believed.remove(&key);
            }
        }
        Ok(())
    }

    /// All of the first content was told, but for what is gone or different by now.
    fn check_first_content(&self, cache: &Cache) -> Result<(), Violation> {
        for object in self.first.iter().flatten() {
            let is_current = cache.get(object.key()).is_some_and(|now| Arc::ptr_eq(&now, object));
            let told = Key::of(object.key().as_str()).is_some_and(|key| self.believed.contains_key(&key));
            Invariant::Story.holds(told || !is_current, || format!("synced before {object:?} was told"))?;
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
        let (backlog, bound) = (self.subscriber.backlog(), bound + usize::from(KEYS) + self.present_left);
        if backlog <= bound { Ok(()) } else { Err(format!("a backlog of {backlog} is more than {bound}")) }
    }

    /// Wants to be told of everything once more.
    pub(crate) fn resync(&mut self, cache: &Cache) {
        if self.is_joined() && self.resync.is_none() {
            self.resync = Some(cache.snapshot());
        }
    }

    pub(crate) fn waits_for_resync(&self) -> bool {
        self.resync.is_some()
    }

    /// Of one that has read all that there is, whether that is what the cache has; then a resync tells nothing that is older,
    /// or was not told (D4, R2).
    pub(crate) fn is_up_to_date(&mut self, cache: &Cache, is_listing: bool) -> Result<(), String> {
        let told = self.subscriber.with_mailbox(|mailbox| mailbox.revision()).unwrap_or_default();
        let revision = cache.snapshot().revision();
        if told < revision {
            return Err(format!("it is at revision {told}, the cache at {revision}"));
        }
        self.believes(cache)?;
        if is_listing {
            return Ok(());
        }
        let Some(snapshot) = self.resync.take().filter(|snapshot| snapshot.revision() <= told) else {
            return Ok(());
        };
        let current = |object: &&Arc<Object>| {
            cache.get(object.key()).is_some_and(|current| Arc::ptr_eq(&current, object))
        };
        for object in snapshot.iter().filter(current) {
            let Some(key) = Key::of(object.key().as_str()) else { continue };
            let is_known = self.believed.get(&key).is_some_and(|known| is_same_object(known, object));
            if !is_known && !self.is_unsure(key) {
                return Err(format!("a resync tells {object:?}, of which it has not heard"));
            }
        }
        Ok(())
    }

    fn is_unsure(&self, key: Key) -> bool {
        self.unsure.get(usize::from(key.0)).copied().unwrap_or_default()
    }

    /// Whether everything was told, and adds up to what the cache has.
    pub(crate) fn knows_all_of(&self, cache: &Cache, cache_synced: bool) -> Result<(), String> {
        if self.subscriber.backlog() > 0 {
            return Err(format!("{} are left though there is no more", self.subscriber.backlog()));
        }
        if let Some((_, made)) = self.exact.iter().flatten().next() {
            return Err(format!("{made:?} was neither told nor counted"));
        }
        if self.told_synced != cache_synced {
            return Err(format!("told to be synced: {}, synced: {cache_synced}", self.told_synced));
        }
        self.believes(cache)
    }

    /// Whether what was told adds up to what the cache has.
    fn believes(&self, cache: &Cache) -> Result<(), String> {
        for key in Key::all().filter(|key| !self.is_unsure(*key)) {
            let (believed, cached) = (self.believed.get(&key), cache.get_str(key.text()));
            let same = match (believed, &cached) {
                (None, None) => true,
                (Some(believed), Some(cached)) => is_same_object(believed, cached),
                _ => false,
            };
            if !same {
                return Err(format!("it believes {believed:?} where the cache has {cached:?}"));
            }
        }
        Ok(())
    }
}

fn is_dropped(mode: Mode) -> bool {
    matches!(mode, Mode::Dropped(_))
}

/// The same version, if perhaps fetched again.
fn is_same_object(a: &Arc<Object>, b: &Arc<Object>) -> bool {
    Arc::ptr_eq(a, b) || stored::read(a) == stored::read(b)
}

fn is_same(a: &Change, b: &Change) -> bool {
    a.source == b.source
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
