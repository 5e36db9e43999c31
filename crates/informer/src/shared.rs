//! One cache, what feeds it and who listens to it, without types: what all views of a resource share (design D1).

mod driver;
mod fanout;
mod progress;
mod source;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use informer_core::reflector::ReflectorConfig;
use informer_core::{Cache, Change, Scope, Store};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::resource::{ResourceType, Selection};
use crate::runtime::Runtime;
use crate::server::Server;
use crate::transform::Transform;
use crate::{Error, FirstListChoice, StreamingListChoice};
use source::Sources;

pub(crate) use fanout::{Fanout, Subscriber};
pub(crate) use progress::Progress;

/// What of each object is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Content {
    Whole,
    /// `PartialObjectMetadata`: no spec, no status.
    Metadata,
}

/// How the objects are fetched and kept: everything about an informer that is not which objects.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) reflector: ReflectorConfig,
    pub(crate) first_list: FirstListChoice,
    pub(crate) streaming_list: StreamingListChoice,
    pub(crate) gzip: bool,
    pub(crate) item_limit: usize,
    pub(crate) tweak: Option<ListOptionsTweak>,
    pub(crate) resync: Option<Duration>,
}

/// Changes the query parameters of each request of a resource.
pub(crate) type ListOptionsTweak = Arc<dyn Fn(&ResourceType, &mut Vec<(String, String)>) + Send + Sync>;

/// The shared part of all informers of one resource and selection.
///
/// Its tasks hold [`Core`] only; the last handle that is dropped stops them (design D11).
pub(crate) struct Shared {
    core: Arc<Core>,
}

/// What the tasks need.
pub(crate) struct Core {
    pub(crate) resource: ResourceType,
    pub(crate) selection: Selection,
    pub(crate) settings: Settings,
    pub(crate) server: Arc<Server>,
    pub(crate) cache: Cache,
    pub(crate) fanout: Fanout,
    pub(crate) progress: Progress,
    /// The writing side. Only the tasks that feed it lock it.
    store: Mutex<Store>,
    /// What is read of it before a start, and may be changed until then.
    setup: Mutex<Setup>,
    sources: Mutex<Sources>,
    runtime: Runtime,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What may be set until the start.
#[derive(Clone)]
pub(crate) struct Setup {
    started: bool,
    pub(crate) content: Content,
    pub(crate) transform: Option<Transform>,
}

impl Shared {
    pub(crate) fn new(
        (resource, selection, content): (ResourceType, Selection, Content),
        settings: Settings,
        transform: Option<Transform>,
        server: Arc<Server>,
        runtime: Runtime,
        stop: &CancellationToken,
    ) -> Self {
        let store = Store::new();
        let core = Core {
            resource,
            selection,
            settings,
            server,
            cache: store.cache(),
            fanout: Fanout::default(),
            progress: Progress::default(),
            store: Mutex::new(store),
            setup: Mutex::new(Setup { started: false, content, transform }),
            sources: Mutex::default(),
            runtime,
            tasks: TaskTracker::new(),
            stop: stop.child_token(),
        };
        let core = Arc::new(core);
        // A token of the user's may stop everything at any time.
        let stopped = core.clone();
        core.runtime.spawn(async move {
            stopped.stopping().await;
            stopped.begin_stop();
        });
        Self { core }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.core.begin_stop();
    }
}

impl Core {
    /// Starts listing and watching; once.
    pub(crate) fn start(self: &Arc<Self>) {
        if std::mem::replace(&mut lock(&self.setup).started, true) || self.is_stopped() {
            return;
        }
        for scope in self.selection.scopes(&self.resource) {
            self.add_source(scope);
        }
    }

    pub(crate) fn is_started(&self) -> bool {
        lock(&self.setup).started
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) fn setup(&self) -> Setup {
        lock(&self.setup).clone()
    }

    /// Fetches whole objects from the start on, where so far only metadata was wanted.
    pub(crate) fn want_whole(&self) -> bool {
        let mut setup = lock(&self.setup);
        if setup.content == Content::Metadata && !setup.started {
            setup.content = Content::Whole;
        }
        setup.content == Content::Whole
    }

    pub(crate) fn set_transform(&self, transform: Transform) -> Result<(), Error> {
        let mut setup = lock(&self.setup);
        if setup.started {
            return Err(Error::already_started(&self.resource));
        }
        setup.transform = Some(transform);
        Ok(())
    }

    /// Feeds the cache from one more scope.
    pub(crate) fn add_source(self: &Arc<Self>, scope: Scope) -> bool {
        let mut sources = lock(&self.sources);
        if self.is_stopped() || sources.contains(&scope) {
            return false;
        }
        let id = self.store().add_source(scope.clone());
        let (control, running) = sources.insert(scope.clone(), id, self.stop.child_token());
        self.progress.source_added(id);
        let task = driver::run(self.clone(), id, scope, control);
        self.runtime.spawn(self.track(async move {
            task.await;
            drop(running);
        }));
        true
    }

    /// Stops feeding the cache from a scope; its objects leave.
    pub(crate) async fn remove_source(&self, scope: &Scope) -> bool {
        let Some(mut source) = lock(&self.sources).remove(scope) else { return false };
        source.ended().await;
        let (revision, changes) = {
            let mut store = self.store();
            let changes = store.remove_source(source.id());
            (store.revision(), changes)
        };
        self.publish(revision, &changes);
        self.progress.source_removed(source.id());
        self.sync_if_complete();
        true
    }

    /// Wakes whatever waits for a server to answer better than before.
    pub(crate) fn retry_now(&self) {
        lock(&self.sources).wake_all();
    }

    /// Resolves when a stop begins.
    pub(crate) async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// Counts a task among those that a stop waits for.
    pub(crate) fn track<F: Future>(&self, task: F) -> impl Future<Output = F::Output> + use<F> {
        self.tasks.track_future(task)
    }

    /// Ends everything that runs, without waiting for it.
    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.fanout.stop();
        self.progress.stopped();
    }

    /// Ends everything that runs, and waits until it has.
    pub(crate) async fn stopped(&self) {
        self.begin_stop();
        self.tasks.wait().await;
    }

    /// Tells a change of the cache to everybody who listens.
    fn publish(&self, revision: u64, changes: &[Change]) {
        self.fanout.offer(revision, changes);
    }

    fn sync_if_complete(&self) {
        if self.store().is_synced() {
            self.fanout.cache_synced();
            self.progress.synced();
        }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }
}

/// User code may panic while one of these is held only inside index functions, which the store catches.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
