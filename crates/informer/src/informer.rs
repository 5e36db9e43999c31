//! An informer: a typed view of a shared cache.

#[cfg(feature = "save")]
mod saving;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt};
use informer_core::backoff::BackoffConfig;
use informer_core::reflector::Status;
use informer_core::{ObjectKey, ResourceVersion, Scope, Uid, View};

use crate::inner::ending::NotEnded;
use crate::inner::metrics::{FactoryMetrics, InformerMetrics};
use crate::inner::sync::NotSynced;
use crate::inner::wait::{Goal, NotReached, wait_for};
use crate::inner::{Core, Lifeline};
use crate::notify::change::Change;
use crate::notify::changes::Changes;
use crate::notify::handler::{Handler, Registration};
use crate::notify::reports::Reports;
use crate::notify::subscribe::Subscribe;
use crate::options::resource::ResourceType;
use crate::options::selection::Selection;
use crate::options::transform::Transform;
use crate::read::handle::Handle;
use crate::read::index::{Index, Key};
use crate::read::item::Item;
use crate::read::lister::Lister;
use crate::read::object_ref::ObjectRef;
use crate::read::snapshot::Snapshot;
use crate::transport::TransportError;
use crate::{Error, Quarantined};

/// A local, indexed, always current copy of a resource's objects, as `T`s.
///
/// A handle: clones, and all other views of the same resource from the same factory, share one cache and one watch.
/// Dropping the last handle of any of them (informers, listers, indexes, streams, registrations) closes the watch and
/// frees the memory.
///
/// ```no_run
/// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let pods = factory.informer::<Pod>();
/// factory.start();
/// pods.wait_for_sync(Duration::from_secs(30)).await?;
/// println!("{} pods, the first is {:?}", pods.len(), pods.lister().list().first());
/// # Ok(())
/// # }
/// ```
pub struct Informer<T> {
    handle: Handle<T>,
}

/// The limit for the answer to a single request.
const REVIEW_LIMIT: usize = 1 << 20;

impl<T: View> Informer<T> {
    pub(crate) fn new(lifeline: Arc<Lifeline>) -> Self {
        Self { handle: Handle::new(lifeline) }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.handle.core()
    }

    /// The resource that is watched. It is the one that the informer was made for, unless an informer from
    /// [`informer_named`](crate::SharedInformerFactory::informer_named) has followed it to another served version.
    pub fn resource(&self) -> Arc<ResourceType> {
        self.core().served()
    }

    /// The selection that the informer was made with. Namespaces that are added later are not in it.
    pub fn selection(&self) -> &Selection {
        &self.core().selection
    }

