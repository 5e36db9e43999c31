//! The reading side.

use std::sync::Arc;

use super::report::IndexReport;
use super::shared::Shared;
use super::snapshot::Snapshot;
use crate::object::{Comparison, ContentHash};
use crate::{ContentKey, Object, ObjectKey, ResourceVersion};

/// The objects of a [`Store`](super::Store), for any number of readers. A clone reads the same store.
///
/// No reader waits: neither for another reader's loop, nor for an event or a list that is being applied, nor for a preempted
/// writer. Each method sees one state. Use a [`Snapshot`] for several reads of the same state.
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

impl Cache {
    /// The object of a key. O(1).
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.get_str(key.as_str())
    }

    /// The object of a key given as text, `namespace/name` or `name`. O(1).
    pub fn get_str(&self, key: &str) -> Option<Arc<Object>> {
        self.with(key, Arc::clone)
    }

    /// Calls `look` with the object of a key, if it exists. Cheaper than [`Cache::get_str`], because it takes no reference
    /// count. O(1).
    ///
    /// `look` blocks no other thread, but keeps the whole state in memory, so it should be short.
    pub fn with<R>(&self, key: &str, look: impl FnOnce(&Arc<Object>) -> R) -> Option<R> {
        self.shared.read().locate(key).map(|(_, object)| look(object))
    }

    /// Whether the cache has the object of a key at this version. If so, a listed item needs no decoding. O(1).
    pub fn is_unchanged(&self, key: &str, version: &ResourceVersion) -> bool {
        !version.is_unset()
            && self.shared.read().locate(key).is_some_and(|(_, object)| object.resource_version() == version)
    }

    /// Whether the cached object of a key has this version, and arrived as bytes with this hash. O(1).
    pub(crate) fn is_unchanged_content(
        &self,
        key: &str,
        version: &ResourceVersion,
        hash: ContentHash,
    ) -> bool {
        let is_same = |known: &Object| {
            known.resource_version() == version && known.content().compare(hash) == Comparison::Same
        };
        !version.is_unset() && self.shared.read().locate(key).is_some_and(|(_, known)| is_same(known))
    }

    /// The key of the content hashes of its objects.
    pub fn content_key(&self) -> ContentKey {
        *self.shared.content_key.get_or_init(ContentKey::random)
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.shared.read().len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The current state, as a snapshot that never changes. O(1), whatever the number of objects and indexes.
    pub fn snapshot(&self) -> Snapshot {
        let state = self.shared.read().clone();
        Snapshot::new(state, &self.shared)
    }

    /// The version that the cache reflects: the oldest that its sources have reached. It never goes back, except after a
    /// restored backup, or when the sources that had reached it are removed. It is unset until every initial source has
    /// objects, listed or loaded, and when no source with objects is left.
    ///
    /// A source that is added later counts once it is synced and has reached that version.
    pub fn resource_version(&self) -> ResourceVersion {
        self.shared.read().resource_version.clone()
    }

    /// Whether each source's initial list was committed.
    pub fn is_synced(&self) -> bool {
        self.shared.read().is_synced
    }

    /// The bytes of memory that objects ([`Object::held_bytes`]), tables and indexes take, within 20 % of the allocator's
    /// figure (contract C10). Not counted are older versions that a consumer holds, decoded values, and what objects share in
    /// their storage ([`Storage::shared_bytes`](crate::Storage::shared_bytes)).
    ///
    /// O(number of objects / 75 + number of index values); takes only a short lock per index.
    pub fn held_bytes(&self) -> usize {
        let state = self.shared.read().clone();
        state.held_bytes + state.table_bytes()
    }

    /// Builds the label index now: O(number of labels). Otherwise the second query with a label selector does.
    ///
    /// Costs about 150 bytes per object with ten labels. Without it selectors scan all objects' labels.
    pub fn index_labels(&self) {
        self.shared.index_labels();
    }

    /// The failures of index functions since the last call: the latest 1,024.
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
