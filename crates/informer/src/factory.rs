//! Where informers come from: one per resource and selection, however many ask.

mod builder;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use informer_core::View;
use kube_client::{Client, Config};
use kube_core::metadata::PartialObjectMeta;
use kube_core::{DynamicObject, Resource};

use crate::informer::Informer;
use crate::metrics::{FactoryMetrics, free_number};
use crate::resource::{ResourceType, Selection};
use crate::runtime::Runtime;
use crate::server::Server;
use crate::shared::{Content, Core, Life, Settings, Shared};
use crate::sync::NotSynced;
use crate::transform::Transform;
use crate::transport::{KubeTransport, Transport};
use crate::{Error, Layout};
use builder::Connection;

pub use builder::FactoryBuilder;

/// Makes informers that share: per resource and selection there is one cache and one watch, whatever the views.
///
/// A handle: clones, and factories narrowed by [`in_namespace`](Self::in_namespace) and its like, are the same factory.
///
/// ```no_run
/// use std::time::Duration;
/// use informer::SharedInformerFactory;
/// use k8s_openapi::api::apps::v1::ReplicaSet;
/// use k8s_openapi::api::core::v1::Pod;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = kube_client::Config::infer().await?;
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
    /// An informer lives as long as somebody has a handle of it.
    informers: Mutex<HashMap<Identity, Weak<Shared>>>,
}

/// What makes two informers the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    resource: ResourceType,
    selection: Selection,
    content: Content,
}

struct Options {
    settings: Settings,
    resync: HashMap<ResourceType, Duration>,
    transform: Option<Transform>,
    layout: Layout,
    start_at_once: bool,
}

impl SharedInformerFactory {
    /// A factory with default options, for all namespaces, on a connection thread of its own.
    ///
    /// # Errors
    ///
    /// When the configuration's certificates or credentials cannot be used.
    pub fn new(config: Config) -> Result<Self, Error> {
        Self::builder(config).build()
    }

    /// Chooses options first. Connections are driven by one thread of the factory's own.
    pub fn builder(config: Config) -> FactoryBuilder {
        FactoryBuilder::new(Connection::Config(Box::new(config)))
    }

    /// A factory on an existing kube client, whose connections stay on the runtime that it was made in. Switch the
    /// client's retries off (`Config::default_retry`): the informer's say what they wait for. Credentials are not read
    /// again after a 401.
    pub fn builder_with_client(client: Client) -> FactoryBuilder {
        Self::builder_with_transport(KubeTransport::from_client(client))
    }

    /// A factory on a transport of one's own, on the caller's runtime.
    pub fn builder_with_transport(transport: impl Transport) -> FactoryBuilder {
        FactoryBuilder::new(Connection::Transport(Arc::new(transport)))
    }

