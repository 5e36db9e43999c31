//! The change of one key.

use std::sync::Arc;

use crate::{Object, ObjectKey};

/// One change of the cache, as subscriptions get it.
#[derive(Debug, Clone)]
pub struct Change {
    /// The kind of the change, with the objects.
    pub delta: Delta,
    /// How it became known.
    pub origin: Origin,
}

/// The difference at one key.
#[derive(Debug, Clone)]
pub enum Delta {
    /// The key had no object and now has one.
    Added(Arc<Object>),
    /// The key's object was replaced by another version, or by another incarnation ([`Object::uid`] differs).
    Updated {
        /// The state before.
        old: Arc<Object>,
        /// The state now.
        new: Arc<Object>,
    },
    /// The key no longer has an object.
    Deleted {
        /// The cached state before the deletion.
        old: Arc<Object>,
        /// The last known state: that of the event, with the resourceVersion of the deletion; or `old` if a list revealed the
        /// deletion.
        last: Arc<Object>,
    },
}

/// How a change became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// An event of a watch.
    Watch,
    /// A list that was compared with the cache. States in between may have been missed. A deletion with this origin is a
    /// tombstone (client-go: `DeletedFinalStateUnknown`).
    List,
    /// The object's namespace was removed from the informer.
    Scope,
}

impl Change {
    /// The key that changed.
    pub fn key(&self) -> &ObjectKey {
        match &self.delta {
            Delta::Added(object)
            | Delta::Updated { new: object, .. }
            | Delta::Deleted { last: object, .. } => object.key(),
        }
    }
}
