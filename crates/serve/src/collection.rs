//! What has to be known of the objects of one resource to serve them.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{Object, Status};

/// The objects of one resource, with their history.
///
/// All collections of one server count in one sequence of revisions, the `resourceVersion` of the API: a revision names
/// one state of all of them.
pub trait Collection: Send + Sync + 'static {
    /// The newest revision of the server. A list at it, or events after it, can be asked for at once.
    fn revision(&self) -> u64;

    /// One object as it was at a revision, `None` for now.
    fn get<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, CollectionError>>;

    /// The objects of a range as they were at a revision, `None` for now.
    fn list<'a>(
        &'a self,
        range: &'a Range,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Listing, CollectionError>>;

    /// What happens to all objects of the collection after a revision, which is not newer than [`revision`](Self::revision).
    fn events(&self, after: u64) -> Result<Box<dyn Events>, CollectionError>;
}

/// Which objects of a collection, in the order of the text `namespace/name`, as the keys of etcd are sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Range {
    /// Only of this namespace.
    pub namespace: Option<Box<str>>,
    /// Only those behind this namespace and name.
    pub after: Option<(Box<str>, Box<str>)>,
}

/// A list of objects.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The revision that the list shows: the one that was asked for, or the newest.
    pub revision: u64,
    /// In the order of the text `namespace/name`.
    pub objects: Vec<Arc<Object>>,
}

/// The events of a collection after a revision.
pub trait Events: Send {
    /// Waits for the next events and returns all there are. Cancel safe: nothing is lost when the future is dropped.
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, CollectionError>>;

    /// The newest revision up to which [`next`](Self::next) has returned everything, for a bookmark.
    fn revision(&self) -> u64;
}

/// Events in their order, at least one.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// In the order of their revisions.
    pub events: Vec<Event>,
}

/// Something that happened to one object.
#[derive(Debug, Clone)]
pub struct Event {
    /// What happened.
    pub change: Change,
    /// The object afterwards; for a deletion its last state, with the revision of the deletion in its body too.
    pub object: Arc<Object>,
    /// The object before, unless it was added; tells whether it has just entered or left a selector.
    pub previous: Option<Arc<Object>>,
}

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It has another revision.
    Modified,
    /// It is gone.
    Deleted,
}

/// Why a collection cannot answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CollectionError {
    /// The history does not go back that far.
    #[error("the history starts at revision {oldest}")]
    Expired {
        /// The oldest revision that can be asked for.
        oldest: u64,
    },
    /// The resource is not served any more: running watches end.
    #[error("the resource is gone")]
    Gone,
    /// Anything else, as the client is to be told.
    #[error(transparent)]
    Failed(#[from] Status),
}
