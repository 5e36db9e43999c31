//! One cache, what feeds it and who listens to it, without types: what all views of a resource share (design D1).

mod driver;
mod fanout;
mod journal;
mod life;
mod loading;
mod memory;
mod progress;
mod quarantine;
mod recent;
mod source;
mod tally;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use http::HeaderValue;
use informer_core::backoff::BackoffConfig;
use informer_core::reflector::{ReflectorConfig, Resume};
use informer_core::store::Replace;
use informer_core::{Cache, Change, Scope, SourceId, Storage, Store};

use crate::metrics::Counters;
use crate::resource::{ResourceType, Selection};
use crate::runtime::Runtime;
use crate::saving::{self, Saving};
use crate::server::Server;
use crate::transform::Transform;
use crate::{EncodingChoice, Error, FirstListChoice, StreamingListChoice};
use source::Sources;

pub(crate) use fanout::{Fanout, Subscriber};
pub(crate) use life::Life;
pub(crate) use progress::Progress;
pub(crate) use quarantine::Quarantine;
pub use quarantine::Quarantined;
pub(crate) use recent::{Reader, Recent, WINDOW};

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
    pub(crate) encoding: EncodingChoice,
    pub(crate) decodes_managed_fields: bool,
    pub(crate) item_limit: usize,
    pub(crate) user_agent: HeaderValue,
    pub(crate) tweak: Option<ListOptionsTweak>,
    pub(crate) resync: Option<Duration>,
    pub(crate) keeping: Keeping,
    pub(crate) saving: Option<Saving>,
}

/// Where objects' bytes are kept: made for each cache.
pub(crate) type Keeping = Arc<dyn Fn(&ResourceType) -> Arc<dyn Storage> + Send + Sync>;

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
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) fanout: Fanout,
    pub(crate) recent: Recent,
    pub(crate) progress: Progress,
    pub(crate) quarantine: Quarantine,
    pub(crate) life: Life,
    pub(crate) counters: Arc<Counters>,
    /// Tells it from others whose metrics have the same labels.
    pub(crate) number: usize,
    /// The writing side. Changes are put into the mailboxes before it is unlocked, so that everybody hears of them in
    /// the order in which they happened, whichever source they came from.
    store: Mutex<Store>,
    /// What may be changed until the start. Locked before `sources`, and that before `store`.
    setup: Mutex<Setup>,
    sources: Mutex<Sources>,
    runtime: Runtime,
}

/// What may be set until the start.
#[derive(Clone)]
pub(crate) struct Setup {
    phase: Phase,
    pub(crate) content: Content,
    pub(crate) transform: Option<Transform>,
    pub(crate) backoff: BackoffConfig,
    /// What to look at from the start on.
    scopes: Vec<Scope>,
    /// The sources that began with what was saved of a scope, or are there because others did.
    loaded: HashMap<Scope, (SourceId, Option<Resume>)>,
}

/// How far the beginning is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    /// It has begun with what was saved.
    Loaded,
    /// It was started, and waits for what was saved.
    Loading,
    /// Its sources were started.
    Running,
}

