//! One informer: a typed view of a shared cache.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt};
use informer_core::backoff::BackoffConfig;
use informer_core::reflector::Status;
use informer_core::{DecodeError, Object, ResourceVersion, Scope, View};

use crate::changes::Changes;
use crate::handler::{Handler, Registration};
use crate::index::{Index, Key};
use crate::lister::Lister;
use crate::metrics::InformerMetrics;
use crate::reports::Reports;
use crate::resource::ResourceType;
use crate::shared::{Core, Shared};
use crate::snapshot::Snapshot;
use crate::subscribe::Subscribe;
use crate::sync::NotSynced;
use crate::transform::Transform;
use crate::{Error, Layout, Quarantined};

/// A local, indexed, always current copy of a resource's objects, as `T`s.
///
/// A handle: clones, and all other views of the same resource from the same factory, share one cache and one watch.
/// When the last handle of any of them is dropped (informers, listers, indexes, streams, registrations), the watch is
/// closed and the memory freed.
///
/// ```no_run
/// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let pods = factory.informer::<Pod>();
/// factory.start();
/// pods.wait_for_sync(Duration::from_secs(30)).await?;
/// println!("{} pods, the first is {:?}", pods.len(), pods.lister().list()?.first());
/// # Ok(())
/// # }
/// ```
pub struct Informer<T> {
    shared: Arc<Shared>,
    layout: Layout,
    view: PhantomData<fn() -> T>,
}

impl<T: View> Informer<T> {
    pub(crate) fn new(shared: Arc<Shared>, layout: Layout) -> Self {
        Self { shared, layout, view: PhantomData }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.shared.core()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// An object as a `T`, kept or shared as the layout says.
    pub(crate) fn view(&self, object: &Arc<Object>) -> Result<Arc<T>, DecodeError> {
        self.layout.view(object)
    }

    /// The resource that is watched.
    pub fn resource(&self) -> &ResourceType {
        &self.core().resource
    }

    /// Starts listing and watching, if that has not happened yet. [`SharedInformerFactory::start`] does it for all.
    ///
    /// [`SharedInformerFactory::start`]: crate::SharedInformerFactory::start
    pub fn start(&self) {
        self.core().start();
    }

    /// How many objects the cache has.
    pub fn len(&self) -> usize {
        self.core().cache.len()
    }

    /// Whether the cache has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of memory that the cache takes: objects, tables, indexes and dictionaries, within a fifth of what the
    /// allocator gives; not decoded values, nor older versions that somebody holds.
    ///
    /// O(number of objects / 75 + number of index values).
    pub fn held_bytes(&self) -> usize {
        self.core().held_bytes()
    }

    /// Reads the cache: by key, namespace, label selector.
    pub fn lister(&self) -> Lister<T> {
        Lister::new(self.clone())
    }

    /// The cache as it is now, for as long as the snapshot is held. O(1).
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot::new(self.clone())
    }

    /// Adds an index: a function from an object to the keys under which it is to be found. At any time.
    ///
    /// An object for which the function panics, or which cannot be read as a `T`, is not in the index; the cache keeps it.
    ///
    /// ```no_run
    /// # async fn example(factory: informer::SharedInformerFactory) -> Result<(), informer::Error> {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = factory.informer::<Pod>();
    /// let by_node = pods.add_index(|pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()));
    /// let on_node_1 = by_node.get("node-1");
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_index<K: Key, I: IntoIterator<Item = K>>(
        &self,
        keys: impl Fn(&T) -> I + Send + Sync + 'static,
    ) -> Index<T, K> {
        Index::add(self.clone(), keys)
    }

    /// Adds an index of texts that others can find by its name with [`Informer::index_named`].
    ///
    /// # Errors
    ///
    /// When there is an index of that name already ([`Error::is_index_exists`]); nothing is changed then.
    pub fn add_named_index<I: IntoIterator<Item = String>>(
        &self,
        name: &str,
        keys: impl Fn(&T) -> I + Send + Sync + 'static,
    ) -> Result<Index<T, String>, Error> {
        Index::add_named(self.clone(), name, keys)
    }

    /// The index of that name, if there is one.
    pub fn index_named(&self, name: &str) -> Option<Index<T, String>> {
        Index::named(self.clone(), name)
    }

    /// Asks to be told of changes; choose how.
    pub fn subscribe(&self) -> Subscribe<T> {
        Subscribe::new(self.clone())
    }

