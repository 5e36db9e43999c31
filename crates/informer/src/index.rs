//! Finding objects by what they hold.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use informer_core::{DecodeError, Object, View};

use crate::informer::Informer;
use crate::snapshot::Snapshot;
use crate::{Error, Layout};

/// What objects can be found by.
pub trait Key: Hash + Eq + Send + Sync + 'static {}

impl<K: Hash + Eq + Send + Sync + 'static> Key for K {}

/// Objects by keys of type `K`. Keeps its informer alive; dropping the last handle of an index without a name drops the
/// index.
///
/// ```no_run
/// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) {
/// use k8s_openapi::api::core::v1::Pod;
///
/// let by_ip = pods.add_index(|pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone()));
/// for pod in by_ip.get("10.0.0.7").into_iter().flatten() {
///     println!("{:?}", pod.metadata.name);
/// }
/// # }
/// ```
pub struct Index<T, K> {
    informer: Informer<T>,
    index: informer_core::Index<K>,
}

impl<T: View, K: Key> Index<T, K> {
    pub(crate) fn add<I: IntoIterator<Item = K>>(
        informer: Informer<T>,
        keys: impl Fn(&T) -> I + Send + Sync + 'static,
    ) -> Self {
        let index = informer.core().cache.add_index(function(informer.layout(), keys));
        Self { informer, index }
    }

    /// The objects with a key now, in no order. O(number of hits).
    ///
    /// One that cannot be read as a `T` comes as an error; none can, unless the index was made over another type.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Vec<Result<Arc<T>, DecodeError>>
    where
        K: Borrow<Q>,
    {
        self.index.with(key, |object| self.informer.view(object))
    }

    /// The objects with a key in a snapshot of the same informer. A snapshot that was taken before the index was added
    /// is searched object by object.
    pub fn lookup<'a, Q: Hash + Eq + ?Sized>(
        &'a self,
        snapshot: &'a Snapshot<T>,
        key: &Q,
    ) -> impl Iterator<Item = Result<Arc<T>, DecodeError>> + 'a
    where
        K: Borrow<Q>,
    {
        self.index.lookup(snapshot.raw(), key).ahead().map(|object| self.informer.view(object))
    }

    /// The keys that have objects in a snapshot, in no order. O(number of keys).
    pub fn keys(&self, snapshot: &Snapshot<T>) -> Vec<Arc<K>> {
        self.index.values(snapshot.raw())
    }
}

impl<T: View> Index<T, String> {
    pub(crate) fn add_named<I: IntoIterator<Item = String>>(
        informer: Informer<T>,
        name: &str,
        keys: impl Fn(&T) -> I + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let index = informer
            .core()
            .cache
            .add_named_index(name, function(informer.layout(), keys))
            .map_err(|_| Error::index_exists(name))?;
        Ok(Self { informer, index })
    }

    pub(crate) fn named(informer: Informer<T>, name: &str) -> Option<Self> {
        let index = informer.core().cache.index_by_name(name)?;
        Some(Self { informer, index })
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn function<T: View, K, I: IntoIterator<Item = K>>(
    layout: Layout,
    keys: impl Fn(&T) -> I + Send + Sync + 'static,
) -> impl Fn(&Object) -> Result<Vec<K>, BoxError> + Send + Sync + 'static {
    move |object| Ok(layout.with(object, |object| keys(object).into_iter().collect())?)
}
