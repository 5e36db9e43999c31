//! Finds objects by their fields.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use informer_core::{DecodeError, Object, Room, Shelf, Uid, View};

use crate::Error;
use crate::read::generated::Generated;
use crate::read::handle::Handle;
use crate::read::item::{Decoder, Item, Items};
use crate::read::snapshot::Snapshot;

/// A key of an index.
pub trait Key: Hash + Eq + Send + Sync + 'static {}

impl<K: Hash + Eq + Send + Sync + 'static> Key for K {}

/// Objects by keys of type `K`. A clone is another handle of the same index, and keeps the informer alive. An index without
/// a name ends when its last handle is dropped.
///
/// ```no_run
/// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) {
/// use k8s_openapi::api::core::v1::Pod;
///
/// let by_ip = pods.add_index(|pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone()));
/// for pod in by_ip.get("10.0.0.7") {
///     println!("{}", pod.key());
/// }
/// # }
/// ```
pub struct Index<T, K> {
    handle: Handle<T>,
    index: informer_core::Index<K>,
}

impl<T: View, K: Key> Index<T, K> {
    pub(crate) fn add<I: IntoIterator<Item = K>>(
        handle: Handle<T>,
        keys: impl Fn(&Item<T>) -> I + Send + Sync + 'static,
    ) -> Self {
        let index = handle.core().cache.add_index(function(handle.core().shelf.clone(), keys));
        Self { handle, index }
    }

    /// The same index with its results as another type.
    pub fn cast<U: View>(&self) -> Index<U, K> {
        Index { handle: self.handle.cast(), index: self.index.clone() }
    }

    /// The objects that have a key now, in no particular order. O(number of hits).
    ///
    /// Objects that do not decode as a `T` are left out and reported. That happens only if another type made the index: an
    /// index does not contain objects that its own type cannot decode.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Vec<Item<T>>
    where
        K: Borrow<Q>,
    {
        self.index
            .with(key, |object| self.handle.item_or_report(object, Room::Evict))
            .into_iter()
            .flatten()
            .collect()
    }

    /// The objects that have a key now, or the first error: the strict form of [`Index::get`].
    ///
    /// # Errors
    ///
    /// When one of them does not decode as a `T`.
    pub fn try_get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Result<Vec<Item<T>>, DecodeError>
    where
        K: Borrow<Q>,
    {
        self.index.with(key, |object| self.handle.item(object)).into_iter().collect()
    }

    /// The objects with a key in a snapshot of the same informer. If the snapshot is older than the index, all its
    /// objects are scanned. Objects that do not decode as a `T` are left out and reported ([`Items`]).
    pub fn lookup<'a, Q: Hash + Eq + ?Sized>(&'a self, snapshot: &'a Snapshot<T>, key: &Q) -> Items<'a, T>
    where
        K: Borrow<Q>,
    {
        Items::new(&self.handle, self.index.lookup(snapshot.raw(), key))
    }

    /// The keys that have objects in a snapshot, in no particular order. O(number of keys).
    pub fn keys(&self, snapshot: &Snapshot<T>) -> Vec<Arc<K>> {
        self.index.values(snapshot.raw())
    }
}

impl<T: View> Index<T, Uid> {
    pub(crate) fn by_controller(handle: Handle<T>) -> Self {
        let index = handle.core().cache.add_controller_index();
        Self { handle, index }
    }
}

impl<T: View> Index<T, String> {
    pub(crate) fn add_named<I: IntoIterator<Item = String>>(
        handle: Handle<T>,
        name: &str,
        keys: impl Fn(&Item<T>) -> I + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let index = handle
            .core()
            .cache
            .add_named_index(name, function(handle.core().shelf.clone(), keys))
            .map_err(|_| Error::index_exists(name))?;
        Ok(Self { handle, index })
    }

    pub(crate) fn named(handle: Handle<T>, name: &str) -> Option<Self> {
        let index = handle.core().cache.index_by_name(name)?;
        Some(Self { handle, index })
    }
}

impl<T, K> Clone for Index<T, K> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), index: self.index.clone() }
    }
}

impl<T, K> fmt::Debug for Index<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("informer", &self.handle).field("index", &self.index).finish()
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn function<T: View, K, I: IntoIterator<Item = K>>(
    shelf: Arc<Shelf>,
    keys: impl Fn(&Item<T>) -> I + Send + Sync + 'static,
) -> impl Fn(&Arc<Object>) -> Result<Vec<K>, BoxError> + Send + Sync + 'static {
    // Handlers need the value of a new watch event next, so that value may evict others. The values of a list must not
    // evict what is hot.
    move |object| {
        let value = T::of::<Generated>(object, &shelf, Room::EvictIfHot)?;
        Ok(keys(&Item::new(value, object.clone())).into_iter().collect())
    }
}
