//! The cache at one moment.

use std::sync::Arc;

use informer_core::{DecodeError, Object, ObjectKey, ResourceVersion, Selector, View};

use crate::Error;
use crate::informer::Informer;

/// All objects of an informer at one moment, with the version that they reflect. It never changes.
///
/// Taking one is O(1) and waits for nobody; it agrees with the informer's indexes and holds the memory of what it shows.
pub struct Snapshot<T> {
    informer: Informer<T>,
    snapshot: informer_core::Snapshot,
}

impl<T: View> Snapshot<T> {
    pub(crate) fn new(informer: Informer<T>) -> Self {
        let snapshot = informer.core().cache.snapshot();
        Self { informer, snapshot }
    }

    pub(crate) fn raw(&self) -> &informer_core::Snapshot {
        &self.snapshot
    }

    /// The version of this state.
    pub fn resource_version(&self) -> ResourceVersion {
        self.snapshot.resource_version().clone()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.snapshot.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The object of a key.
    ///
    /// # Errors
    ///
    /// When there is none ([`Error::is_not_found`]), or it cannot be read as a `T`.
    pub fn get(&self, key: &ObjectKey) -> Result<Arc<T>, Error> {
        let object =
            self.snapshot.get(key).ok_or_else(|| Error::not_in_cache(self.informer.resource(), key))?;
        Ok(self.informer.view(object)?)
    }

    /// All objects, in no order; one that cannot be read as a `T` comes as an error.
    pub fn iter(&self) -> impl Iterator<Item = Result<Arc<T>, DecodeError>> {
        self.snapshot.iter().ahead().map(|object| self.informer.view(object))
    }

    /// The objects of a namespace (all namespaces: `None`) with matching labels, in no order. Answered from an index:
    /// O(matching objects).
    pub fn select(
        &self,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> impl Iterator<Item = Result<Arc<T>, DecodeError>> {
        self.snapshot.select_in(namespace, selector).ahead().map(|object| self.informer.view(object))
    }

    /// Up to `limit` objects in the order of their keys, from the first one after `after` on: pages of one state, which
    /// does not change between them.
    pub fn page(&self, after: Option<&ObjectKey>, limit: usize) -> Vec<Result<Arc<T>, DecodeError>> {
        self.snapshot.page(after, limit).map(|object| self.informer.view(object)).collect()
    }

    /// The undecoded objects, in no order.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.snapshot.iter()
    }
}
