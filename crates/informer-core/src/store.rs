//! The cache: one writer, any number of readers.
//!
//! A [`Store`] is the writing side, which the owner of the reflector holds; a [`Cache`] is the reading side. They share one
//! published state, which readers load without waiting and writers replace (`published`). All parts of a state share memory
//! with their clones (`cow_vec`, `cow_table`, `posting`). So a snapshot costs a few reference counts, and the next state a
//! few hundred bytes. A re-list is prepared on a private clone while readers use the old state (design D4, D5).

mod build;
mod builtin;
mod cache;
mod change_set;
mod checkpoint;
mod cow_table;
mod cow_vec;
mod handle;
mod index;
mod objects;
mod pending;
mod posting;
mod published;
mod replace;
mod report;
mod shared;
mod snapshot;
mod sources;
mod state;
mod validate;

use std::collections::HashMap;
use std::sync::Arc;

pub use cache::Cache;
pub use change_set::ChangeSet;
pub use checkpoint::{Checkpoint, SourcePoint};
pub use handle::{Index, NameTaken};
pub use objects::Objects;
pub use replace::Replace;
pub use report::{IndexFault, IndexReport};
pub use snapshot::Snapshot;
pub use sources::SourceId;
pub use state::Scope;

use crate::{Change, Delta, Object, ObjectKey, Origin, ResourceVersion};
use change_set::{Step, last_known};
use index::IndexEntry;
use replace::Bits;
use shared::Shared;
use sources::{Feed, Sources};
use state::{Filing, Indexes, SlotChange, Slots, State, is_news, is_revision};

/// The writing side of a cache. When a method returns, its effect is visible in the [`Cache`].
///
/// It has no I/O, no clock and no thread. See [`Cache`] for an example.
pub struct Store {
    shared: Arc<Shared>,
    sources: Sources,
    /// Slots without an object.
    free_slots: Vec<u32>,
    /// Slots without an object to which a running list may still refer.
    vacated_slots: Vec<u32>,
    pins_slots: Arc<()>,
}

/// The parts of the published state that the writer needs to change one slot.
struct Seen {
    known: Option<(u32, Arc<Object>)>,
    next_slot: u32,
    indexes: (Indexes, u64),
}

/// The changes of a step: first deletions, then additions and updates.
struct Steps<W> {
    /// The slots of the objects to delete.
    gone: Bits,
    /// By slot: the last states of objects to delete, where an event brought one.
    last_states: HashMap<u32, Arc<Object>>,
    /// The objects to add or update.
    writes: W,
    /// The slots of `writes`; [`NEW`] for those that had none.
    slots: Vec<u32>,
}

/// Stands for the slot of a key that has none yet.
const NEW: u32 = u32::MAX;

/// A list that was not applied. The cache is unchanged.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct CommitError(#[from] CommitErrorKind);

#[derive(Debug, Clone, thiserror::Error)]
enum CommitErrorKind {
    #[error(
        "the list at resourceVersion {listed} is older than what was seen already, {seen}; list again from there, or \
         begin a restored list when the server itself went back"
    )]
    Older { listed: ResourceVersion, seen: ResourceVersion },
    #[error("the list is of a source that this store does not have (any more)")]
    UnknownSource,
}

impl CommitError {
    /// Whether the list was older than what its source had shown already (contract L12).
    pub fn is_older_than_seen(&self) -> bool {
        matches!(self.0, CommitErrorKind::Older { .. })
    }

    /// Whether the source was removed while the list ran.
    pub fn is_unknown_source(&self) -> bool {
        matches!(self.0, CommitErrorKind::UnknownSource)
    }
}

