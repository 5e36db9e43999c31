//! The reading side.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use super::build::{Build, Inbox};
use super::builtin::ByLabel;
use super::index::IndexCore;
use super::published::{Draft, Published};
use super::report::{IndexReport, Reports};
use super::snapshot::Snapshot;
use super::state::{BY_LABEL, State};
use crate::sync::{AtomicU8, Mutex, MutexGuard, Ordering, Reading};
use crate::{Object, ObjectKey, ResourceVersion};

/// The objects of a [`Store`](super::Store), for any number of readers. A clone reads the same store.
///
/// No reader waits: not for another one's loop, nor for an event or a (re-)list being applied, nor for a writer that
/// the system stopped in the middle of that. Each method is one step. What has to hold together over several steps
/// reads a [`Snapshot`].
///
/// ```
/// use std::sync::Arc;
/// use informer_core::{Object, ResourceVersion, Scope, Store};
///
/// let mut store = Store::new();
/// let source = store.add_source(Scope::All);
/// let mut list = store.begin_replace(source);
/// list.stage(Arc::new(Object::from_json(
///     br#"{"metadata":{"name":"cart","namespace":"shop","resourceVersion":"7","labels":{"app":"cart"}}}"#,
/// )?));
/// store.commit(list, ResourceVersion::new("9"))?;
///
/// let cache = store.cache();
/// assert!(cache.is_synced());
/// assert!(cache.get(&"shop/cart".parse()?).is_some());
/// let snapshot = cache.snapshot();
/// assert_eq!(snapshot.resource_version(), &ResourceVersion::new("9"));
/// assert_eq!(snapshot.select(&"app=cart".parse()?).count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cache {
    pub(super) shared: Arc<Shared>,
}

/// What the writing and the reading side share.
pub(super) struct Shared {
    state: Published,
    names: Mutex<HashMap<Arc<str>, Name>>,
    label_queries: AtomicU8,
    pub(super) inbox: Inbox,
    pub(super) reports: Reports,
}

/// A named index while it is being built, and its parts afterwards.
pub(super) type Name = Option<Box<dyn Any + Send + Sync>>;

/// Label queries were answered by scanning; the index is being built, or is there.
const SCANNED_ONCE: u8 = 1;
const INDEXED: u8 = 2;

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            state: Published::new(State::new()),
            names: Mutex::default(),
            label_queries: AtomicU8::new(0),
            inbox: Inbox::default(),
            reports: Reports::default(),
        }
    }

    /// Held for one lookup, or for cloning the state.
    #[inline]
    pub(super) fn read(&self) -> Reading<State> {
        self.state.read()
    }

    /// Held for one change, or for swapping in a prepared state.
    pub(super) fn draft(&self) -> Draft<'_> {
        self.state.draft()
    }

    pub(super) fn names(&self) -> MutexGuard<'_, HashMap<Arc<str>, Name>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Builds the index by labels unless somebody did, or is at it.
    pub(super) fn index_labels(&self) {
        if self.label_queries.swap(INDEXED, Ordering::AcqRel) == INDEXED {
            return;
        }
        let base = self.read().clone();
        let core = IndexCore::new(None, ByLabel(base.hasher.clone()));
        self.build(Build::new(core, Some(BY_LABEL), base, &self.reports));
    }

    /// Told of each query that the index by labels would have answered. One is a single question; two are a habit.
    pub(super) fn note_label_query(&self) {
        let first = self.label_queries.compare_exchange(0, SCANNED_ONCE, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err() {
            self.index_labels();
        }
    }
}

impl Cache {
    /// The object of a key. O(1).
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.get_str(key.as_str())
    }

    /// The object of a key given as text, `namespace/name` or `name`. O(1).
    pub fn get_str(&self, key: &str) -> Option<Arc<Object>> {
        self.with(key, Arc::clone)
    }

    /// What `look` says of the object of a key; it is not called if there is none. Cheaper than [`Cache::get_str`], for
    /// the object need not be held. O(1).
    ///
    /// Nobody waits for `look`, but what it looks at stays in memory, as the whole cache was: it is to be short.
    pub fn with<R>(&self, key: &str, look: impl FnOnce(&Arc<Object>) -> R) -> Option<R> {
        self.shared.read().locate(key).map(|(_, object)| look(object))
    }

    /// Whether the object of a key is known to be of this version: if so, a listed item needs no decoding. O(1).
    pub fn is_unchanged(&self, key: &str, version: &ResourceVersion) -> bool {
        !version.is_unset()
            && self.shared.read().locate(key).is_some_and(|(_, object)| object.resource_version() == version)
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.shared.read().len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything as it is now, for good. O(1), whatever the number of objects and indexes.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.shared.read().clone();
        Snapshot::new(state, &self.shared)
    }

    /// The version that the cache reflects: the oldest of what its sources have reached; never goes back, but for a
    /// restored backup, or when the sources that had come this far are removed. Unset until all sources that there were at
    /// the start have a content, listed or loaded, and when none is left that has.
    ///
    /// A source that is added later counts once it is synced and has come as far.
    pub fn resource_version(&self) -> ResourceVersion {
        self.shared.read().resource_version.clone()
    }

    /// Whether each source's first list is in.
    pub fn is_synced(&self) -> bool {
        self.shared.read().is_synced
    }

    /// The bytes of memory that all of it takes: objects ([`Object::held_bytes`]), tables and indexes, within a fifth of
    /// what the allocator gives (contract C10). Not counted are older versions that somebody holds, decoded values, and
    /// what objects share in their storage ([`Storage::shared_bytes`](crate::Storage::shared_bytes)).
    ///
    /// O(number of objects / 75 + number of index values); no lock is held meanwhile but for a moment per index.
    pub fn held_bytes(&self) -> usize {
        let state = self.shared.read().clone();
        state.held_bytes + state.table_bytes()
    }

    /// Builds the index by labels now: O(number of labels). Otherwise the second query with a label selector does.
    ///
    /// Costs about 150 bytes per object of ten labels. Until it is there selectors look at all objects' labels.
    pub fn index_labels(&self) {
        self.shared.index_labels();
    }

    /// What index functions could not index since this was last called: the latest 1,024 of it.
    pub fn take_reports(&self) -> Vec<IndexReport> {
        self.shared.reports.take()
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.shared.read();
        write!(f, "Cache({} objects at {:?})", state.len(), state.resource_version)
    }
}
