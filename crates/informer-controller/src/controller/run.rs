//! The loop of a controller: it starts what the control loop of the core returns, and reports how that ended.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use informer::kube::Client;
use informer::{Object, ObjectKey, View};
use informer_core::control::{End, Retries, Step, Work};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use super::telling::{Failures, Told};
use super::{Controller, Settings};
use crate::caches::{Caches, Reflected};
use crate::confirmed::Confirmed;
use crate::context::{Context, Shared};
use crate::endings::Ending;
use crate::error::RunError;
use crate::gate::Loss;
use crate::host::Observed;
use crate::inbox::{Exists, Inbox};
use crate::leadership::{Authority, Leadership};
use crate::once::sending_once;
use crate::permissions::review;
use crate::reconcile::{Failure, Outcome, Reconcile};
use crate::recorder::Recorder;
use crate::source::{self, Watched};
use crate::trigger::{Trigger, Triggers};
use crate::writer::Writer;

/// How a reconciliation ended, as its task saw it.
enum Ended {
    Returned(Result<Outcome, Failure>),
    /// It took longer than the controller's limit.
    TimedOut,
    Panicked,
}

/// A reconciliation that runs.
struct Running {
    work: Work,
    writer: Writer,
    told: Told,
}

/// The closed list of events that wake the loop.
enum Event {
    /// A key was added, or a delay has passed.
    Due,
    Ended(Result<(Id, Ended), JoinError>),
    /// The wait for a key's writes is over; whether the caches reflect them.
    Awaited(ObjectKey, Reflected),
    Stop,
    /// The term is over.
    Lost(Loss),
    /// An informer has stopped: its cache does not change any more.
    InformerStopped,
}

struct Loop<T, R> {
    name: Arc<str>,
    watched: Watched<T>,
    client: Client,
    caches: Arc<Caches>,
    recorder: Recorder,
    /// Of this term.
    confirmed: Arc<Confirmed>,
    settings: Settings,
    /// The next one for a context's random numbers.
    seed: u64,
    inbox: Arc<Inbox>,
    reconciler: Arc<R>,
    tasks: JoinSet<Ended>,
    running: HashMap<Id, Running>,
    retries: Retries,
    failures: Failures,
    awaited: FuturesUnordered<BoxFuture<'static, (ObjectKey, Reflected)>>,
}

/// Runs a controller under a leadership, until it is stopped or fails.
pub(super) async fn run<T: View>(
    controller: Controller<T>,
    leadership: Leadership,
    reconciler: impl Reconcile<T>,
) -> Result<(), RunError> {
    let Controller { name, primary, sources, caches, needs, settings, retries, inbox, begin, mut until } =
        controller;
    if settings.checks_permissions {
        let client = leadership.asking_client()?;
        let missing = tokio::select! {
            biased;
            () = &mut until => return Ok(()),
            missing = review(&client, &name, &needs, caches.informers()) => missing,
        };
        if !missing.is_empty() {
            return Err(RunError::permissions(missing));
        }
    }
    let caches = Arc::new(caches);
    let watched = primary.clone();
    // Dropped at the end, which ends the subscriptions.
    let mut subscriptions = Vec::new();
    for source in std::iter::once(source::itself(primary)).chain(sources) {
        subscriptions.push(source(&name, inbox.clone()).map_err(RunError::informer)?);
    }
    tokio::select! {
        biased;
        () = &mut until => return Ok(()),
        synced = sync(&caches, settings.sync_limit) => synced?,
    }
    tokio::select! {
        biased;
        () = &mut until => return Ok(()),
        () = begin => {}
    }
    let reconciler = Arc::new(reconciler);
    let objects = watched.informer.cast::<Object>();
    let exists: Exists = Arc::new(move |key| matches!(objects.lister().get(key.as_str()), Ok(Some(_))));
    let begin = async || {
        inbox.stand_by(leadership.is_elected().then(|| exists.clone()));
        let begun = leadership.begin().await;
        inbox.stand_by(None);
        begun
    };
    let mut term = tokio::select! {
        biased;
        () = &mut until => {
            leadership.given_up().await;
            return Ok(());
        }
        begun = begin() => begun?,
    };
    let recorder = Recorder::builder(&name).host(settings.host.clone());
    let mut this = Loop {
        name,
        watched,
        client: sending_once(term.client().clone()),
        caches,
        recorder: recorder.clone().start(term.client().clone()),
        confirmed: Arc::new(Confirmed::new()),
        seed: settings.host.seed(),
        settings,
        inbox: inbox.clone(),
        reconciler,
        tasks: JoinSet::new(),
        running: HashMap::new(),
        retries,
        failures: Failures::default(),
        awaited: FuturesUnordered::new(),
    };
    loop {
        tracing::info!(controller = %this.name, "reconciling");
        this.inbox.control().resume(inbox.now());
        let loss = match this.reconcile(&mut until, &term).await {
            Ok(Some(loss)) => loss,
            ended => {
                this.finish().await;
                term.end().await;
                return ended.map(drop);
            }
        };
        tracing::warn!(controller = %this.name, %loss, "leadership is lost; waiting for the next term");
        this.interrupt().await;
        term = tokio::select! {
            biased;
            () = &mut until => {
                leadership.given_up().await;
                return Ok(());
            }
            begun = begin() => begun?,
        };
        this.client = sending_once(term.client().clone());
        this.recorder = recorder.clone().start(term.client().clone());
        this.confirmed = Arc::new(Confirmed::new());
        this.begin_anew();
    }
}