    /// Sends a request to the informer's server, with its credentials. Returns the status and the body: for reviews of its
    /// permissions, which are short.
    ///
    /// # Errors
    ///
    /// When no answer comes.
    #[doc(hidden)]
    pub async fn ask(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<(http::StatusCode, Vec<u8>), TransportError> {
        let core = self.core().clone();
        let asking = async move {
            let response = core.ask(request).await?;
            Ok((response.head.status, response.collect(REVIEW_LIMIT).await?))
        };
        // Connections belong to the informer's runtime.
        let asked = self.core().runtime().run(asking).await;
        asked.unwrap_or_else(|| Err(TransportError::new("the informer's runtime has ended", None)))
    }

    /// Starts listing and watching, unless the informer runs already. [`SharedInformerFactory::start`] starts all informers
    /// of a factory.
    ///
    /// [`SharedInformerFactory::start`]: crate::SharedInformerFactory::start
    pub fn start(&self) {
        self.core().start();
    }

    /// The number of objects in the cache.
    pub fn len(&self) -> usize {
        self.core().cache.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of memory that the cache takes: objects, tables, indexes, dictionaries, and what is hot of its objects.
    /// The result is within 20 % of the allocator's figure for bytes and for built-in types, within a factor of two for
    /// others. Older versions and values that only a consumer holds are not included.
    ///
    /// O(number of objects / 75 + number of index values).
    pub fn held_bytes(&self) -> usize {
        self.core().held_bytes()
    }

    /// Refers to an object of this informer, and to its incarnation: its resource, key and uid.
    pub fn object_ref(&self, item: &Item<T>) -> ObjectRef<T> {
        let reference = ObjectRef::new((*self.resource()).clone(), item.key().clone());
        if item.uid().is_unset() { reference } else { reference.with_uid(item.uid().clone()) }
    }

    /// The same informer with its objects as another type: one cache, one watch, one status.
    ///
    /// ```no_run
    /// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) {
    /// use informer::Object;
    ///
    /// // Reads identities and labels, and decodes nothing.
    /// let undecoded = pods.cast::<Object>();
    /// assert!(undecoded.shares_cache_with(&pods));
    /// # }
    /// ```
    pub fn cast<U: View>(&self) -> Informer<U> {
        Informer { handle: self.handle.cast() }
    }

    /// Whether two informers are views of one cache.
    pub fn shares_cache_with<U>(&self, other: &Informer<U>) -> bool {
        Arc::ptr_eq(self.handle.lifeline(), other.handle.lifeline())
    }

    /// Reads the cache: by key, namespace, label selector.
    pub fn lister(&self) -> Lister<T> {
        Lister::new(self.handle.clone())
    }

    /// The cache as it is now. The snapshot never changes. O(1).
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot::new(self.handle.clone())
    }

    /// Adds an index, at any time: a function from an object to its keys. The object comes with its identity, so a type without
    /// metadata can be indexed by labels too.
    ///
    /// An object for which the function panics, or that does not decode as a `T`, is not in the index; it stays in the
    /// cache.
    ///
    /// ```no_run
    /// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), informer::Error> {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = factory.informer::<Pod>();
    /// let by_node = pods.add_index(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()));
    /// let on_node_1 = by_node.get("node-1");
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_index<K: Key, I: IntoIterator<Item = K>>(
        &self,
        keys: impl Fn(&Item<T>) -> I + Send + Sync + 'static,
    ) -> Index<T, K> {
        Index::add(self.handle.clone(), keys)
    }

    /// Adds an index by the uid of the owner that controls an object: that of the owner reference with `controller: true`.
    /// It costs less than the same with [`Informer::add_index`], because no object is decoded for it, and no function runs
    /// for which a change would wait on another thread.
    ///
    /// ```no_run
    /// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), informer::Error> {
    /// use k8s_openapi::api::apps::v1::ReplicaSet;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let (sets, pods) = (factory.informer::<ReplicaSet>(), factory.informer::<Pod>());
    /// let by_set = pods.add_controller_index();
    /// for set in sets.lister().list() {
    ///     println!("{} has {} pods", set.key(), by_set.get(set.uid()).len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_controller_index(&self) -> Index<T, Uid> {
        Index::by_controller(self.handle.clone())
    }

    /// Adds an index of strings with a name, under which [`Informer::index_named`] finds it.
    ///
    /// # Errors
    ///
    /// When the name is taken ([`Error::is_index_exists`]); nothing changes then.
    pub fn add_named_index<I: IntoIterator<Item = String>>(
        &self,
        name: &str,
        keys: impl Fn(&Item<T>) -> I + Send + Sync + 'static,
    ) -> Result<Index<T, String>, Error> {
        Index::add_named(self.handle.clone(), name, keys)
    }

    /// The index of that name, if it exists.
    pub fn index_named(&self, name: &str) -> Option<Index<T, String>> {
        Index::named(self.handle.clone(), name)
    }

    /// Begins a subscription; choose its delivery.
    pub fn subscribe(&self) -> Subscribe<T> {
        Subscribe::new(self.handle.clone())
    }

