//! A controller: which objects it reconciles, what wakes it, and how it runs.

mod run;
mod runnable;
mod telling;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer::kube::Client;
use informer::{Informer, Item, Object, ObjectKey, View};
use informer_core::control::{Control, Retries};
use informer_core::queue::{Config, Queue, RateLimiter, default_rate_limiter};

use crate::caches::Caches;
use crate::election::Election;
use crate::error::RunError;
use crate::gate::TermClient;
use crate::handle::ControllerHandle;
use crate::host::Host;
use crate::inbox::Inbox;
use crate::leadership::Leadership;
use crate::permissions::{Access, Needs, Rules};
use crate::reconcile::Reconcile;
use crate::source::{self, Source, Watched};
pub use runnable::Runnable;

/// Reconciles the objects of an informer: it calls a [reconciler](Reconcile) for each object that has changed, and for each
/// whose related objects have.
///
/// ```no_run
/// use informer::SharedInformerFactory;
/// use informer::kube::{Client, Config};
/// use informer_controller::{Context, Controller, Outcome, stop_signal};
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::infer().await?;
/// let client = Client::try_from(config.clone())?;
/// let factory = SharedInformerFactory::new(config)?;
/// let deployments = factory.informer::<Deployment>();
/// let maps = factory.informer::<ConfigMap>();
///
/// let read = deployments.clone();
/// Controller::new("example", &maps)
///     .reads(&deployments)
///     .workers(4)
///     .until(stop_signal())
///     .run(client, move |context: Context<ConfigMap>| {
///         let deployments = context.snapshot(&read);
///         async move {
///             println!("{}: {} deployments", context.key(), deployments.len());
///             Ok(Outcome::Done)
///         }
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// Its promises, with the clauses of `docs/CONTRACT.md`:
///
/// - An object has one reconciliation at a time, and another one after each change that comes meanwhile. Every object ends
///   reconciled at its last version, whatever fails in between (Q6).
/// - A reconciliation reads nothing older than what woke it (Q6), and sees what the last one for the same object wrote
///   (Q7).
/// - The objects of the initial list, and resyncs, wait behind changes, without starving (Q5).
/// - A panic of the reconciler is a failure of that object, which is tried again.
///
/// # Spans
///
/// Each reconciliation runs in a span of [`tracing`], `reconcile`, of the level INFO. Its fields are `controller`, `key`, `causes`,
/// `attempt` (1, and one more for each failure in a row) and `result`. Log lines of the reconciler are in it. At its end comes
/// an event of the level DEBUG with the duration. A failure is a WARN with `error`, `attempt` and `retry_in`, one that gives up an ERROR, a
/// repetition of the same error a DEBUG. A subscriber of the program sends the spans wherever it likes, such as `tracing_opentelemetry::layer()` to OpenTelemetry:
///
/// ```no_run
/// use opentelemetry::trace::TracerProvider;
/// use opentelemetry_sdk::trace::SdkTracerProvider;
/// use tracing_subscriber::layer::SubscriberExt;
/// use tracing_subscriber::util::SubscriberInitExt;
///
/// // In a cluster, `opentelemetry_otlp` has the exporter.
/// let exporter = opentelemetry_stdout::SpanExporter::default();
/// let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
/// let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("my-operator"));
/// tracing_subscriber::registry().with(spans).with(tracing_subscriber::fmt::layer()).init();
/// ```
pub struct Controller<T> {
    name: Arc<str>,
    primary: Watched<T>,
    sources: Vec<Source>,
    caches: Caches,
    needs: Needs,
    settings: Settings,
    retries: Retries,
    inbox: Arc<Inbox>,
    begin: BoxFuture<'static, ()>,
    until: BoxFuture<'static, ()>,
}

struct Settings {
    sync_limit: Duration,
    grace: Duration,
    reconcile_limit: Option<Duration>,
    write_limit: Duration,
    own_writes: Duration,
    checks_permissions: bool,
    host: Host,
}

impl<T: View> Controller<T> {
    /// A controller of the objects of an informer. Its name is the field manager of its writes, and the label of its
    /// metrics and log lines.
    pub fn new(name: &str, objects: impl Into<Watched<T>>) -> Self {
        let primary = objects.into();
        let mut caches = Caches::default();
        caches.add_watched(&primary);
        Self {
            name: name.into(),
            primary,
            sources: Vec::new(),
            caches,
            needs: Needs::default(),
            settings: Settings::default(),
            retries: Retries::new(default_rate_limiter()),
            inbox: Arc::new(Inbox::new(Control::new(Queue::new(&Config::default())))),
            begin: std::future::ready(()).boxed(),
            until: std::future::pending().boxed(),
        }
    }

    /// Reconciles an object also when an object that it controls changes: one with an owner reference to it that has
    /// `controller: true`. [`Context::owned`](crate::Context::owned) lists these.
    ///
    /// A namespaced object controls objects of its own namespace only, as Kubernetes' garbage collector demands.
    #[must_use]
    pub fn owns<U: View>(mut self, objects: impl Into<Watched<U>>) -> Self {
        let watched = objects.into();
        self.caches.add_owned(&watched);
        self.sources.push(source::owned(watched, self.primary.informer.resource()));
        self
    }

