//! The untyped part of an informer that all views of a resource share: its cache, the way to its engine, and its
//! subscriptions (design D1).

mod ask;
pub(crate) mod counters;
mod driver;
pub(crate) mod ending;
mod exchange;
mod exchanges;
mod following;
mod journal;
#[cfg(feature = "save")]
mod keeper;
mod life;
#[cfg(feature = "save")]
mod loading;
pub mod metrics;
mod progress;
mod reach;
mod requests;
mod roster;
pub(crate) mod sync;
mod undecodable;
pub(crate) mod wait;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use informer_core::backoff::BackoffConfig;
use informer_core::engine::{Engine, Fanout, Input, Quarantine};
use informer_core::mailbox::Delivery;
use informer_core::reflector::Report;
use informer_core::{Cache, DecodeError, Scope, Shelf, Storage, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::Error;
use crate::lock::lock;
use crate::options::resource::ResourceType;
use crate::options::runtime::Runtime;
use crate::options::selection::Selection;
use crate::options::settings::{Representation, Settings};
use crate::options::transform::Transform;
use crate::server::Server;
use counters::{Counters, HandlerMetrics};
use driver::{Message, Messages};
use ending::Work;
use following::Served;
use roster::Roster;
use undecodable::Undecodable;

pub(crate) use life::Life;
pub(crate) use progress::Progress;
pub(crate) use roster::Subscription;

/// Keeps the informers of one resource and selection running: each handle holds it, and its drop stops the tasks.
///
/// The tasks hold only [`Core`], so that they keep no unused informer alive (design D11).
pub(crate) struct Lifeline {
    core: Arc<Core>,
}

/// The shared state of handles and tasks: the states that the engine publishes, and the way to its driver.
pub(crate) struct Core {
    /// The resource that the informer was made for; see [`Core::served`].
    pub(crate) resource: ResourceType,
    served: Served,
    pub(crate) selection: Selection,
    pub(crate) settings: Settings,
    pub(crate) server: Arc<Server>,
    pub(crate) cache: Cache,
    pub(crate) shelf: Arc<Shelf>,
    fanout: Arc<Fanout>,
    roster: Roster,
    pub(crate) progress: Progress,
    pub(crate) quarantine: Arc<Quarantine>,
    undecodable: Undecodable,
    /// Whether an existing object may be missing from the cache: a transform has dropped an object, or tweaked list options
    /// select.
    hides_objects: AtomicBool,
    pub(crate) life: Life,
    pub(crate) counters: Arc<Counters>,
    /// Distinguishes the informer from others whose metrics have the same labels.
    pub(crate) number: usize,
    messages: mpsc::UnboundedSender<Message>,
    setup: Mutex<Setup>,
    runtime: Runtime,
}

/// The informer before it runs, and its options, which later handles may ask for.
struct Setup {
    phase: Phase,
    chosen: Chosen,
    /// The scopes that the informer selects now.
    scopes: Vec<Scope>,
    /// The engine, before the start and after the stop. The driver has it while the informer runs.
    engine: Option<Box<Engine>>,
    /// Handed to the driver at the start.
    inbox: Option<Messages>,
}

/// The options that can be set until the start.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) representation: Representation,
    pub(crate) transform: Option<Transform>,
    backoff: BackoffConfig,
}

/// The phases of an informer's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "save"), expect(dead_code, reason = "nothing is loaded"))]
enum Phase {
    New,
    /// A saved cache was loaded; the informer was not started yet.
    Loaded,
    /// The informer was started, and waits for its saved cache.
    Loading,
    /// The driver was started.
    Running,
}

