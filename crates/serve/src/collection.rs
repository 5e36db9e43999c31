//! The interface that a caller implements for the objects of one resource.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::{BoxFuture, ready};

use crate::{Object, Status};

/// The objects of one resource, with their history.
///
/// All collections of one server share one sequence of revisions, the `resourceVersion` of the API: a revision names
/// one state of all of them.
pub trait Collection: Send + Sync + 'static {
    /// The newest revision of the server. Lists at it, and events after it, are available at once.
    fn revision(&self) -> u64;

    /// What time it is where the objects are: ages in tables are seen from then. A collection of the past has a past time.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// One object as of a revision; `None` means now.
    fn get<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, CollectionError>>;

    /// The objects of a range as of a revision; `None` means now.
    fn list<'a>(
        &'a self,
        range: &'a Range,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Listing, CollectionError>>;

    /// The events of all objects of the collection after a revision, which is not newer than
    /// [`revision`](Self::revision).
    fn events(&self, after: u64) -> Result<Box<dyn Events>, CollectionError>;
}

/// A range of objects, in the order of the text `namespace/name`, as the keys of etcd are sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Range {
    /// Only this namespace.
    pub namespace: Option<Box<str>>,
    /// Only objects after this namespace and name.
    pub after: Option<(Box<str>, Box<str>)>,
}

/// A list of objects, which are read while the response is sent.
pub struct Listing {
    /// The revision of the list: the one requested, or the newest.
    pub revision: u64,
    /// How many objects are in the range.
    pub count: usize,
    /// In the order of the text `namespace/name`.
    pub objects: Box<dyn Objects>,
}

/// The objects of a list, some at a time. The client decides how fast they are asked for.
pub trait Objects: Send {
    /// The next objects; none at the end. An error in the middle of a response breaks the connection, so that no client takes a part for
    /// the whole.
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Object>>, CollectionError>>;
}

impl Listing {
    /// A list of objects that are in memory.
    pub fn of(revision: u64, objects: Vec<Arc<Object>>) -> Self {
        Self { revision, count: objects.len(), objects: in_memory(objects) }
    }
}

/// Objects that are in memory, all at once.
pub(crate) fn in_memory(objects: Vec<Arc<Object>>) -> Box<dyn Objects> {
    Box::new(InMemory(objects))
}

struct InMemory(Vec<Arc<Object>>);

impl Objects for InMemory {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Object>>, CollectionError>> {
        Box::pin(ready(Ok(std::mem::take(&mut self.0))))
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listing(at {}, {} objects)", self.revision, self.count)
    }
}

/// The events of a collection after a revision.
pub trait Events: Send {
    /// Waits for the next events and returns all that are available. Cancel safe: dropping the future loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, CollectionError>>;

    /// The newest revision up to which [`next`](Self::next) has returned everything. Bookmarks carry it.
    fn revision(&self) -> u64;

    /// What time it is where the events happen, as [`Collection::now`].
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Events in order, at least one.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// In the order of their revisions.
    pub events: Vec<Event>,
}

/// An event of one object.
#[derive(Debug, Clone)]
pub struct Event {
    /// The kind of the event.
    pub change: Change,
    /// The object after the event; for a deletion its last state, with the revision of the deletion in its body too.
    pub object: Arc<Object>,
    /// The object before, unless it was added. Shows whether the object enters or leaves a selector.
    pub previous: Option<Arc<Object>>,
}

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object is new.
    Added,
    /// The object has another revision.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// Why a collection cannot answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CollectionError {
    /// The history no longer has that revision.
    #[error("the history starts at revision {oldest}")]
    Expired {
        /// The oldest revision that is available.
        oldest: u64,
    },
    /// The resource is no longer served: running watches end.
    #[error("the resource is gone")]
    Gone,
    /// Any other failure, as the client gets it.
    #[error(transparent)]
    Failed(#[from] Status),
}