    /// Reconciles the objects with these keys when an object of another informer changes. `keys` is called with the state
    /// before a change and with the state after it.
    ///
    /// ```no_run
    /// # use informer::Informer;
    /// # use informer_controller::Controller;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// # fn example(pods: Informer<Pod>, maps: Informer<ConfigMap>) {
    /// let by_map = pods.add_index(|pod| pod.labels().value("map").map(str::to_owned));
    /// let controller = Controller::new("restart", &pods).watches(&maps, move |map| {
    ///     by_map.get(map.key().name()).into_iter().map(|pod| pod.key().clone()).collect::<Vec<_>>()
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn watches<U: View, I: IntoIterator<Item = ObjectKey>>(
        mut self,
        objects: impl Into<Watched<U>>,
        keys: impl Fn(&Item<U>) -> I + Send + Sync + 'static,
    ) -> Self {
        let watched = objects.into();
        self.caches.add_watched(&watched);
        self.sources.push(source::mapped(watched, keys));
        self
    }

    /// Gives reconciliations a snapshot of another informer, whose changes wake nothing.
    #[must_use]
    pub fn reads<U: View>(mut self, objects: impl Into<Watched<U>>) -> Self {
        self.caches.add_watched(&objects.into());
        self
    }

    /// Names a permission that the reconciler needs. When the controller starts, it asks the server for all of them, and for
    /// those of its informers, and ends with an error if some are missing
    /// ([`RunError::missing_permissions`]). The module [`permissions`](crate::permissions) has an example.
    #[must_use]
    pub fn needs(mut self, access: Access) -> Self {
        self.needs.add(access);
        self
    }

    /// Asks for no permission at the start. For servers whose reviews say less than they allow: a permission that is missing then
    /// shows as a refused request.
    #[must_use]
    pub fn without_permission_check(mut self) -> Self {
        self.settings.checks_permissions = false;
        self
    }

    /// The RBAC rules that the controller needs: what [`needs`](Self::needs) names, and its informers.
    pub fn rules(&self) -> Rules {
        self.needs.rules(&self.name, self.caches.informers())
    }