impl Lifeline {
    pub(crate) fn new(
        (resource, selection, representation): (ResourceType, Selection, Representation),
        settings: Settings,
        transform: Option<Transform>,
        server: Arc<Server>,
        runtime: Runtime,
        life: Life,
        number: usize,
    ) -> Self {
        let shelf = Shelf::new(&settings.hot.set, (settings.storage)(&resource), settings.keeping);
        let engine = Box::new(Engine::new(shelf.clone()));
        let (messages, inbox) = mpsc::unbounded_channel();
        let chosen = Chosen { representation, transform, backoff: settings.reflector.backoff.clone() };
        let core = Core {
            cache: engine.cache().clone(),
            fanout: engine.fanout().clone(),
            quarantine: engine.quarantine().clone(),
            counters: Arc::new(Counters::new(engine.counters().clone())),
            roster: Roster::default(),
            progress: Progress::default(),
            undecodable: Undecodable::default(),
            hides_objects: AtomicBool::new(false),
            setup: Mutex::new(Setup {
                phase: Phase::New,
                chosen,
                scopes: selection.scopes(),
                engine: Some(engine),
                inbox: Some(inbox),
            }),
            served: Served::new(resource.clone()),
            resource,
            selection,
            settings,
            server,
            shelf,
            life,
            number,
            messages,
            runtime,
        };
        let core = Arc::new(core);
        // The user's stop token may stop everything at any time.
        let stopped = core.clone();
        let running = core.life.running(Work::UserCode);
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

impl Drop for Lifeline {
    fn drop(&mut self) {
        self.core.begin_stop();
    }
}

impl Core {
    /// Adds a subscription that collects changes from now on. The caller then joins it with a snapshot.
    pub(crate) fn subscribe(
        &self,
        delivery: Delivery,
        name: Option<String>,
    ) -> Result<Arc<Subscription>, Error> {
        let subscriber = self.fanout.subscribe(delivery).ok_or_else(|| Error::stopped(&self.resource))?;
        Ok(self.roster.add(subscriber, name))
    }

    pub(crate) fn unsubscribe(&self, subscription: &Arc<Subscription>) {
        self.fanout.unsubscribe(subscription.subscriber());
        self.roster.remove(subscription);
    }

    pub(crate) fn handlers(&self) -> Vec<HandlerMetrics> {
        self.roster.metrics()
    }

    /// Reports an object that does not decode as a `T`, once per version.
    pub(crate) fn undecodable<T: 'static>(&self, error: &DecodeError) {
        if !self.undecodable.is_new::<T>(error) {
            return;
        }
        self.counters.unreadable.add(1);
        tracing::debug!(resource = %self.resource, %error, "an object does not decode and is left out");
        self.progress.report(Report::Undecodable {
            key: error.key().clone(),
            resource_version: error.resource_version().clone(),
            reason: error.to_string(),
        });
    }

    /// Whether an object that seems to be deleted may only have left the selection.
    pub(crate) fn may_deselect(&self) -> bool {
        self.selection.may_deselect() || self.hides_objects.load(Ordering::Relaxed)
    }

    fn hides_objects(&self) {
        self.hides_objects.store(true, Ordering::Relaxed);
    }

    /// The transform for the engine. It also notes whether it ever drops an object.
    fn noting_drops(self: &Arc<Self>, transform: Transform) -> informer_core::engine::TransformFn {
        let (core, transform) = (Arc::downgrade(self), transform.into_core());
        Arc::new(move |object| {
            let kept = transform(object)?;
            if kept.is_none()
                && let Some(core) = core.upgrade()
            {
                core.hides_objects();
            }
            Ok(kept)
        })
    }

    /// Starts listing and watching, unless that was done before.
    pub(crate) fn start(self: &Arc<Self>) {
        let mut setup = lock(&self.setup);
        if matches!(setup.phase, Phase::Loading | Phase::Running) {
            return;
        }
        self.progress.started();
        #[cfg(feature = "save")]
        if let Some(saving) = self.settings.saving.clone() {
            let loads = setup.phase == Phase::New;
            if loads {
                setup.phase = Phase::Loading;
            } else {
                self.run(&mut setup);
            }
            let (running, core) = (self.life.running(Work::File), self.clone());
            self.runtime.spawn(async move {
                keeper::keep(core, saving, loads).await;
                drop(running);
            });
            return;
        }
        self.run(&mut setup);
    }

    /// Hands the engine to its driver.
    fn run(self: &Arc<Self>, setup: &mut Setup) {
        setup.phase = Phase::Running;
        let running = self.life.running(Work::UserCode);
        if self.life.is_stopped() {
            return;
        }
        let (Some(engine), Some(inbox)) = (setup.engine.take(), setup.inbox.take()) else { return };
        let task = driver::run(self.clone(), engine, inbox, setup.chosen.clone(), setup.scopes.clone());
        let core = self.clone();
        self.runtime.spawn(async move {
            if AssertUnwindSafe(task).catch_unwind().await.is_err() {
                // A stopped informer reports that it has stopped. One that continued without its driver would silently
                // become stale.
                let Core { resource, selection, .. } = &*core;
                tracing::error!(%resource, %selection, "the informer failed and stops: this is a bug");
                core.begin_stop();
            }
            drop(core);
            drop(running);
        });
    }

    /// Takes the engine back when the driver has ended: later saves read this engine.
    fn retire(&self, engine: Box<Engine>, inbox: Messages) {
        lock(&self.setup).engine = Some(engine);
        drop(inbox);
    }

    pub(crate) fn is_started(&self) -> bool {
        matches!(lock(&self.setup).phase, Phase::Loading | Phase::Running)
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The origin of the engine's time.
    pub(crate) fn started(&self) -> Instant {
        self.server.started()
    }

    /// The bytes of memory that the cache takes, including what its objects share in their storage, and what is hot.
    pub(crate) fn held_bytes(&self) -> usize {
        self.cache.held_bytes() + self.shelf.shared_bytes() + self.shelf.hot_bytes()
    }

    pub(crate) fn chosen(&self) -> Chosen {
        lock(&self.setup).chosen.clone()
    }

    /// Asks for whole objects. Changes a metadata-only informer that was not started. Returns whether the informer fetches
    /// whole objects.
    pub(crate) fn want_whole(&self) -> bool {
        let mut setup = lock(&self.setup);
        if setup.chosen.representation == Representation::Metadata && setup.phase == Phase::New {
            setup.chosen.representation = Representation::Whole;
        }
        setup.chosen.representation == Representation::Whole
    }

    pub(crate) fn set_transform(&self, transform: Transform) -> Result<(), Error> {
        self.choose(|chosen| chosen.transform = Some(transform))
    }

    pub(crate) fn set_backoff(&self, backoff: BackoffConfig) -> Result<(), Error> {
        self.choose(|chosen| chosen.backoff = backoff)
    }

    fn choose(&self, change: impl FnOnce(&mut Chosen)) -> Result<(), Error> {
        let mut setup = lock(&self.setup);
        if setup.phase != Phase::New {
            return Err(Error::already_started(&self.resource));
        }
        change(&mut setup.chosen);
        Ok(())
    }

    /// Adds a scope. Returns `false` if the informer has it already, or has stopped.
    pub(crate) fn add_scope(&self, scope: Scope) -> bool {
        let mut setup = lock(&self.setup);
        if self.life.is_stopped() || setup.scopes.contains(&scope) {
            return false;
        }
        setup.scopes.push(scope.clone());
        if setup.phase == Phase::Running {
            // An error means that the driver has ended.
            let _ = self.messages.send(Message::AddScope(scope));
        }
        true
    }

    /// Removes a scope. The returned future resolves when the scope's objects have left the cache and its request has
    /// ended. The scope is removed even if that future is dropped. Returns `None` if the informer does not have the scope.
    pub(crate) fn remove_scope(&self, scope: &Scope) -> Option<impl Future<Output = ()> + use<>> {
        let mut setup = lock(&self.setup);
        let at = setup.scopes.iter().position(|other| other == scope)?;
        setup.scopes.remove(at);
        let (answer, removed) = oneshot::channel();
        if let Some(engine) = &mut setup.engine {
            engine.handle(Time::ZERO, Input::RemoveScope(scope.clone()));
            self.publish_all(engine);
        } else if setup.phase == Phase::Running {
            // An error means that the driver has ended.
            let _ = self.messages.send(Message::RemoveScope(scope.clone(), answer));
        }
        Some(async move {
            // An error means that there was nothing to wait for, or that the driver has ended.
            let _ = removed.await;
        })
    }

    /// Retries all requests that wait for a backoff or after a denial.
    pub(crate) fn retry_now(&self) {
        // An error means that the driver has ended.
        let _ = self.messages.send(Message::Wake);
    }

    /// Asks everything to stop, without waiting.
    pub(crate) fn begin_stop(&self) {
        self.life.begin_stop();
        self.fanout.stop().into_iter().for_each(std::task::Waker::wake);
        self.progress.stopped();
    }

    fn publish_all(&self, engine: &mut Engine) {
        while let Some(command) = engine.poll_command() {
            self.publish(command);
        }
    }
}
