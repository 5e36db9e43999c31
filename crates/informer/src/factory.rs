//! The factory: makes informers, one per resource and selection.

mod builder;
mod named;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use informer_core::share::Share;
use informer_core::{FieldSelector, InvalidSelector, Selector, View};

use crate::Layout;
use crate::informer::Informer;
use crate::inner::ending::NotEnded;
use crate::inner::metrics::{FactoryMetrics, free_number};
use crate::inner::sync::NotSynced;
use crate::inner::{Core, Life, Lifeline};
use crate::options::resource::ResourceType;
use crate::options::runtime::Runtime;
use crate::options::selection::Selection;
use crate::options::settings::{Representation, Settings};
use crate::options::transform::Transform;
use crate::server::Server;
use crate::transport::Transport;
use builder::Connection;

pub use builder::FactoryBuilder;

/// Makes informers and shares them: per resource and selection there is one cache and one watch, whatever the views.
///
/// A handle: clones, and factories narrowed by [`in_namespace`](Self::in_namespace), [`with_labels`](Self::with_labels),
/// [`with_fields`](Self::with_fields) or [`with_share`](Self::with_share), are the same factory with another [`Selection`].
///
/// ```no_run
/// use std::time::Duration;
/// use informer::SharedInformerFactory;
/// use k8s_openapi::api::apps::v1::ReplicaSet;
/// use k8s_openapi::api::core::v1::Pod;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = informer::kube::Config::infer().await?;
/// let factory = SharedInformerFactory::new(config)?;
/// let pods = factory.informer::<Pod>();
/// let replica_sets = factory.informer::<ReplicaSet>();
/// factory.start();
/// factory.wait_for_sync(Duration::from_secs(30)).await?;
/// println!("{} pods, {} replica sets", pods.len(), replica_sets.len());
/// factory.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SharedInformerFactory {
    inner: Arc<Inner>,
    selection: Selection,
}

struct Inner {
    options: Options,
    server: Arc<Server>,
    runtime: Runtime,
    life: Life,
    /// An informer lives as long as a handle to it.
    informers: Mutex<HashMap<Identity, Weak<Lifeline>>>,
}

/// The identity of an informer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    resource: ResourceType,
    selection: Selection,
    representation: Representation,
}

struct Options {
    settings: Settings,
    resync: HashMap<ResourceType, Duration>,
    transform: Option<Transform>,
    layout: Layout,
    start_at_once: bool,
}

impl SharedInformerFactory {
    /// Builds a factory that sends its requests over this transport, on the caller's tokio runtime.
    pub fn builder_with_transport(transport: impl Transport) -> FactoryBuilder {
        FactoryBuilder::new(Connection::Transport(Arc::new(transport)))
    }

    /// This factory, narrowed to one namespace. Informers of cluster-wide resources are not affected. The empty name stands
    /// for all namespaces, as client-go's `NamespaceAll` does.
    ///
    /// If this factory does not select the namespace, no namespace is left: see [`in_namespaces`](Self::in_namespaces).
    #[must_use]
    pub fn in_namespace(&self, namespace: impl Into<String>) -> Self {
        self.in_namespaces([namespace])
    }

    /// This factory, narrowed to those of these namespaces that it selects. Each namespace has its own list and watch; all
    /// share one cache. An empty name among them stands for all namespaces.
    ///
    /// If no namespace is left, the informers of namespaced resources are empty and send no requests. They are synced as
    /// soon as they are started, and [`Informer::add_namespace`] adds namespaces to them. [`everything`](Self::everything)
    /// returns a factory for all namespaces.
    ///
    /// ```
    /// # fn example(factory: informer::SharedInformerFactory) {
    /// let both = factory.in_namespaces(["shop", "front"]);
    /// assert_eq!(both.in_namespace("shop").selection().to_string(), "namespace shop");
    /// assert_eq!(both.in_namespace("back").selection().to_string(), "no namespace");
    /// # }
    /// ```
    #[must_use]
    pub fn in_namespaces(&self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { selection: self.selection.clone().in_namespaces(namespaces), ..self.clone() }
    }