    /// The changes as a stream, with one pending change per object: first what is there, then what happens.
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`Error::is_stopped`]).
    pub fn changes(&self) -> Result<Changes<T>, Error> {
        self.subscribe().changes()
    }

    /// Calls a handler for each change, with one pending change per object.
    ///
    /// # Errors
    ///
    /// When the informer has stopped ([`Error::is_stopped`]), or outside of a tokio runtime.
    pub fn add_handler(&self, handler: impl Handler<T>) -> Result<Registration, Error> {
        self.subscribe().handler(handler)
    }

    /// Changes each object before it is kept.
    ///
    /// # Errors
    ///
    /// When the informer was started ([`Error::is_already_started`]).
    pub fn set_transform(&self, transform: Transform) -> Result<(), Error> {
        self.core().set_transform(transform)
    }

    /// How long this informer waits after failures, where that is not to be as for the others of its factory
    /// ([`FactoryBuilder::backoff`](crate::FactoryBuilder::backoff)).
    ///
    /// # Errors
    ///
    /// When the informer was started ([`Error::is_already_started`]).
    pub fn set_backoff(&self, backoff: BackoffConfig) -> Result<(), Error> {
        self.core().set_backoff(backoff)
    }

    /// What the informer holds and has done, at this moment.
    pub fn metrics(&self) -> InformerMetrics {
        InformerMetrics::of(self.core())
    }

    /// Where the informer stands.
    pub fn status(&self) -> Status {
        self.core().progress.status().borrow().clone()
    }

    /// Each new status, beginning with the present one. Of several between two looks, the last. Ends after
    /// [`Status::Stopped`]. Keeps the informer alive.
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

    /// What went wrong or is noteworthy from now on: each disconnect with its cause, objects that cannot be read.
    /// Does not keep the informer alive.
    pub fn reports(&self) -> Reports {
        Reports::new(self.core().progress.reports())
    }

    /// Objects whose newest version could not be read, as far as their keys could, by key; the cache has the last one that
    /// could be read, if any. Up to 4096 are remembered, each until its next good version.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.core().quarantine.all()
    }

    /// Whether the first content is in the cache.
    pub fn is_synced(&self) -> bool {
        self.core().progress.is_synced()
    }

    /// Waits until the first content is in the cache, without polling.
    ///
    /// # Errors
    ///
    /// When it is not within `limit`: says what is missing, and why.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn wait_for_sync(&self, limit: Duration) -> Result<(), NotSynced> {
        crate::sync::wait_for_all(&[self.core().clone()], limit, false).await
    }

    /// As [`Informer::wait_for_sync`], but gives up as soon as the server denies the resource ([`Status::Denied`]).
    ///
    /// # Errors
    ///
    /// When it is denied, or not there within `limit`.
    pub async fn wait_for_sync_or_denial(&self, limit: Duration) -> Result<(), NotSynced> {
        crate::sync::wait_for_all(&[self.core().clone()], limit, true).await
    }

    /// The version that the cache reflects. Unset until it is synced or [loaded](Informer::load), and never older than before.
    pub fn resource_version(&self) -> ResourceVersion {
        self.core().cache.resource_version()
    }

    /// Waits until the cache reflects `version`, as after a write of one's own; `false` if the informer stops before.
    ///
    /// Of a server whose versions are no numbers none is known to be newer than another: there this waits for exactly
    /// that version, which the cache may have passed already. An unset version is reached with the first content.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn at_least(&self, version: &ResourceVersion) -> bool {
        let core = self.core();
        let any = version.is_unset_or_zero();
        let mut current = core.progress.version();
        tokio::select! {
            biased;
            reached = current.wait_for(|current| {
                current.is_at_least(version) || (any && !current.is_unset())
            }) => reached.is_ok(),
            () = core.life.stopping() => false,
        }
    }

    /// Looks at one more namespace, from now on or from the start on; `false` if it did already, looks at all of them,
    /// or has stopped. Its first objects are told as additions that are not initial, and the informer stays synced
    /// meanwhile.
    pub fn add_namespace(&self, namespace: &str) -> bool {
        !self.core().selection.namespaces.is_empty()
            && self.core().add_scope(Scope::Namespace(namespace.into()))
    }

    /// Looks at a namespace no longer: its objects leave, as deletions that were missed, and this waits until its
    /// connection is closed. `false` if it was not looked at.
    ///
    /// # Cancel safety
    ///
    /// Safe: the namespace is removed, only the waiting ends.
    pub async fn remove_namespace(&self, namespace: &str) -> bool {
        match self.core().remove_scope(&Scope::Namespace(namespace.into())) {
            Some(ended) => {
                ended.await;
                true
            }
            None => false,
        }
    }

    /// Tries at once whatever waits for a server to answer better than before.
    pub fn retry_now(&self) {
        self.core().retry_now();
    }

    /// Stops the informer for all its users, and waits until nothing of it runs: no task, no request, no handler's call.
    /// Not to be awaited in one of its own handlers, whose call would have to end first.
    ///
    /// # Cancel safety
    ///
    /// Safe: it stops all the same, only the waiting ends.
    pub async fn stop(&self) {
        self.core().begin_stop();
        self.core().life.ended().await;
    }

    /// As [`Informer::stop`], but handlers' calls that are not over within `limit` are dropped at their next `await`.
    /// Whether all ended by themselves.
    ///
    /// A call that blocks its thread cannot be dropped, and is waited for.
    pub async fn stop_within(&self, limit: Duration) -> bool {
        self.core().begin_stop();
        self.core().life.ended_within(limit).await
    }

    /// Whether it has stopped.
    pub fn is_stopped(&self) -> bool {
        self.core().life.is_stopped()
    }
}

impl<T> Clone for Informer<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), layout: self.layout, view: PhantomData }
    }
}

impl<T> fmt::Debug for Informer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.shared.core();
        write!(f, "Informer({}, {})", core.resource, core.selection)
    }
}