    /// The changes as a stream, with one pending change per object: first the existing objects, then further changes.
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`Error::is_stopped`]).
    pub fn changes(&self) -> Result<Changes<T>, Error> {
        self.subscribe().changes()
    }

    /// Calls a closure for each change, with one pending change per object. [`Subscribe::on_change`] has the other deliveries.
    ///
    /// The handler is removed when the registration is dropped; [`Registration::detach`] leaves it in place.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use std::sync::atomic::{AtomicU64, Ordering};
    /// # use informer::{Change, Informer};
    /// # fn example(pods: Informer<k8s_openapi::api::core::v1::Pod>) -> Result<(), informer::Error> {
    /// let deletions = Arc::new(AtomicU64::new(0));
    /// let registration = pods.on_change(move |change| {
    ///     // Each call has its own handle: no `async` closure that captures something is accepted.
    ///     let deletions = deletions.clone();
    ///     async move {
    ///         match change {
    ///             Change::Added { new, .. } => println!("{} exists", new.key()),
    ///             Change::Updated { new, .. } => println!("{} is at {}", new.key(), new.resource_version()),
    ///             Change::Deleted(_) => drop(deletions.fetch_add(1, Ordering::Relaxed)),
    ///             _ => {}
    ///         }
    ///     }
    /// })?;
    /// # drop(registration);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`Error::is_stopped`]), or outside of a tokio runtime.
    pub fn on_change<F, R>(&self, call: F) -> Result<Registration, Error>
    where
        F: FnMut(Change<T>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.subscribe().on_change(call)
    }

    /// Calls a handler for each change, with one pending change per object.
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`Error::is_stopped`]), or outside of a tokio runtime.
    pub fn add_handler(&self, handler: impl Handler<T>) -> Result<Registration, Error> {
        self.subscribe().handler(handler)
    }

    /// Sets a transform, which changes each object before it is stored.
    ///
    /// # Errors
    ///
    /// When the informer was started ([`Error::is_already_started`]).
    pub fn set_transform(&self, transform: Transform) -> Result<(), Error> {
        self.core().set_transform(transform)
    }

    /// Sets this informer's backoff, in place of its factory's
    /// ([`ReflectorOptions::backoff`](crate::ReflectorOptions::backoff)).
    ///
    /// # Errors
    ///
    /// When the informer was started ([`Error::is_already_started`]).
    pub fn set_backoff(&self, backoff: BackoffConfig) -> Result<(), Error> {
        self.core().set_backoff(backoff)
    }

    /// The informer's metrics at this moment.
    pub fn metrics(&self) -> InformerMetrics {
        InformerMetrics::of(self.core())
    }

    /// The informer's current status.
    pub fn status(&self) -> Status {
        self.core().progress.status().borrow().clone()
    }

    /// A stream of statuses, beginning with the current one. If the status changes several times between two polls, the
    /// stream returns only the latest. It ends after [`Status::Stopped`], and keeps the informer alive.
    pub fn status_changes(&self) -> impl Stream<Item = Status> + Send + use<T> {
        let state = (self.core().progress.status(), None, self.clone());
        futures_util::stream::unfold(state, |(mut receiver, last, keep_alive)| async move {
            match last {
                None => {}
                Some(Status::Stopped) => return None,
                Some(_) => receiver.changed().await.ok()?,
            }
            let status = receiver.borrow_and_update().clone();
            Some((status.clone(), (receiver, Some(status), keep_alive)))
        })
        .boxed()
    }

    /// A stream of reports from now on: each disconnect with its cause, undecodable objects, and more. It does not keep the
    /// informer alive.
    pub fn reports(&self) -> Reports {
        Reports::new(self.core().progress.reports())
    }

    /// The undecodable objects whose key is known, sorted by key. The cache has the last good version of each, if any.
    /// At most 4096 are kept, each until its next good version.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.core().quarantine.all()
    }

    /// Whether the initial list is in the cache.
    pub fn is_synced(&self) -> bool {
        self.core().progress.is_synced()
    }

    /// Waits until the initial list is in the cache, without polling, also before the informer is started. An informer that
    /// was synced once stays synced: to wait for a namespace that is added later, use [`Informer::wait_for_namespace`].
    ///
    /// # Errors
    ///
    /// When it is not synced within `limit`. The error names the informer and the reason.
    ///
    /// # Deadlocks
    ///
    /// Do not block on this in an index function or a transform of this informer: it waits for progress that waits for
    /// that function.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn wait_for_sync(&self, limit: Duration) -> Result<(), NotSynced> {
        crate::inner::sync::wait_for_all(&[self.core().clone()], limit, false).await
    }

    /// As [`Informer::wait_for_sync`], but fails as soon as the server denies the resource ([`Status::Denied`]).
    ///
    /// # Errors
    ///
    /// When it is denied, or not synced within `limit`.
    pub async fn wait_for_sync_or_denial(&self, limit: Duration) -> Result<(), NotSynced> {
        crate::inner::sync::wait_for_all(&[self.core().clone()], limit, true).await
    }

    /// The version that the cache reflects. Unset until the cache is synced or [loaded](Informer::load); it never goes
    /// back.
    pub fn resource_version(&self) -> ResourceVersion {
        self.core().cache.resource_version()
    }

    /// Waits until the cache reflects the server's state at `version`, in all namespaces of the informer. Use it after a
    /// write of your own, to read that write from the cache.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     maps: informer::Informer<k8s_openapi::api::core::v1::ConfigMap>,
    /// #     api: informer::kube::client::Api<k8s_openapi::api::core::v1::ConfigMap>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use informer::{FromObject, ResourceVersion};
    ///
    /// // Or what `create`, `patch` and `replace` return.
    /// let written = api.get("prices").await?;
    /// if let Some(version) = ResourceVersion::of(&written) {
    ///     maps.at_least(&version, Duration::from_secs(10)).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A write outside of the informer's selection causes no event. Such a version is reached with the next bookmark, which
    /// servers send about once a minute, or with the next event inside of the selection. With several namespaces, each has
    /// to wait for its own bookmark or event, and the slowest one counts: to wait for a write in one of them, use
    /// [`Informer::at_least_in`]. A namespace that was added while the informer runs counts once it is synced and has
    /// caught up with the others.
    ///
    /// Handlers and streams are notified after the cache has changed: a handler may not have been called when this returns
    /// ([`Registration`](crate::Registration), and the backlog in [`Informer::metrics`]).
    ///
    /// The versions of some servers are not numbers and cannot be compared. There this waits for exactly that version,
    /// which the cache may have passed already. An unset version is reached with the initial list.
    ///
    /// # Errors
    ///
    /// When the version is not reached within `limit`, or the informer stops before.
    ///
    /// # Deadlocks
    ///
    /// Do not block on this in an index function or a transform of this informer: it waits for progress that waits for
    /// that function.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn at_least(&self, version: &ResourceVersion, limit: Duration) -> Result<(), NotReached> {
        wait_for(self.core(), Goal::Version(version.clone()), limit).await
    }

    /// As [`Informer::at_least`], for one namespace: other namespaces do not delay it.
    ///
    /// # Errors
    ///
    /// When the version is not reached within `limit`, the informer stops before, or it does not select the namespace
    /// ([`NotReached::is_not_selected`]).
    ///
    /// # Deadlocks, cancel safety
    ///
    /// As [`Informer::at_least`].
    pub async fn at_least_in(
        &self,
        namespace: &str,
        version: &ResourceVersion,
        limit: Duration,
    ) -> Result<(), NotReached> {
        wait_for(self.core(), Goal::VersionIn(namespace.to_owned(), version.clone()), limit).await
    }

    /// Waits until an object is not in the cache: the counterpart of [`Informer::at_least`] for deletions. The object
    /// counts as gone also when its key belongs to another object, with another uid.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     pods: informer::Informer<informer::Object>,
    /// #     api: informer::kube::client::Api<k8s_openapi::api::core::v1::Pod>,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// if let Some(pod) = pods.lister().get("shop/cart")? {
    ///     api.delete("cart", &Default::default()).await?;
    ///     pods.gone(pod.key(), pod.uid(), Duration::from_secs(60)).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A deletion takes effect when the object's grace period has passed and its finalizers are removed. An object that is
    /// not yet in the cache counts as gone: if it was created a moment ago, wait for its version with
    /// [`Informer::at_least`] first. So does an object that has left the selection.
    ///
    /// # Errors
    ///
    /// When the object is still cached after `limit`, the informer stops before, or it does not select the object's
    /// namespace.
    ///
    /// # Deadlocks, cancel safety
    ///
    /// As [`Informer::at_least`].
    pub async fn gone(&self, key: &ObjectKey, uid: &Uid, limit: Duration) -> Result<(), NotReached> {
        wait_for(self.core(), Goal::Gone(key.clone(), uid.clone()), limit).await
    }

    /// Waits until the objects of a namespace are in the cache, for example after [`Informer::add_namespace`].
    /// [`Informer::wait_for_sync`] does not wait for a namespace that was added to a synced informer.
    ///
    /// ```no_run
    /// # async fn example(pods: informer::Informer<informer::Object>) -> Result<(), informer::NotReached> {
    /// use std::time::Duration;
    ///
    /// pods.add_namespace("front");
    /// pods.wait_for_namespace("front", Duration::from_secs(30)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the objects are not in the cache within `limit`, the informer stops before, or it does not select the
    /// namespace, or no longer does.
    ///
    /// # Deadlocks, cancel safety
    ///
    /// As [`Informer::at_least`].
    pub async fn wait_for_namespace(&self, namespace: &str, limit: Duration) -> Result<(), NotReached> {
        wait_for(self.core(), Goal::Namespace(namespace.to_owned()), limit).await
    }

    /// Adds a namespace. Returns `false` if the informer has it already, covers all namespaces, or has stopped. The objects
    /// of the namespace are dispatched as additions that are not initial; the informer stays synced meanwhile. As in all
    /// methods that take a namespace, the empty name stands for all namespaces.
    pub fn add_namespace(&self, namespace: &str) -> bool {
        self.core().selection.namespaces().is_some()
            && !self.selects_namespace(Some(namespace))
            && self.core().add_scope(Scope::of_namespace(namespace))
    }

    /// Whether the informer has the objects of a namespace, those that were added and removed considered. Cluster-scoped
    /// objects (`None`) are always selected.
    pub fn selects_namespace(&self, namespace: Option<&str>) -> bool {
        self.core().selects_namespace(namespace)
    }

    /// Removes a namespace, and waits until its connection is closed. Its objects leave the cache; subscriptions get
    /// deletions with the reason [`DeleteReason::LeftView`](crate::DeleteReason::LeftView). Returns `false` if the informer
    /// did not select the namespace.
    ///
    /// # Deadlocks
    ///
    /// Do not block on this in an index function or a transform of this informer.
    ///
    /// # Cancel safety
    ///
    /// Safe: the namespace is removed all the same; only the wait ends.
    pub async fn remove_namespace(&self, namespace: &str) -> bool {
        match self.core().remove_scope(&Scope::of_namespace(namespace)) {
            Some(ended) => {
                ended.await;
                true
            }
            None => false,
        }
    }

    /// Retries at once every request that waits for its backoff.
    pub fn retry_now(&self) {
        self.core().retry_now();
    }

    /// Stops the informer for all its users, and waits until nothing of it runs: no task, no request, no handler call. Its
    /// own handlers must not await this, nor may its index functions, transforms or filters block on it, because it waits
    /// for their end.
    ///
    /// # Cancel safety
    ///
    /// Safe: the informer stops all the same; only the wait ends.
    pub async fn stop(&self) {
        self.core().begin_stop();
        self.core().life.ended().await;
    }

    /// As [`Informer::stop`], but returns within `limit`, as
    /// [`SharedInformerFactory::shutdown_within`](crate::SharedInformerFactory::shutdown_within) does.
    ///
    /// # Errors, cancel safety
    ///
    /// As [`SharedInformerFactory::shutdown_within`](crate::SharedInformerFactory::shutdown_within).
    pub async fn stop_within(&self, limit: Duration) -> Result<(), NotEnded> {
        self.core().begin_stop();
        self.core().life.ended_within(limit).await
    }

    /// Whether the informer has stopped.
    pub fn is_stopped(&self) -> bool {
        self.core().life.is_stopped()
    }
}

impl<T> Clone for Informer<T> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone() }
    }
}

impl<T> fmt::Debug for Informer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.handle, f)
    }
}

impl<T: View> Changes<T> {
    /// The informer whose changes these are.
    pub fn informer(&self) -> Informer<T> {
        Informer { handle: self.handle().clone() }
    }
}

impl FactoryMetrics {
    /// The metrics of some informers, which may be of several factories.
    ///
    /// ```no_run
    /// # fn example(pods: informer::Informer<k8s_openapi::api::core::v1::Pod>) {
    /// use informer::metrics::{FactoryMetrics, Format};
    ///
    /// println!("{}", FactoryMetrics::of_informers([&pods]).to_text(Format::OpenMetrics));
    /// # }
    /// ```
    pub fn of_informers<'a, T: View>(informers: impl IntoIterator<Item = &'a Informer<T>>) -> Self {
        Self::of_cores(informers.into_iter().map(|informer| &**informer.core()))
    }
}
