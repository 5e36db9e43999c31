//! All objects of a server, with their history: one sequence of revisions over the collections of all resources.
//!
//! One [`Writer`] exists at a time. Its owner knows the next revision, writes it into the object and puts the object
//! into its collection. Readers wait only for this last step.

mod backup;
mod body;
mod key;
mod log;
mod objects;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock};
use serve::Object;

pub use backup::Backup;
pub(crate) use body::{Order, decode, encode};
pub(crate) use objects::Objects;
pub(crate) use text::Text;

/// Group and plural name, which all versions of a resource share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupResource {
    pub(crate) group: Box<str>,
    pub(crate) plural: Box<str>,
}

impl GroupResource {
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self { group: group.into(), plural: plural.into() }
    }
}

/// All objects of a server.
#[derive(Debug)]
pub(crate) struct Store {
    revision: Arc<AtomicU64>,
    writing: Mutex<()>,
    collections: RwLock<BTreeMap<GroupResource, Objects>>,
    history: usize,
}

/// The right to write.
pub(crate) struct Writer<'a> {
    store: &'a Store,
    _writing: MutexGuard<'a, ()>,
}

impl Store {
    /// An empty store at revision 1 that keeps `history` events of each resource.
    pub(crate) fn new(history: usize) -> Self {
        Self {
            revision: Arc::new(AtomicU64::new(1)),
            writing: Mutex::new(()),
            collections: RwLock::default(),
            history,
        }
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Waits for the right to write. A thread that already has it would wait forever.
    pub(crate) fn writer(&self) -> Writer<'_> {
        let writing = self.writing.lock();
        Writer { store: self, _writing: writing }
    }

    pub(crate) fn objects(&self, resource: &GroupResource) -> Option<Objects> {
        let collections = self.collections.read();
        collections.get(resource).cloned()
    }

    /// The objects of a resource; adds the resource if it is new.
    pub(crate) fn open(&self, resource: GroupResource) -> Objects {
        let mut collections = self.collections.write();
        let new = || Objects::new(Arc::clone(&self.revision), self.history);
        collections.entry(resource).or_insert_with(new).clone()
    }

    /// Removes a resource: its objects disappear without events, and its watches end.
    pub(crate) fn close(&self, resource: &GroupResource) {
        let mut collections = self.collections.write();
        if let Some(objects) = collections.remove(resource) {
            objects.end_watches();
        }
    }

    /// Discards all history.
    pub(crate) fn compact(&self) {
        let _writing = self.writer();
        self.all().iter().for_each(|(_, objects)| objects.compact());
    }

    /// Ends all watches.
    pub(crate) fn end_watches(&self) {
        self.all().iter().for_each(|(_, objects)| objects.end_watches());
    }

    fn all(&self) -> Vec<(GroupResource, Objects)> {
        let collections = self.collections.read();
        collections.iter().map(|(resource, objects)| (resource.clone(), objects.clone())).collect()
    }
}

impl Writer<'_> {
    /// The revision of the next write.
    pub(crate) fn next_revision(&self) -> u64 {
        self.store.revision() + 1
    }

    /// Adds or replaces an object, which has the next revision.
    pub(crate) fn put(&self, objects: &Objects, object: Arc<Object>) {
        debug_assert_eq!(object.revision, self.next_revision());
        objects.put(object);
    }

    /// Replaces all objects of a resource; the new ones keep their revisions. Discards history before the next
    /// revision, and ends all watches.
    pub(crate) fn replace(&self, objects: &Objects, all: Vec<Arc<Object>>) {
        objects.replace(all, self.store.revision());
    }

    /// Removes the object of this name; `last` is its last state with the next revision.
    pub(crate) fn remove(&self, objects: &Objects, last: Arc<Object>) {
        debug_assert_eq!(last.revision, self.next_revision());
        objects.remove(last);
    }
}