    /// This factory, narrowed to objects with matching labels. The server filters.
    ///
    /// ```
    /// use informer::{Selector, SharedInformerFactory};
    ///
    /// # fn example(factory: SharedInformerFactory) -> Result<(), informer::InvalidSelector> {
    /// let carts = factory.with_labels("app=cart")?;
    /// // A value, made without parsing.
    /// let databases = carts.with_labels(Selector::EVERYTHING.equals("tier", "db")?)?;
    /// assert_eq!(databases.selection().labels().to_string(), "app=cart,tier=db");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the text of `selector` is malformed. The error has the text and the position of the fault.
    pub fn with_labels<S>(&self, selector: S) -> Result<Self, InvalidSelector>
    where
        S: TryInto<Selector, Error: Into<InvalidSelector>>,
    {
        let selector = selector.try_into().map_err(Into::into)?;
        Ok(Self { selection: self.selection.clone().with_labels(&selector), ..self.clone() })
    }

    /// This factory, narrowed to objects with matching fields. The server filters; it supports a few fields of each
    /// resource ([`FieldSelector`]).
    ///
    /// ```
    /// # fn example(factory: informer::SharedInformerFactory) -> Result<(), informer::InvalidSelector> {
    /// let here = factory.with_fields("spec.nodeName=node-1")?;
    /// let running = here.with_fields("status.phase=Running")?;
    /// assert_eq!(running.selection().fields().to_string(), "spec.nodeName=node-1,status.phase=Running");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the text of `selector` is malformed. The error has the text and the position of the fault.
    pub fn with_fields<S>(&self, selector: S) -> Result<Self, InvalidSelector>
    where
        S: TryInto<FieldSelector, Error: Into<InvalidSelector>>,
    {
        let selector = selector.try_into().map_err(Into::into)?;
        Ok(Self { selection: self.selection.clone().with_fields(&selector), ..self.clone() })
    }

    /// This factory with another share of the objects; `None` stands for all of them. The share replaces the factory's own:
    /// a factory with a share by uid has the owned objects of that share with `share.of(ShareBy::ControllerUid)`.
    ///
    /// The informers filter before they store, so objects of other shares cost no memory. A server that can filter by
    /// shares sends fewer bytes if it is asked to: see [`FactoryBuilder::ask_for_share`].
    ///
    /// ```
    /// use informer::SharedInformerFactory;
    /// use informer::share::{Share, ShareBy};
    /// use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::{Node, Pod}};
    ///
    /// # fn example(factory: SharedInformerFactory, share: Share) {
    /// assert_eq!(share.by(), ShareBy::Uid);
    /// let replica_sets = factory.with_share(share.clone()).informer::<ReplicaSet>();
    /// let their_pods = factory.with_share(share.of(ShareBy::ControllerUid)).informer::<Pod>();
    /// let all_nodes = factory.with_share(None).informer::<Node>();
    /// # }
    /// ```
    #[must_use]
    pub fn with_share(&self, share: impl Into<Option<Share>>) -> Self {
        Self { selection: self.selection.clone().with_share(share.into()), ..self.clone() }
    }

    /// This factory without its selection: all objects in all namespaces.
    #[must_use]
    pub fn everything(&self) -> Self {
        Self { selection: Selection::default(), ..self.clone() }
    }