/// The triggers of the next reconciliation of a key. Whether its object was seen to go is not forgotten.
fn again(work: &Work, trigger: Trigger) -> u32 {
    Triggers::from(trigger).bits() | work.causes & Triggers::GONE
}

/// A key whose wait for the caches was in vain waits again after this long. A growing delay would outlast the outage. A request that was
/// in vain counts as a failure of its key: the limiter paces the next one.
const PUT_OFF: Duration = Duration::from_secs(1);

/// Starts the informers of a controller and waits for their initial lists.
async fn sync(caches: &Caches, limit: Duration) -> Result<(), RunError> {
    for informer in caches.informers() {
        informer.start();
    }
    let all = caches.informers().iter().map(|informer| informer.wait_for_sync_or_denial(limit));
    futures_util::future::try_join_all(all).await.map(drop).map_err(RunError::not_synced)
}

impl<T: View, R: Reconcile<T>> Loop<T, R> {
    /// Reconciles until the controller is stopped, or its leadership is lost.
    async fn reconcile(
        &mut self,
        until: &mut BoxFuture<'static, ()>,
        term: &Authority,
    ) -> Result<Option<Loss>, RunError> {
        let lost = term.lost();
        let mut lost = std::pin::pin!(lost);
        let stopped = self.caches.stopped();
        let mut stopped = std::pin::pin!(stopped);
        loop {
            if self.caches.has_stopped() {
                return Err(RunError::informer_stopped());
            }
            self.begin_all();
            let wake = self.wake();
            let event = tokio::select! {
                biased;
                () = &mut *until => Event::Stop,
                loss = &mut lost => Event::Lost(loss),
                () = &mut stopped => Event::InformerStopped,
                Some(ended) = self.tasks.join_next_with_id() => Event::Ended(ended),
                Some((key, reflected)) = self.awaited.next() => Event::Awaited(key, reflected),
                () = wake => Event::Due,
            };
            match event {
                Event::Due => {}
                Event::Ended(ended) => self.ended(ended),
                Event::Awaited(key, Reflected::Yes) => self.inbox.control().written(&key),
                Event::Awaited(key, Reflected::No) => self.not_written(&key, PUT_OFF),
                Event::Awaited(key, Reflected::Unanswered) => {
                    let delay = self.retries.failed(self.inbox.now(), &key);
                    self.not_written(&key, delay);
                }
                Event::Stop => return Ok(None),
                Event::Lost(loss) => return Ok(Some(loss)),
                Event::InformerStopped => return Err(RunError::informer_stopped()),
            }
        }
    }