impl Store {
    /// An empty store without sources.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared::new()),
            sources: Sources::default(),
            free_slots: Vec::new(),
            vacated_slots: Vec::new(),
            pins_slots: Arc::default(),
        }
    }

    /// The reading side.
    pub fn cache(&self) -> Cache {
        Cache { shared: self.shared.clone() }
    }

    /// Adds a source: one more list and watch that feeds the store. It is synced once its first list is committed. Until then
    /// it does not hold back the version of a store that was synced. Its first list should be consistent, so that the version
    /// stays true for its objects.
    ///
    /// Scopes may overlap for a while, for instance when a source of all namespaces replaces many sources of one namespace.
    pub fn add_source(&mut self, scope: Scope) -> SourceId {
        let id = self.sources.add(scope);
        self.publish_progress();
        id
    }

    /// Removes a source, and the objects that no other source covers. Does nothing for an unknown one.
    pub fn remove_source(&mut self, source: SourceId) -> ChangeSet {
        self.shared.install_waiting();
        let Some(scope) = self.sources.remove(source) else { return ChangeSet::default() };
        let state = self.shared.read().clone();
        let is_uncovered = |object: &Arc<Object>| !self.sources.covers(object.key());
        let gone = covered(&state, &scope).filter(|slot| state.object(*slot).is_some_and(is_uncovered));
        let gone = gone.collect();
        let steps = Steps { gone, last_states: HashMap::new(), writes: [], slots: Vec::new() };
        self.apply_all(state, steps, Origin::Scope)
    }

    /// Applies an ADDED or MODIFIED event.
    ///
    /// An event that is not newer than the cached version of its key changes nothing (contract W11); if the order is
    /// unknown, the event is applied. So is one that the source has not reached yet and that has another content at the cached
    /// version: the cached object was kept from before a backup was restored. An event outside the source's scope, or of an
    /// unknown source, changes nothing.
    pub fn upsert(&mut self, source: SourceId, object: Arc<Object>) -> Option<Change> {
        self.shared.install_waiting();
        let feed = self.sources.get(source).filter(|feed| feed.scope.contains(object.key()))?;
        let is_ahead = feed.is_behind(object.resource_version());
        // While the source has no version, ADDED events come in no order (contract W9).
        let moved =
            !feed.reached.is_unset_or_zero() && self.sources.advance(source, object.resource_version());
        let Seen { known, next_slot, indexes } = self.see(object.key());
        let delta = match known {
            // The cached object stays, but the source has reached this version.
            Some((_, known)) if !(is_news(&object, &known) || is_ahead && is_revision(&object, &known)) => {
                if moved {
                    self.publish_progress();
                }
                return None;
            }
            Some((slot, old)) => {
                self.apply_one(slot, Some(&old), Some(&object), indexes);
                Delta::Updated { old, new: object }
            }
            None => {
                let slot = self.take_slot(next_slot);
                self.apply_one(slot, None, Some(&object), indexes);
                Delta::Added(object)
            }
        };
        Some(Change { delta, origin: Origin::Watch })
    }

    /// Applies a DELETED event, which has the object's last state.
    ///
    /// A deletion older than the cached version of the key is that of a former incarnation, and changes nothing.
    pub fn delete(&mut self, source: SourceId, object: Arc<Object>) -> Option<Change> {
        self.remove(source, object.key(), object.resource_version(), |known| {
            last_known(known, &object).clone()
        })
    }

    /// As [`Store::delete`], for an event without the last state of the object: the change has the cached state instead.
    pub fn delete_key(
        &mut self,
        source: SourceId,
        key: &ObjectKey,
        version: &ResourceVersion,
    ) -> Option<Change> {
        self.remove(source, key, version, Arc::clone)
    }

    fn remove(
        &mut self,
        source: SourceId,
        key: &ObjectKey,
        version: &ResourceVersion,
        last: impl FnOnce(&Arc<Object>) -> Arc<Object>,
    ) -> Option<Change> {
        self.shared.install_waiting();
        self.sources.get(source).filter(|feed| feed.scope.contains(key))?;
        let moved = self.sources.advance(source, version);
        let Seen { known, indexes, .. } = self.see(key);
        let known = known.filter(|(_, known)| !version.is_older_than(known.resource_version()));
        let Some((slot, known)) = known else {
            if moved {
                self.publish_progress();
            }
            return None;
        };
        self.apply_one(slot, Some(&known), None, indexes);
        self.vacated_slots.push(slot);
        let last = last(&known);
        Some(Change { delta: Delta::Deleted { old: known, last }, origin: Origin::Watch })
    }

    /// Whether a change may run an index function of the user's.
    pub fn runs_user_code(&self) -> bool {
        self.has_waiting_index() || self.shared.read().indexes.iter().flatten().any(IndexEntry::is_users)
    }

    /// Whether an index reads the bytes of each new version, so that a list takes long.
    pub fn reads_bytes(&self) -> bool {
        self.shared.read().indexes.iter().flatten().any(IndexEntry::reads_bytes)
    }

    /// Whether the next change installs an index that was added late, which may run its function.
    pub fn has_waiting_index(&self) -> bool {
        self.shared.pending.is_waited_for()
    }

    /// Applies a bookmark: the source has reached this version without further changes.
    pub fn bookmark(&mut self, source: SourceId, version: &ResourceVersion) {
        self.shared.install_waiting();
        if self.sources.advance(source, version) {
            self.publish_progress();
        }
    }

    /// Begins to stage a list of a source.
    pub fn begin_replace(&self, source: SourceId) -> Replace {
        Replace::new(self.cache(), source, self.pins_slots.clone(), false)
    }

    /// As [`Store::begin_replace`], for a server that was restored from a backup: an equal version may mean another
    /// state, so contents are compared, and versions may go back.
    pub fn begin_restored_replace(&self, source: SourceId) -> Replace {
        Replace::new(self.cache(), source, self.pins_slots.clone(), true)
    }

    /// Commits a list in one step: readers see the old state or the new one. `version` is the list's.
    ///
    /// The changes begin with the deletions in the source's scope; additions and updates follow in list order. Objects newer
    /// than the list stay. O(changes), and a bit per slot.
    ///
    /// # Errors
    ///
    /// When the list is older than what its source had reached, or its source was removed. Nothing changes then.
    pub fn commit(&mut self, list: Replace, version: ResourceVersion) -> Result<ChangeSet, CommitError> {
        self.shared.install_waiting();
        let is_ours = Arc::ptr_eq(&list.cache.shared, &self.shared);
        let feed = self.sources.get(list.source).filter(|_| is_ours).ok_or(CommitErrorKind::UnknownSource)?;
        if !list.is_restored && version.is_older_than(&feed.reached) {
            Err(CommitErrorKind::Older { listed: version.clone(), seen: feed.reached.clone() })?;
        }
        let state = self.shared.read().clone();
        let Replace { mut kept, mut staged, deleted, is_restored, source, pins_slots, by_key, .. } = list;
        let staged_keys = by_key.len();
        // From here on the commit does not need this list's slots to stay the same, nor a lookup by key.
        drop((pins_slots, by_key));

        let mut slots = Vec::with_capacity(staged_keys);
        let mut last_states = HashMap::new();
        for (place, staged) in (0..).zip(staged.iter_mut()) {
            let Some(object) = staged.as_ref().filter(|object| feed.scope.contains(object.key())) else {
                *staged = None;
                continue;
            };
            let known = state.locate(object.key().as_str());
            let is_write = match (known, deleted.contains(place)) {
                (None, is_deleted) => !is_deleted,
                (Some((slot, known)), true) => {
                    if is_restored || !object.resource_version().is_older_than(known.resource_version()) {
                        kept.clear(slot);
                        last_states.insert(slot, object.clone());
                    }
                    false
                }
                (Some((slot, known)), false) => {
                    kept.set(slot);
                    Replace::is_change(is_restored, object, known)
                        || Replace::goes_back(object, known) && version.is_at_least(known.resource_version())
                }
            };
            match is_write {
                true => slots.push(known.map_or(NEW, |(slot, _)| slot)),
                false => *staged = None,
            }
        }
        let is_newer = |object: &Object| version.is_older_than(object.resource_version());
        let is_gone = |slot: &u32| {
            let is_past = |object: &Arc<Object>| is_restored || !is_newer(object);
            !kept.contains(*slot)
                && state.object(*slot).is_some_and(|it| is_past(it) || last_states.contains_key(slot))
        };
        let gone = covered(&state, &feed.scope).filter(is_gone).collect();
        self.sources.synced(source, version, is_restored);
        let steps = Steps { gone, last_states, writes: staged.into_iter().flatten(), slots };
        Ok(self.apply_all(state, steps, Origin::List))
    }

    /// Whether a source's initial list was committed.
    pub fn is_source_synced(&self, source: SourceId) -> bool {
        self.sources.get(source).is_some_and(Feed::is_synced)
    }

    /// The version that a source has reached; unset for an unknown one.
    pub fn source_version(&self, source: SourceId) -> ResourceVersion {
        self.sources.get(source).map(|feed| feed.reached.clone()).unwrap_or_default()
    }

    /// The number of cached objects in the scope of a source; 0 for an unknown one. O(1).
    pub fn covered_len(&self, source: SourceId) -> usize {
        let state = self.shared.read();
        match self.sources.get(source).map(|feed| &feed.scope) {
            None => 0,
            Some(Scope::All) => state.len(),
            Some(Scope::Namespace(namespace)) => state.namespace(namespace).map_or(0, posting::Posting::len),
        }
    }

    /// As [`Cache::resource_version`].
    pub fn resource_version(&self) -> ResourceVersion {
        self.sources.reached().clone()
    }

    /// As [`Snapshot::revision`], of the current state.
    pub fn revision(&self) -> u64 {
        self.shared.read().revision
    }

    /// As [`Cache::is_synced`].
    pub fn is_synced(&self) -> bool {
        self.sources.is_synced()
    }

    /// As [`Cache::is_unchanged`].
    pub fn is_unchanged(&self, key: &str, version: &ResourceVersion) -> bool {
        self.cache().is_unchanged(key, version)
    }

    /// As [`Cache::take_reports`].
    pub fn take_reports(&self) -> Vec<IndexReport> {
        self.shared.reports.take()
    }

    /// Changes one slot of the published state.
    fn apply_one(
        &mut self,
        slot: u32,
        old: Option<&Arc<Object>>,
        new: Option<&Arc<Object>>,
        seen: (Indexes, u64),
    ) {
        let mut displaced = Vec::new();
        let (mut indexes, mut indexes_version) = seen;
        loop {
            // Planning runs user code, so it comes before the draft, which is a lock.
            let filing = Filing::plan(&indexes, slot, old, new, &self.shared.reports);
            let change = match (old, new) {
                (_, None) => SlotChange::Remove,
                (None, Some(new)) => SlotChange::Insert(new.clone()),
                (Some(_), Some(new)) => SlotChange::Replace(new.clone()),
            };
            let mut state = self.shared.draft();
            if state.indexes_version == indexes_version {
                state.apply(slot, change, filing, &mut displaced);
                state.resource_version = self.sources.reached().clone();
                state.revision += 1;
                return state.publish();
            }
            // An index was added or removed in the meantime: plan again.
            (indexes, indexes_version) = (state.indexes.clone(), state.indexes_version);
        }
    }

    /// Everything that an event needs from the published state.
    fn see(&self, key: &ObjectKey) -> Seen {
        let state = self.shared.read();
        Seen {
            known: state.locate(key.as_str()).map(|(slot, known)| (slot, known.clone())),
            next_slot: state.slots.len(),
            indexes: (state.indexes.clone(), state.indexes_version),
        }
    }

    /// Changes many slots of `state`, a clone of the published one, then publishes it. Returns the changes in order.
    fn apply_all(
        &mut self,
        mut state: State,
        steps: Steps<impl IntoIterator<Item = Arc<Object>>>,
        origin: Origin,
    ) -> ChangeSet {
        let Steps { gone, last_states, writes, mut slots } = steps;
        if gone.is_empty() && slots.is_empty() {
            self.publish_progress();
            return ChangeSet::default();
        }
        let before = state.slots.clone();
        let shared = self.shared.clone();
        let reports = &shared.reports;
        let mut displaced = Vec::new();
        for slot in gone.clone().into_iter() {
            let filing = Filing::plan(&state.indexes, slot, state.object(slot), None, reports);
            state.apply(slot, SlotChange::Remove, filing, &mut displaced);
        }
        // After the table of keys has shrunk: the two together are the peak of a list that lacks everything.
        self.vacated_slots.extend(gone.clone().into_iter());
        for (slot, new) in slots.iter_mut().zip(writes) {
            if *slot == NEW {
                let known = state.locate(new.key().as_str()).map(|(slot, _)| slot);
                *slot = known.unwrap_or_else(|| self.take_slot(state.slots.len()));
            }
            let old = state.object(*slot);
            let filing = Filing::plan(&state.indexes, *slot, old, Some(&new), reports);
            let change = match old {
                Some(_) => SlotChange::Replace(new),
                None => SlotChange::Insert(new),
            };
            state.apply(*slot, change, filing, &mut displaced);
        }
        let after = state.slots.clone();
        self.publish(state, &before);
        let (gone, written) = (gone.into_iter(), slots.into_iter());
        ChangeSet::of(Step { origin, before, after, gone, last_states, written })
    }

    /// Publishes a prepared state. `published` are the slots that it started from.
    fn publish(&mut self, mut next: State, published: &Slots) {
        next.resource_version = self.sources.reached().clone();
        next.is_synced = self.sources.is_synced();
        next.revision += 1;
        loop {
            let mut state = self.shared.draft();
            if state.indexes_version == next.indexes_version {
                *state = next;
                return state.publish();
            }
            // An index was added or removed in the meantime.
            let (indexes, version) = (state.indexes.clone(), state.indexes_version);
            drop(state);
            next.take_over(&indexes, version, published, &self.shared.reports);
        }
    }

    fn publish_progress(&self) {
        let mut state = self.shared.draft();
        state.resource_version = self.sources.reached().clone();
        state.is_synced = self.sources.is_synced();
        state.publish();
    }

    /// A free slot, or the next new one.
    fn take_slot(&mut self, next: u32) -> u32 {
        // A running list refers to kept objects by slot, so vacated slots are reused only when no list runs.
        if Arc::strong_count(&self.pins_slots) == 1 {
            self.free_slots.append(&mut self.vacated_slots);
        }
        self.free_slots.pop().unwrap_or(next)
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({:?})", self.cache())
    }
}

/// The slots of a scope. Some have no object.
fn covered(state: &State, scope: &Scope) -> impl Iterator<Item = u32> + use<> {
    let (all, some) = match scope {
        Scope::All => (Some(0..state.slots.len()), None),
        Scope::Namespace(namespace) => (None, state.namespace(namespace).map(|posting| posting.iter())),
    };
    all.into_iter().flatten().chain(some.into_iter().flatten())
}