    /// Which objects the informers of this factory have.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    pub(crate) fn view<T: View>(
        &self,
        resource: ResourceType,
        representation: Representation,
    ) -> Informer<T> {
        let lifeline = self.inner.lifeline(resource, &self.selection, representation);
        if self.inner.options.start_at_once {
            lifeline.core().start();
        }
        Informer::new(lifeline)
    }

    /// Starts every informer that has a handle and does not run yet. A later call starts those that were made since.
    pub fn start(&self) {
        for informer in self.inner.living() {
            informer.core().start();
        }
    }

    /// Waits until every informer of this factory is synced, without polling. Informers without a handle do not count.
    ///
    /// # Errors
    ///
    /// When an informer is not synced within `limit`: the error names it and the reason. The call fails at once if an
    /// informer was not started: call [`start`](Self::start) first.
    ///
    /// # Deadlocks
    ///
    /// Do not block on this in an index function or a transform: an informer may be waiting for that function.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn wait_for_sync(&self, limit: Duration) -> Result<(), NotSynced> {
        crate::inner::sync::wait_for_all_started(&self.inner.cores(), limit, false).await
    }

    /// As [`SharedInformerFactory::wait_for_sync`], but fails as soon as the server denies a resource
    /// ([`Status::Denied`](crate::Status::Denied)).
    ///
    /// # Errors
    ///
    /// When an informer is denied, not started, or not synced within `limit`.
    pub async fn wait_for_sync_or_denial(&self, limit: Duration) -> Result<(), NotSynced> {
        crate::inner::sync::wait_for_all_started(&self.inner.cores(), limit, true).await
    }

    /// Gives up what is hot ([`FactoryBuilder::hot_bytes`]), for a program whose memory runs out. It is decoded again when a consumer asks.
    pub fn cool(&self) {
        let set = &self.inner.options.settings.hot.set;
        // The first sweep clears the marks of use.
        for _ in 0..2 {
            let mut ahead = set.len();
            while ahead > 0 {
                ahead -= set.sweep(ahead).min(ahead);
            }
        }
    }

    /// The metrics of all informers that have a handle, at this moment.
    pub fn metrics(&self) -> FactoryMetrics {
        FactoryMetrics::of(&self.inner.living(), &self.inner.options.settings.hot.set)
    }

    /// Stops every informer and waits until nothing runs: no task, no request, no handler call. A handler must not await
    /// this: its own call is among those awaited.
    ///
    /// Handlers get no further calls. A running call is awaited, however long it takes;
    /// [`SharedInformerFactory::shutdown_within`] limits that.
    ///
    /// # Cancel safety
    ///
    /// Safe: everything stops all the same; only the wait ends.
    pub async fn shutdown(&self) {
        self.inner.begin_stop();
        self.inner.life.ended().await;
    }

    /// As [`SharedInformerFactory::shutdown`], but returns within `limit`. Handler calls that run shortly before it are dropped
    /// at their next `await`.
    ///
    /// # Errors
    ///
    /// When something did not end by itself: the error names each such handler call, user code, and load or save of a file.
    /// Work that blocks its thread cannot be dropped, and still runs.
    ///
    /// # Cancel safety
    ///
    /// Safe: everything stops all the same, but no call is dropped.
    pub async fn shutdown_within(&self, limit: Duration) -> Result<(), NotEnded> {
        self.inner.begin_stop();
        self.inner.life.ended_within(limit).await
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedInformerFactory({})", self.selection)
    }
}

impl Inner {
    /// The existing informer, or a new one.
    fn lifeline(
        &self,
        resource: ResourceType,
        selection: &Selection,
        representation: Representation,
    ) -> Arc<Lifeline> {
        let selection = &selection.of(&resource);
        let mut informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        informers.retain(|_, informer| informer.strong_count() > 0);
        let identity = |representation| Identity {
            resource: resource.clone(),
            selection: selection.clone(),
            representation,
        };
        let living = |representation| informers.get(&identity(representation)).and_then(Weak::upgrade);
        // An informer of whole objects serves views of metadata, too.
        if let Some(whole) = living(Representation::Whole).filter(|whole| !whole.core().life.is_stopped()) {
            return whole;
        }
        if let Some(metadata) =
            living(Representation::Metadata).filter(|metadata| !metadata.core().life.is_stopped())
        {
            if representation == Representation::Metadata {
                return metadata;
            }
            // Before its start, a metadata informer can become one of whole objects.
            if metadata.core().want_whole() {
                informers.remove(&identity(Representation::Metadata));
                informers.insert(identity(Representation::Whole), Arc::downgrade(&metadata));
                return metadata;
            }
        }
        let options = &self.options;
        let mut settings = options.settings.clone();
        if let Some(resync) = options.resync.get(&resource) {
            settings.resync = (!resync.is_zero()).then_some(*resync);
        }
        let lifeline = Arc::new(Lifeline::new(
            (resource.clone(), selection.clone(), representation),
            settings,
            options.transform.clone(),
            self.server.clone(),
            self.runtime.clone(),
            self.life.part(resource.clone(), selection.clone()),
            free_number(&resource, selection, informers.values().filter_map(Weak::upgrade)),
        ));
        informers.insert(identity(representation), Arc::downgrade(&lifeline));
        lifeline
    }

    /// Asks everything to stop. An informer that is no longer in `informers` was stopped when its last handle was
    /// dropped.
    fn begin_stop(&self) {
        self.life.begin_stop();
        for informer in self.living() {
            informer.core().begin_stop();
        }
    }

    /// In an order that does not depend on hashes, so that a deterministic factory starts its informers alike.
    fn living(&self) -> Vec<Arc<Lifeline>> {
        let informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut living: Vec<_> = informers.values().filter_map(Weak::upgrade).collect();
        living.sort_by_cached_key(|informer| {
            let core = informer.core();
            (core.resource.to_string(), core.selection.to_string())
        });
        living
    }

    fn cores(&self) -> Vec<Arc<Core>> {
        self.living().into_iter().map(|informer| informer.core().clone()).collect()
    }
}
