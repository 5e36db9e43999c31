//! The cache at one moment.

use std::fmt;
use std::sync::Arc;

use informer_core::{DecodeError, Object, ObjectKey, ResourceVersion, Room, Selector, View};

use crate::read::handle::Handle;
use crate::read::item::{Decoder, Item, Items};

/// All objects of an informer at one moment, with the version that they reflect. It never changes.
///
/// Taking a snapshot is O(1) and waits for nothing. A snapshot agrees with the informer's indexes, and keeps its objects in
/// memory. A clone has the same content and costs two reference counts.
pub struct Snapshot<T> {
    handle: Handle<T>,
    snapshot: informer_core::Snapshot,
}

impl<T: View> Snapshot<T> {
    pub(crate) fn new(handle: Handle<T>) -> Self {
        let snapshot = handle.core().cache.snapshot();
        Self { handle, snapshot }
    }

    /// The same moment with its objects as another type. O(1).
    ///
    /// [`Informer::cast`](crate::Informer::cast) does the same for an informer.
    pub fn cast<U: View>(&self) -> Snapshot<U> {
        Snapshot { handle: self.handle.cast(), snapshot: self.snapshot.clone() }
    }

    pub(crate) fn raw(&self) -> &informer_core::Snapshot {
        &self.snapshot
    }

    /// The version of this state.
    pub fn resource_version(&self) -> ResourceVersion {
        self.snapshot.resource_version().clone()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.snapshot.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The object of a key (`namespace/name` or `name`), or `None` if the snapshot has none. O(1).
    ///
    /// # Errors
    ///
    /// When the object exists and does not decode as a `T`.
    pub fn get(&self, key: impl AsRef<str>) -> Result<Option<Item<T>>, DecodeError> {
        self.snapshot.get_str(key.as_ref()).map(|object| self.handle.item(object)).transpose()
    }

    /// All objects, in no particular order. Objects that do not decode as a `T` are left out and reported ([`Items`]).
    pub fn iter(&self) -> Items<'_, T> {
        Items::new(&self.handle, self.snapshot.iter())
    }

    /// The objects of a namespace (`None` or an empty name means all namespaces) with matching labels, in no particular order. An index
    /// answers this: O(matching objects). Objects that do not decode as a `T` are left out and reported ([`Items`]).
    pub fn select(&self, namespace: Option<&str>, selector: &Selector) -> Items<'_, T> {
        Items::new(&self.handle, self.snapshot.select_in(namespace, selector))
    }

    /// Up to `limit` objects in the order of their keys, beginning after the key `after`. Pages of one snapshot fit
    /// together, because it does not change between them. A page with fewer objects is the last one.
    ///
    /// Objects that do not decode as a `T` are left out and reported.
    ///
    /// ```no_run
    /// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) {
    /// let snapshot = pods.snapshot();
    /// let first = snapshot.page(None, 100);
    /// let second = snapshot.page(first.last().map(|pod| pod.key()), 100);
    /// # let _ = second;
    /// # }
    /// ```
    pub fn page(&self, after: Option<&ObjectKey>, limit: usize) -> Vec<Item<T>> {
        let mut page = Vec::new();
        let mut after = after.cloned();
        while page.len() < limit {
            let objects: Vec<_> = self.snapshot.page(after.as_ref(), limit - page.len()).collect();
            let Some(last) = objects.last() else { break };
            after = Some(last.key().clone());
            page.extend(
                objects.into_iter().filter_map(|object| self.handle.item_or_report(object, Room::IfFree)),
            );
        }
        page
    }

    /// The undecoded objects, in no particular order.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.snapshot.iter()
    }
}

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), snapshot: self.snapshot.clone() }
    }
}

impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("informer", &self.handle)
            .field("resource_version", self.snapshot.resource_version())
            .field("objects", &self.snapshot.len())
            .finish()
    }
}