    /// Waits until a key is added, or until the next delay has passed.
    fn wake(&self) -> impl Future<Output = ()> + use<T, R> {
        let inbox = self.inbox.clone();
        let due = inbox.control().wake(inbox.now()).map(|time| inbox.instant(time));
        async move {
            match due {
                Some(due) => {
                    tokio::select! {
                        biased;
                        () = inbox.wait() => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => inbox.wait().await,
            }
        }
    }

    /// Starts everything that can start.
    fn begin_all(&mut self) {
        loop {
            let now = self.inbox.now();
            let step = self.inbox.control().next(now, &*self.caches);
            match step {
                None => return,
                Some(Step::Reconcile(work)) if self.is_not_selected(&work.key) => {
                    self.inbox.control().finished(now, &work, End::Settled, Vec::new());
                }
                Some(Step::Reconcile(work)) => self.begin(work),
                Some(Step::AwaitWrites(key, writes)) => {
                    let wait = writes.first().map(|write| self.caches.wait_for(write));
                    self.observe(&key, Some((Ending::PutOff, wait.as_deref())));
                    let (caches, client, limit) =
                        (self.caches.clone(), self.client.clone(), self.settings.own_writes);
                    self.awaited.push(Box::pin(async move {
                        let all = writes.iter().map(|write| caches.reflected(write, &client, limit));
                        let reflected = futures_util::future::join_all(all).await;
                        (key, reflected.into_iter().max().unwrap_or(Reflected::Yes))
                    }));
                }
            }
        }
    }

    /// Whether the namespace of a key was removed from the informer: the fate of the object is unknown.
    fn is_not_selected(&self, key: &ObjectKey) -> bool {
        !self.watched.informer.selects_namespace(key.namespace())
    }

    fn begin(&mut self, work: Work) {
        let snapshots: Arc<[_]> = self.caches.snapshots().into();
        let writer = Writer::new(
            self.name.clone(),
            self.client.clone(),
            self.caches.clone(),
            snapshots.clone(),
            self.settings.write_limit,
            self.confirmed.clone(),
        );
        self.seed = self.seed.wrapping_add(1);
        self.observe(&work.key, None);
        let failures = self.retries.failures(&work.key);
        let told = Told::begin(&self.name, &work, failures);
        let (span, limit) = (told.span(), self.settings.reconcile_limit);
        let shared = Arc::new(Shared {
            triggers: Triggers::from_bits(work.causes),
            failures,
            caches: self.caches.clone(),
            snapshots,
            writer: writer.clone(),
            recorder: self.recorder.clone(),
            host: self.settings.host.clone(),
            random: Mutex::new(fastrand::Rng::with_seed(self.seed)),
        });
        let (reconciler, informer, key) =
            (self.reconciler.clone(), self.watched.informer.clone(), work.key.clone());
        let task = async move {
            let context = Context::begin(key, &informer, shared);
            let reconciling = async {
                match context {
                    // A task is moved several times before it begins, and this is most of it.
                    Ok(context) => Box::pin(reconciler.reconcile(context)).await,
                    // The object as it is never decodes: its next version may.
                    Err(error) => Err(Failure::give_up(error)),
                }
            };
            let limited = async {
                match limit {
                    Some(limit) => timeout(limit, reconciling).await.map_or(Ended::TimedOut, Ended::Returned),
                    None => Ended::Returned(reconciling.await),
                }
            };
            AssertUnwindSafe(limited).catch_unwind().await.unwrap_or(Ended::Panicked)
        };
        let task = self.tasks.spawn(task.instrument(span));
        self.running.insert(task.id(), Running { work, writer, told });
    }

    fn ended(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, ended),
            Err(error) if error.is_cancelled() => return self.interrupted(error.id()),
            // Panics are caught in the task, except those of a drop.
            Err(error) => (error.id(), Ended::Panicked),
        };
        let Some(Running { work, writer, told }) = self.running.remove(&id) else { return };
        let key = &work.key;
        let mut error = None;
        let (ending, end) = match ended {
            Ended::Returned(Ok(Outcome::Done)) => {
                self.settled(key);
                (Ending::Done, End::Settled)
            }
            Ended::Returned(Ok(Outcome::After(delay))) => {
                self.settled(key);
                (Ending::Again, End::Again(delay, again(&work, Trigger::Again)))
            }
            Ended::Returned(Err(failure)) if failure.gives_up() => {
                self.failures.give_up(&told, key, error.insert(failure.to_string()));
                self.retries.settled(key);
                // No later reconciliation would end what is remembered of it.
                if Triggers::from_bits(work.causes).saw_deletion() {
                    self.failures.settled(key);
                }
                (Ending::GaveUp, End::Settled)
            }
            Ended::Returned(Err(failure)) => match failure.not_now() {
                Some(wait) => {
                    let delay = self.retries.put_off(self.inbox.now(), key, wait);
                    tracing::debug!(parent: told.span(), error = %failure, ?delay, "refused for now");
                    self.failures.settled(key);
                    (Ending::Again, End::Again(delay, again(&work, Trigger::Again)))
                }
                None => {
                    let error = error.insert(failure.to_string());
                    (Ending::Failed, self.retry(&work, &told, error))
                }
            },
            Ended::TimedOut => {
                (Ending::TimedOut, self.retry(&work, &told, "the reconciliation took longer than its limit"))
            }
            Ended::Panicked => (Ending::Panicked, self.retry(&work, &told, "the reconciler panicked")),
        };
        told.end(ending);
        self.observe(key, Some((ending, error.as_deref())));
        self.inbox.endings.count(ending);
        self.inbox.control().finished(self.inbox.now(), &work, end, writer.end());
    }