    /// This factory, looking at one namespace only.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        self.in_namespaces([namespace])
    }

    /// This factory, looking at these namespaces only: one list and watch each, one cache together.
    /// None means all.
    #[must_use]
    pub fn in_namespaces<'a>(&self, namespaces: impl IntoIterator<Item = &'a str>) -> Self {
        let selection = Selection { namespaces: sorted(namespaces), ..self.selection.clone() };
        Self { selection, ..self.clone() }
    }

    /// This factory, looking only at objects with matching labels.
    #[must_use]
    pub fn with_labels(&self, selector: &str) -> Self {
        Self {
            selection: Selection { labels: selector.to_owned(), ..self.selection.clone() },
            ..self.clone()
        }
    }

    /// This factory, looking only at objects with matching fields.
    #[must_use]
    pub fn with_fields(&self, selector: &str) -> Self {
        Self {
            selection: Selection { fields: selector.to_owned(), ..self.selection.clone() },
            ..self.clone()
        }
    }

    /// The informer of a type that stands for a resource, as those of k8s-openapi and kube-derive do.
    pub fn informer<T: View + Resource<DynamicType = (), Scope: 'static>>(&self) -> Informer<T> {
        self.informer_of(ResourceType::of::<T>())
    }

    /// The informer of a resource, viewed as any type: a struct of the fields that matter costs only those.
    ///
    /// ```no_run
    /// use informer::{ResourceType, SharedInformerFactory};
    /// use k8s_openapi::api::core::v1::Node;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Capacity {
    ///     status: Status,
    /// }
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Status {
    ///     capacity: std::collections::BTreeMap<String, String>,
    /// }
    ///
    /// # fn example(factory: SharedInformerFactory) {
    /// let nodes = factory.informer_of::<Capacity>(ResourceType::of::<Node>());
    /// # }
    /// ```
    pub fn informer_of<T: View>(&self, resource: ResourceType) -> Informer<T> {
        self.view(resource, Content::Whole)
    }

    /// The informer of any resource, as objects without a schema.
    pub fn dynamic(&self, resource: ResourceType) -> Informer<DynamicObject> {
        self.informer_of(resource)
    }

    /// The informer of any resource's metadata. Where this factory has an informer of the whole objects, this is a view
    /// of it; else only metadata is fetched, unless the whole is asked for as well before the start.
    pub fn metadata(&self, resource: ResourceType) -> Informer<PartialObjectMeta<DynamicObject>> {
        self.view(resource, Content::Metadata)
    }

    /// Starts every informer that was asked for, is not running, and of which somebody still has a handle. Calling it
    /// again starts those that came since.
    pub fn start(&self) {
        for informer in self.inner.living() {
            informer.core().start();
        }
    }

    /// Waits until every started informer has its first content, without polling.
    ///
    /// # Errors
    ///
    /// When one has not within `limit`: says which, and why.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn wait_for_sync(&self, limit: Duration) -> Result<(), NotSynced> {
        crate::sync::wait_for_all(&self.inner.started(), limit, false).await
    }

    /// As [`SharedInformerFactory::wait_for_sync`], but gives up as soon as the server denies a resource
    /// ([`Status::Denied`](crate::Status::Denied)).
    ///
    /// # Errors
    ///
    /// When one is denied, or not there within `limit`.
    pub async fn wait_for_sync_or_denial(&self, limit: Duration) -> Result<(), NotSynced> {
        crate::sync::wait_for_all(&self.inner.started(), limit, true).await
    }

    /// What all informers of which somebody has a handle hold and have done, at this moment.
    pub fn metrics(&self) -> FactoryMetrics {
        FactoryMetrics::of(&self.inner.living())
    }

    /// Stops every informer and waits until nothing runs: no task, no request, no handler's call.
    /// Not to be awaited in a handler, whose call would have to end first.
    ///
    /// Handlers get no further calls; one that is under way is waited for, however long it takes:
    /// [`SharedInformerFactory::shutdown_within`] does not.
    ///
    /// # Cancel safety
    ///
    /// Safe: everything stops all the same, only the waiting ends.
    pub async fn shutdown(&self) {
        self.inner.begin_stop();
        self.inner.life.ended().await;
    }

    /// As [`SharedInformerFactory::shutdown`], but handlers' calls that are not over within `limit` are dropped at their
    /// next `await`. Whether all ended by themselves.
    ///
    /// A call that blocks its thread cannot be dropped, and is waited for.
    pub async fn shutdown_within(&self, limit: Duration) -> bool {
        self.inner.begin_stop();
        self.inner.life.ended_within(limit).await
    }

    fn view<T: View>(&self, resource: ResourceType, content: Content) -> Informer<T> {
        let shared = self.inner.shared(resource, &self.selection, content);
        if self.inner.options.start_at_once {
            shared.core().start();
        }
        Informer::new(shared, self.inner.options.layout)
    }
}

impl Inner {
    /// The informer that is there, or a new one.
    fn shared(&self, resource: ResourceType, selection: &Selection, content: Content) -> Arc<Shared> {
        let selection = &selection.of(&resource);
        let mut informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        informers.retain(|_, informer| informer.strong_count() > 0);
        let identity =
            |content| Identity { resource: resource.clone(), selection: selection.clone(), content };
        let living = |content| informers.get(&identity(content)).and_then(Weak::upgrade);
        if let Some(whole) = living(Content::Whole).filter(|whole| !whole.core().life.is_stopped()) {
            return whole;
        }
        if let Some(metadata) =
            living(Content::Metadata).filter(|metadata| !metadata.core().life.is_stopped())
        {
            if content == Content::Metadata {
                return metadata;
            }
            if metadata.core().want_whole() {
                informers.remove(&identity(Content::Metadata));
                informers.insert(identity(Content::Whole), Arc::downgrade(&metadata));
                return metadata;
            }
        }
        let options = &self.options;
        let mut settings = options.settings.clone();
        if let Some(resync) = options.resync.get(&resource) {
            settings.resync = (!resync.is_zero()).then_some(*resync);
        }
        let shared = Arc::new(Shared::new(
            (resource.clone(), selection.clone(), content),
            settings,
            options.transform.clone(),
            self.server.clone(),
            self.runtime.clone(),
            self.life.part(),
            free_number(&resource, selection, informers.values().filter_map(Weak::upgrade)),
        ));
        informers.insert(identity(content), Arc::downgrade(&shared));
        shared
    }

    /// Tells everything to end. What is no longer in `informers` was told when its last handle was dropped.
    fn begin_stop(&self) {
        self.life.begin_stop();
        for informer in self.living() {
            informer.core().begin_stop();
        }
    }

    fn living(&self) -> Vec<Arc<Shared>> {
        let informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        informers.values().filter_map(Weak::upgrade).collect()
    }

    fn started(&self) -> Vec<Arc<Core>> {
        let cores = self.living().into_iter().map(|informer| informer.core().clone());
        cores.filter(|core| core.is_started()).collect()
    }
}

fn sorted<'a>(namespaces: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut namespaces: Vec<_> = namespaces.into_iter().map(str::to_owned).collect();
    namespaces.sort();
    namespaces.dedup();
    namespaces
}