    /// Runs up to this many reconciliations at a time, of different objects. 1 by default, as in controller-runtime.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        self.inbox.control().set_workers(workers);
        self
    }

    /// A change waits so long for further ones of its object: all of them lead to one reconciliation. The wait begins with the first
    /// one, so an object that changes all the time is reconciled, too. Without a wait by default.
    #[must_use]
    pub fn debounce(self, wait: Duration) -> Self {
        self.inbox.control().set_debounce(wait);
        self
    }

    /// Of objects that go, only these are seen to go ([`Triggers::saw_deletion`](crate::Triggers::saw_deletion)): others are another process's.
    #[doc(hidden)]
    #[must_use]
    pub fn ours(self, ours: impl Fn(&Object) -> bool + Send + Sync + 'static) -> Self {
        self.inbox.owns(Box::new(ours));
        self
    }

    /// A handle to the controller, for the time when it runs.
    pub fn handle(&self) -> ControllerHandle {
        ControllerHandle::new(self.name.clone(), self.inbox.clone())
    }

    /// How long after a failure an object is reconciled again. By default after 5 ms, doubling to 1000 s with each failure
    /// in a row, and not more than 10 objects a second after the first 100, as in client-go.
    #[must_use]
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey> + Send + 'static) -> Self {
        self.retries = Retries::new(limiter);
        self
    }

    /// How long the informers may take to sync at the start. Two minutes by default, as in controller-runtime.
    #[must_use]
    pub fn sync_limit(mut self, limit: Duration) -> Self {
        self.settings.sync_limit = limit;
        self
    }

    /// How long running reconciliations may take to end after [`until`](Self::until), and then their events to be sent. 15 s
    /// by default, so that a pod's 30 s suffice for the release of the lease, too. Reconciliations that take longer are dropped at their next `await`, events are lost.
    #[must_use]
    pub fn grace(mut self, limit: Duration) -> Self {
        self.settings.grace = limit;
        self
    }

    /// The limit that [`grace`](Self::grace) sets.
    pub fn grace_limit(&self) -> Duration {
        self.settings.grace
    }

    /// How long a reconciliation may take; without a limit by default. One that takes longer is dropped at its `await` and counts as a
    /// failure of its object: a request that hangs occupies no worker for good. The metric `controller_reconciles_total` has the result
    /// `timed_out`.
    #[must_use]
    pub fn reconcile_limit(mut self, limit: Duration) -> Self {
        self.settings.reconcile_limit = Some(limit);
        self
    }

    /// How long the server may take to answer a write. 30 s by default.
    #[must_use]
    pub fn write_limit(mut self, limit: Duration) -> Self {
        self.settings.write_limit = limit;
        self
    }

    /// How long a reconciliation waits until the caches reflect what the last one for the same object wrote. 10 s by
    /// default. After that the object waits like after a failure; it is never reconciled on older state.
    #[must_use]
    pub fn own_writes_limit(mut self, limit: Duration) -> Self {
        self.settings.own_writes = limit;
        self
    }

    /// Each reconciliation sees what those of all keys have written that had ended when it began, not only that of its own key:
    /// for a reconciler that allocates from what its caches show, such as ports or addresses.
    ///
    /// Reconciliations that run at the same time do not see each other's writes: an allocator needs one
    /// [worker](Self::workers). It costs one lag of the watch for each reconciliation that writes (some milliseconds, 10,000
    /// objects at 5 ms take 50 s), and a cache that stands still stops all keys.
    #[must_use]
    pub fn own_writes_for_all_keys(self) -> Self {
        self.inbox.control().wait_for_all();
        self
    }

    /// The clock that [`Context::now`](crate::Context::now) reads, and the seed of
    /// [`Context::random`](crate::Context::random).
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.settings.host = host;
        self
    }

    /// Reconciles nothing before `start` is ready. `start` is polled when the informers are synced, and not before: so a
    /// replica can be made ready in advance.
    #[must_use]
    pub fn begin_when(mut self, start: impl Future<Output = ()> + Send + 'static) -> Self {
        self.begin = start.boxed();
        self
    }

    /// Ends the controller when `stop` is ready: no reconciliation begins any more, and those that run may
    /// [end](Self::grace).
    #[must_use]
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        self.until = stop.boxed();
        self
    }

    /// Runs the controller: starts its informers, waits until they are synced, and reconciles until
    /// [`until`](Self::until) ends it. The writes of the reconciler go through `client`.
    ///
    /// Every object of the initial list is reconciled once.
    ///
    /// # Errors
    ///
    /// When a permission is missing, or when an informer is not synced in time, is denied by the server, or stops.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running reconciliations at their `await`.
    pub async fn run(self, client: Client, reconciler: impl Reconcile<T>) -> Result<(), RunError> {
        self.run_as(Leadership::Alone(client), reconciler).await
    }

    /// As [`run`](Self::run), in several processes of which one reconciles: the others have synced their informers and wait
    /// for the leadership. `writes` is a configuration, or a client for the writes of the reconciler; no request of a
    /// former leader starts after its renew deadline ([`election`](crate::election) says what is promised).
    ///
    /// When leadership is lost, running reconciliations are dropped at their `await`, and the process waits for its next
    /// term. Then it reconciles every object again. When [`until`](Self::until) ends the controller, the lease is released
    /// after the last reconciliation.
    ///
    /// The caches of a new leader may lack the last writes of the former one, by as much as its watches lag behind. A
    /// reconciler that creates objects should give them names that follow from the owner: a second creation then fails.
    ///
    /// ```no_run
    /// # use informer::Informer;
    /// # use informer::kube::Config;
    /// # use informer_controller::{Context, Controller, Outcome};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use informer_controller::election::Election;
    ///
    /// # async fn example(config: Config, maps: Informer<ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
    /// let election = Election::builder(config.clone(), "shop", "example").build()?;
    /// Controller::new("example", &maps)
    ///     .run_elected(&election, config, async |context: Context<ConfigMap>| {
    ///         println!("{}", context.key());
    ///         Ok(Outcome::Done)
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and when leadership can never be acquired: its lease is forbidden, for example, or another controller
    /// of this process has the election. A [`Program`](crate::Program) runs several controllers with one.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run). The lease is released, or expires.
    pub async fn run_elected(
        self,
        election: &Election,
        writes: impl Into<TermClient>,
        reconciler: impl Reconcile<T>,
    ) -> Result<(), RunError> {
        self.run_as(Leadership::elected(election, writes.into())?, reconciler).await
    }

    /// The controller with its reconciler, for a [`Program`](crate::Program) to run.
    pub fn with(self, reconciler: impl Reconcile<T>) -> Runnable {
        Runnable::new(self, reconciler)
    }

    pub(crate) fn informers(&self) -> &[Informer<Object>] {
        self.caches.informers()
    }

    /// One more event that ends the controller, and a bound of its grace period.
    pub(crate) fn also_until(
        mut self,
        stop: impl Future<Output = ()> + Send + 'static,
        grace: Duration,
    ) -> Self {
        self.settings.grace = self.settings.grace.min(grace);
        let own = self.until;
        self.until = async move {
            tokio::select! {
                biased;
                () = own => {}
                () = stop => {}
            }
        }
        .boxed();
        self
    }

    pub(crate) async fn run_as(
        self,
        leadership: Leadership,
        reconciler: impl Reconcile<T>,
    ) -> Result<(), RunError> {
        run::run(self, leadership, reconciler).await
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sync_limit: Duration::from_secs(120),
            grace: Duration::from_secs(15),
            reconcile_limit: None,
            write_limit: Duration::from_secs(30),
            own_writes: Duration::from_secs(10),
            checks_permissions: true,
            host: Host::default(),
        }
    }
}

impl<T> fmt::Debug for Controller<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.name)
            .field("of", &self.primary)
            .finish_non_exhaustive()
    }
}