impl Shared {
    pub(crate) fn new(
        (resource, selection, content): (ResourceType, Selection, Content),
        settings: Settings,
        transform: Option<Transform>,
        server: Arc<Server>,
        runtime: Runtime,
        life: Life,
        number: usize,
    ) -> Self {
        let store = Store::new();
        let scopes = selection.scopes();
        let backoff = settings.reflector.backoff.clone();
        let storage = (settings.keeping)(&resource);
        let core = Core {
            resource,
            selection,
            settings,
            server,
            cache: store.cache(),
            storage,
            fanout: Fanout::default(),
            recent: Recent::default(),
            progress: Progress::default(),
            quarantine: Quarantine::default(),
            life,
            counters: Arc::default(),
            number,
            store: Mutex::new(store),
            setup: Mutex::new(Setup {
                phase: Phase::New,
                content,
                transform,
                backoff,
                scopes,
                loaded: HashMap::new(),
            }),
            sources: Mutex::default(),
            runtime,
        };
        let core = Arc::new(core);
        // A token of the user's may stop everything at any time.
        let stopped = core.clone();
        let running = core.life.running();
        core.runtime.spawn(async move {
            stopped.life.stopping().await;
            stopped.begin_stop();
            drop(stopped);
            drop(running);
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
    /// What was decoded for others is not held any longer when all have been told everything.
    pub(crate) fn release_decoded(&self) {
        if !self.recent.is_empty() && self.fanout.is_idle() {
            self.recent.release();
        }
    }

    /// Starts listing and watching; once.
    pub(crate) fn start(self: &Arc<Self>) {
        let mut setup = lock(&self.setup);
        let loads = match setup.phase {
            Phase::New => true,
            Phase::Loaded => false,
            Phase::Loading | Phase::Running => return,
        };
        match self.settings.saving.clone() {
            None => self.start_sources(&mut setup),
            Some(saving) => {
                if loads {
                    setup.phase = Phase::Loading;
                } else {
                    self.start_sources(&mut setup);
                }
                let (running, core) = (self.life.running(), self.clone());
                self.runtime.spawn(async move {
                    saving::keep(core, saving, loads).await;
                    drop(running);
                });
            }
        }
    }

    fn start_sources(self: &Arc<Self>, setup: &mut Setup) {
        setup.phase = Phase::Running;
        for scope in std::mem::take(&mut setup.scopes) {
            let loaded = setup.loaded.remove(&scope);
            self.start_source(scope, loaded);
        }
    }

    pub(crate) fn is_started(&self) -> bool {
        matches!(lock(&self.setup).phase, Phase::Loading | Phase::Running)
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The bytes of memory that the cache takes, and what its objects share in their storage.
    pub(crate) fn held_bytes(&self) -> usize {
        self.cache.held_bytes() + self.storage.shared_bytes()
    }

    pub(crate) fn setup(&self) -> Setup {
        lock(&self.setup).clone()
    }

    /// Fetches whole objects from the start on, where so far only metadata was wanted.
    pub(crate) fn want_whole(&self) -> bool {
        let mut setup = lock(&self.setup);
        if setup.content == Content::Metadata && setup.phase == Phase::New {
            setup.content = Content::Whole;
        }
        setup.content == Content::Whole
    }

    pub(crate) fn set_transform(&self, transform: Transform) -> Result<(), Error> {
        self.set_up(|setup| setup.transform = Some(transform))
    }

    pub(crate) fn set_backoff(&self, backoff: BackoffConfig) -> Result<(), Error> {
        self.set_up(|setup| setup.backoff = backoff)
    }

    fn set_up(&self, change: impl FnOnce(&mut Setup)) -> Result<(), Error> {
        let mut setup = lock(&self.setup);
        if setup.phase != Phase::New {
            return Err(Error::already_started(&self.resource));
        }
        change(&mut setup);
        Ok(())
    }

    /// Feeds the cache from one more scope, from the start on. `false` if it does already, or has stopped.
    pub(crate) fn add_scope(self: &Arc<Self>, scope: Scope) -> bool {
        let mut setup = lock(&self.setup);
        if setup.phase == Phase::Running {
            return self.start_source(scope, None);
        }
        let new = !self.life.is_stopped() && !setup.scopes.contains(&scope);
        if new {
            setup.scopes.push(scope);
        }
        new
    }

    fn start_source(self: &Arc<Self>, scope: Scope, loaded: Option<(SourceId, Option<Resume>)>) -> bool {
        let running = self.life.running();
        let mut sources = lock(&self.sources);
        if self.life.is_stopped() || sources.contains(&scope) {
            return false;
        }
        let (id, resume) = loaded.unwrap_or_else(|| (lock(&self.store).add_source(scope.clone()), None));
        let (control, ended) = sources.insert(scope.clone(), id, self.life.stop_token());
        self.progress.source_added(id);
        let task = driver::run(self.clone(), id, scope, control, resume);
        let core = self.clone();
        self.runtime.spawn(async move {
            if AssertUnwindSafe(task).catch_unwind().await.is_err() {
                // Rather an informer that says it has stopped than one that silently grows old.
                tracing::error!(resource = %core.resource, "the informer failed and stops: this is a bug");
                core.begin_stop();
            }
            drop(core);
            drop(ended);
            drop(running);
        });
        true
    }

    /// Stops feeding the cache from a scope; its objects leave at once, and the returned future resolves when the
    /// source's request has ended too. `None` if it was not fed from there.
    pub(crate) fn remove_scope(&self, scope: &Scope) -> Option<impl Future<Output = ()> + use<>> {
        let source = {
            let mut setup = lock(&self.setup);
            let waiting = setup.scopes.len();
            setup.scopes.retain(|other| other != scope);
            if let Some((loaded, _)) = setup.loaded.remove(scope) {
                self.change(|store| store.remove_source(loaded));
            }
            let source = lock(&self.sources).remove(scope);
            if source.is_none() && waiting == setup.scopes.len() {
                return None;
            }
            source
        };
        if let Some(source) = &source {
            source.stop();
            // What the source still brings is of an unknown source from here on.
            self.change(|store| store.remove_source(source.id()));
            self.observe(|progress| progress.source_removed(source.id()));
            self.counters.source_removed(source.id());
            self.quarantine.listed(source.id(), scope, &quarantine::Unreadable::default());
        }
        Some(async move {
            if let Some(source) = source {
                source.ended().await;
            }
        })
    }

    /// Wakes whatever waits for a server to answer better than before.
    pub(crate) fn retry_now(&self) {
        lock(&self.sources).wake_all();
    }

    /// Ends everything that runs, without waiting for it.
    pub(crate) fn begin_stop(&self) {
        self.life.begin_stop();
        self.fanout.stop();
        self.progress.stopped();
    }

    /// Starts to stage a list.
    fn begin_replace(&self, source: SourceId, trust_versions: bool) -> Replace {
        let store = lock(&self.store);
        if trust_versions { store.begin_replace(source) } else { store.begin_restored_replace(source) }
    }

    /// Changes the cache, and tells everybody what came of it.
    fn change(&self, change: impl FnOnce(&mut Store) -> Vec<Change>) {
        let (told, synced, reports) = {
            let mut store = lock(&self.store);
            let changes = change(&mut store);
            let told = self.fanout.offer(store.revision(), &changes);
            let synced =
                (store.is_synced() && !self.progress.is_synced()).then(|| self.fanout.cache_synced());
            (told, synced, store.take_reports())
        };
        told.wake();
        self.progress.version_reached(&self.cache);
        if let Some(told) = synced {
            told.wake();
            self.progress.synced();
            tracing::info!(resource = %self.resource, objects = self.cache.len(), "the informer has its first content");
        }
        for report in reports {
            tracing::warn!(resource = %self.resource, %report, "an index function failed");
        }
    }

    /// Notes where a source stands. Resyncs pause while a list is under way, and go on when it is over.
    fn observe(&self, note: impl FnOnce(&Progress)) {
        let was_listing = self.progress.is_listing();
        note(&self.progress);
        if was_listing && !self.progress.is_listing() {
            self.fanout.everybody().wake();
        }
    }
}

/// No user code runs while one of these is held, but for index functions, whose panics the store catches.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