    fn observe(&self, key: &ObjectKey, ended: Option<(Ending, Option<&str>)>) {
        let ended = ended.map(|(ending, error)| (ending.name(), error));
        self.settings.host.observe(Observed { controller: &self.name, key, ended });
    }

    fn settled(&mut self, key: &ObjectKey) {
        self.retries.settled(key);
        self.failures.settled(key);
    }

    fn retry(&mut self, work: &Work, told: &Told, error: &str) -> End {
        let delay = self.retries.failed(self.inbox.now(), &work.key);
        self.failures.tell(told, &work.key, error, delay);
        End::Again(delay, again(work, Trigger::Retry))
    }

    fn not_written(&mut self, key: &ObjectKey, delay: Duration) {
        tracing::warn!(
            controller = %self.name, %key, ?delay,
            "the cache does not have this controller's last write yet; tried again"
        );
        self.inbox.endings.count(Ending::PutOff);
        self.inbox.control().not_written(self.inbox.now(), key, delay);
    }

    /// Cuts off what runs. Its writes are refused already.
    async fn interrupt(&mut self) {
        self.inbox.control().pause();
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.ended(ended);
        }
    }

    /// A reconciliation was cut off.
    fn interrupted(&mut self, id: Id) {
        let Some(Running { mut work, writer, told }) = self.running.remove(&id) else { return };
        work.causes |= Triggers::from(Trigger::Interrupted).bits();
        told.end(Ending::Interrupted);
        self.observe(&work.key, Some((Ending::Interrupted, None)));
        self.inbox.endings.count(Ending::Interrupted);
        self.inbox.control().interrupted(self.inbox.now(), &work, writer.end());
    }

    /// Reconciles every object: another leader may have left something unfinished.
    fn begin_anew(&self) {
        self.watched.pass_all(&self.inbox, Trigger::Leading);
    }

    /// Lets what runs end, and sends its events, within the grace period.
    async fn finish(&mut self) {
        let begun = Instant::now();
        let grace = self.settings.grace;
        self.inbox.control().stop(self.inbox.now());
        let all = async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                self.ended(ended);
            }
        };
        if timeout(grace, all).await.is_err() {
            let left = self.tasks.len();
            tracing::warn!(controller = %self.name, left, "reconciliations did not end in time and were dropped");
            self.tasks.shutdown().await;
        }
        // Their contexts may be elsewhere, and must not write any more.
        self.running.drain().for_each(|(_, running)| drop(running.writer.end()));
        self.recorder.flush(grace.saturating_sub(begun.elapsed())).await;
    }
}
