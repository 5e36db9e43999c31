//! The cache: one writer, any number of readers.
//!
//! A [`Store`] is the writing side, which the owner of the reflector holds; a [`Cache`] is the reading side. They share one
//! published state, which readers load without waiting and writers replace (`published`). All parts of a state share memory
//! with their clones (`cow_vec`, `cow_table`, `posting`). So a snapshot costs a few reference counts, and the next state a
//! few hundred bytes. A re-list is prepared on a private clone while readers use the old state (design D4, D5).

mod build;
mod builtin;
mod cache;
mod checkpoint;
mod cow_table;
mod cow_vec;
mod handle;
mod inbox;
mod index;
mod objects;
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
pub use checkpoint::{Checkpoint, SourcePoint};
pub use handle::{Index, NameTaken};
pub use objects::Objects;
pub use replace::Replace;
pub use report::{IndexFault, IndexReport};
pub use snapshot::Snapshot;
pub use sources::SourceId;
pub use state::Scope;

use crate::{Change, Delta, Object, ObjectKey, Origin, ResourceVersion};
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

/// A change of many slots: first deletions, then additions and updates.
struct Steps<W> {
    gone: Vec<Gone>,
    /// At most one of each key.
    writes: W,
    /// The number of `writes`.
    count: usize,
}

struct Gone {
    slot: u32,
    known: Arc<Object>,
    /// The object's last state, as the change reports it: newer than the cached one if an event brought it.
    last: Arc<Object>,
}

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
    pub fn remove_source(&mut self, source: SourceId) -> Vec<Change> {
        self.shared.install_waiting();
        let Some(scope) = self.sources.remove(source) else { return Vec::new() };
        let state = self.shared.read().clone();
        let gone = covered(&state, &scope)
            .filter(|(_, object)| !self.sources.covers(object.key()))
            .map(|(slot, object)| Gone { slot, known: object.clone(), last: object.clone() })
            .collect();
        self.apply_all(state, Steps { gone, writes: [], count: 0 }, Origin::Scope)
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
        self.remove(source, object.key(), object.resource_version(), |known| last_known(known, &object))
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
        self.shared.inbox.is_waited_for()
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
    pub fn commit(&mut self, list: Replace, version: ResourceVersion) -> Result<Vec<Change>, CommitError> {
        self.shared.install_waiting();
        let is_ours = Arc::ptr_eq(&list.cache.shared, &self.shared);
        let feed = self.sources.get(list.source).filter(|_| is_ours).ok_or(CommitErrorKind::UnknownSource)?;
        if !list.is_restored && version.is_older_than(&feed.reached) {
            Err(CommitErrorKind::Older { listed: version.clone(), seen: feed.reached.clone() })?;
        }
        let state = self.shared.read().clone();
        let Replace { mut kept, staged, is_restored, source, pins_slots, by_key, .. } = list;
        // From here on the commit does not need this list's slots to stay the same, nor a lookup by key.
        drop((pins_slots, by_key));

        // A list of all objects is large, so no second vector of it is made: a bit per staged object says whether to write it,
        // and the changes are made while the objects are applied.
        let mut writes = Bits::default();
        let mut count = 0;
        let mut last_states = HashMap::new();
        for (place, replace::Staged { object, is_deleted }) in (0..).zip(&staged).filter_map(present) {
            if !feed.scope.contains(object.key()) {
                continue;
            }
            let is_write = match (state.locate(object.key().as_str()), *is_deleted) {
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
            if is_write {
                writes.set(place);
                count += 1;
            }
        }
        let is_newer = |object: &Object| version.is_older_than(object.resource_version());
        let gone = covered(&state, &feed.scope)
            .filter(|(slot, _)| !kept.contains(*slot))
            .filter(|(slot, object)| is_restored || !is_newer(object) || last_states.contains_key(slot))
            .map(|(slot, object)| {
                let last =
                    last_states.get(&slot).map_or_else(|| object.clone(), |last| last_known(object, last));
                Gone { slot, known: object.clone(), last }
            })
            .collect();
        self.sources.synced(source, version, is_restored);
        let written = (0..).zip(staged).filter(|(place, _)| writes.contains(*place));
        let writes = written.filter_map(|(_, staged)| Some(staged?.object));
        Ok(self.apply_all(state, Steps { gone, writes, count }, Origin::List))
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
    ) -> Vec<Change> {
        let Steps { gone, writes, count } = steps;
        if gone.is_empty() && count == 0 {
            self.publish_progress();
            return Vec::new();
        }
        let published = state.slots.clone();
        let shared = self.shared.clone();
        let reports = &shared.reports;
        let mut changes = Vec::with_capacity(gone.len() + count);
        let mut displaced = Vec::new();
        for Gone { slot, known, last } in gone {
            let filing = Filing::plan(&state.indexes, slot, Some(&known), None, reports);
            state.apply(slot, SlotChange::Remove, filing, &mut displaced);
            self.vacated_slots.push(slot);
            changes.push(Change { delta: Delta::Deleted { old: known, last }, origin });
        }
        for new in writes {
            let known = state.locate(new.key().as_str()).map(|(slot, known)| (slot, known.clone()));
            let delta = match known {
                Some((slot, old)) => {
                    let filing = Filing::plan(&state.indexes, slot, Some(&old), Some(&new), reports);
                    state.apply(slot, SlotChange::Replace(new.clone()), filing, &mut displaced);
                    Delta::Updated { old, new }
                }
                None => {
                    let slot = self.take_slot(state.slots.len());
                    let filing = Filing::plan(&state.indexes, slot, None, Some(&new), reports);
                    state.apply(slot, SlotChange::Insert(new.clone()), filing, &mut displaced);
                    Delta::Added(new)
                }
            };
            changes.push(Change { delta, origin });
        }
        self.publish(state, &published);
        changes
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

/// The last state of the cached object. If `last` belongs to another incarnation, which came and went unseen, that is the
/// cached state.
fn last_known(known: &Arc<Object>, last: &Arc<Object>) -> Arc<Object> {
    if last.uid() == known.uid() { last.clone() } else { known.clone() }
}

fn present<P, T>((place, staged): (P, &Option<T>)) -> Option<(P, &T)> {
    Some((place, staged.as_ref()?))
}

/// The objects of a scope and their slots.
fn covered<'a>(state: &'a State, scope: &Scope) -> impl Iterator<Item = (u32, &'a Arc<Object>)> + use<'a> {
    let (all, some) = match scope {
        Scope::All => (Some(0..state.slots.len()), None),
        Scope::Namespace(namespace) => (None, state.namespace(namespace).map(|posting| posting.iter())),
    };
    let slots = all.into_iter().flatten().chain(some.into_iter().flatten());
    slots.filter_map(|slot| Some((slot, state.object(slot)?)))
}
