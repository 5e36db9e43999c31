//! Drives one informer's engine: it turns the engine's commands into requests, and their responses into inputs. Only here
//! an informer waits for the network.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{BoxFuture, OptionFuture};
use informer_core::engine::{
    Answer, Command, Computed, Discovered, Engine, Input, Question, QuestionId, RequestId, Response, Start,
};
use informer_core::reader::Expected;
use informer_core::reflector::{Report, Request, Status};
use informer_core::wire::Limits;
use informer_core::{Scope, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::exchanges::Exchanges;
use super::journal::Journal;
use super::requests::Requests;
use super::{Chosen, Core};
use crate::EncodingChoice;
use crate::inner::exchange::ExchangeEvent;
use crate::options::resource::ResourceType;
use crate::options::settings::Representation;
use crate::options::transform::Transform;
use crate::server::{Inbox, News};

/// A message from the handles of an informer to its driver.
pub(super) enum Message {
    AddScope(Scope),
    /// The sender is notified when the scope's objects have left the cache and its connection is closed.
    RemoveScope(Scope, oneshot::Sender<()>),
    Wake,
    /// Follow the resource to other versions from now on.
    Follow,
    /// Asks the engine. The answer comes when user code does not have the writer.
    Ask(Question, oneshot::Sender<Answer>),
}

pub(super) type Messages = mpsc::UnboundedReceiver<Message>;

/// Runs until the informer stops.
pub(super) async fn run(
    core: Arc<Core>,
    mut engine: Box<Engine>,
    messages: Messages,
    chosen: Chosen,
    scopes: Vec<Scope>,
) {
    let stop = core.life.stop_token();
    let started = core.started();
    let lists = !scopes.is_empty();
    let (link, mut inbox) = core.server.link(core.served().api_version(), lists);
    let begin = async {
        loop {
            match inbox.next().await {
                News::Begin => return,
                News::Schema(schema) => engine.handle(now(started), Input::Schema(&schema)),
                News::Released => {}
            }
        }
    };
    let reflector = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        (config, ()) = async { tokio::join!(core.server.reflector_config(&core.settings, lists), begin) } => Some(config),
    };
    let Some(reflector) = reflector else { return core.retire(engine, messages) };
    let wants_json = chosen.transform.as_ref().is_some_and(Transform::wants_json);
    let mut start = Start::new(core.expected(chosen.representation), scopes);
    start.reflector = informer_core::reflector::ReflectorConfig { backoff: chosen.backoff, ..reflector };
    start.limits = Limits { item_bytes: core.settings.item_limit };
    start.transform = chosen.transform.map(|transform| core.noting_drops(transform));
    start.share = core.selection.share().cloned();
    start.skips_managed_fields = !core.settings.decodes_managed_fields;
    start.seed = core.server.seed();
    start.api_version = core.served().api_version();
    start.streaming_refusals = core.server.streaming_refusals().clone();
    engine.handle(now(started), Input::Start(Box::new(start)));
    let protobuf = core.settings.encoding == EncodingChoice::Auto && !wants_json;
    let requests =
        Requests::new(core.clone(), link, chosen.representation, protobuf && engine.reads_protobuf());
    let driver = Driver {
        engine,
        messages,
        requests,
        inbox,
        exchanges: Exchanges::default(),
        compute: None,
        discovery: None,
        representation: chosen.representation,
        takes_protobuf: protobuf,
        journals: HashMap::new(),
        questions: HashMap::new(),
        asked: 0,
        removals: HashMap::new(),
        started,
        core,
    };
    driver.run().await;
}

struct Driver {
    core: Arc<Core>,
    engine: Box<Engine>,
    messages: Messages,
    requests: Requests,
    inbox: Inbox,
    exchanges: Exchanges,
    /// User code that runs on another thread. Its result is `None` if the thread panicked, which is a bug.
    compute: Option<BoxFuture<'static, Option<Computed>>>,
    /// A running discovery request.
    discovery: Option<BoxFuture<'static, Option<ResourceType>>>,
    representation: Representation,
    takes_protobuf: bool,
    journals: HashMap<Scope, Journal>,
    /// Callers that wait for the engine's answer.
    questions: HashMap<QuestionId, oneshot::Sender<Answer>>,
    asked: u64,
    removals: HashMap<Scope, Vec<oneshot::Sender<()>>>,
    started: Instant,
}

/// Everything that can wake a driver.
enum Event {
    Stop,
    Message(Message),
    Exchange(RequestId, ExchangeEvent),
    Computed(Option<Computed>),
    News(News),
    Discovered(Option<ResourceType>),
    Deadline,
}

/// The number of parts of responses in a row after which a deadline that has passed comes first. It is larger than the number of
/// parts that wait in the buffers of a connection: those may prove that a watch is alive whose deadline passed while the process
/// was suspended.
const PARTS: u32 = 1_000;

impl Driver {
    async fn run(mut self) {
        let stop = self.core.life.stop_token();
        let hot = self.core.settings.hot.clone();
        // Dropped before this waits for user code to end, so that another informer takes over the sweeps.
        let mut cooling = Box::pin(async move { hot.cool().await });
        let mut parts_in_a_row = 0;
        self.obey();
        while !stop.is_cancelled() {
            // A response with endless data must not keep other tasks from this thread.
            tokio::task::coop::consume_budget().await;
            if self.engine.has_work() {
                tokio::task::yield_now().await;
                if let Poll::Ready(never) = futures_util::poll!(&mut cooling) {
                    match never {}
                }
                self.input(Input::Tick);
                continue;
            }
            // While the engine takes no bytes, all responses rest, and flow control slows the server down.
            if self.engine.takes_bytes() {
                self.exchanges.go_on();
            }
            let deadline = self.engine.deadline();
            // A deadline that is too far away to be represented never comes.
            let deadline = deadline.and_then(|at| self.started.checked_add(at.since(Time::ZERO)));
            let is_late = || deadline.is_some_and(|at| at <= Instant::now());
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => Event::Stop,
                () = std::future::ready(()), if parts_in_a_row >= PARTS && is_late() => Event::Deadline,
                // The sender is in the core, which this holds.
                Some(message) = self.messages.recv() => Event::Message(message),
                Some(computed) = OptionFuture::from(self.compute.as_mut()) => Event::Computed(computed),
                never = &mut cooling => match never {},
                Some(resource) = OptionFuture::from(self.discovery.as_mut()) => Event::Discovered(resource),
                news = self.inbox.next() => Event::News(news),
                (id, event) = self.exchanges.next() => Event::Exchange(id, event),
                () = sleep_until(deadline) => Event::Deadline,
            };
            parts_in_a_row = if matches!(event, Event::Exchange(..)) { parts_in_a_row + 1 } else { 0 };
            match event {
                Event::Stop => break,
                Event::Deadline => self.input(Input::Tick),
                Event::News(News::Released) => self.input(Input::Released),
                Event::News(News::Schema(schema)) => self.input(Input::Schema(&schema)),
                Event::News(News::Begin) => {}
                Event::Discovered(resource) => {
                    self.discovery = None;
                    self.discovered(resource);
                }
                Event::Message(message) => self.message(message),
                Event::Exchange(id, event) => self.exchange_event(id, event),
                Event::Computed(Some(computed)) => {
                    self.compute = None;
                    self.input(Input::Computed(Box::new(computed)));
                }
                Event::Computed(None) => {
                    let Core { resource, selection, .. } = &*self.core;
                    tracing::error!(%resource, %selection, "the informer failed and stops: this is a bug");
                    self.compute = None;
                    self.core.begin_stop();
                }
            }
        }
        drop(cooling);
        self.stop().await;
    }

    /// Stops the engine. Waits for user code that runs, unless the time limit for that has passed.
    async fn stop(mut self) {
        self.input(Input::Stop);
        let Self { core, mut engine, messages, compute, exchanges, requests, inbox, .. } = self;
        // Another informer carries out the commands for all from here on.
        drop((exchanges, requests, inbox));
        if let Some(compute) = compute
            && let Some(Some(computed)) = core.life.cut_token().run_until_cancelled_owned(compute).await
        {
            engine.handle(now(core.started()), Input::Computed(Box::new(computed)));
        }
        core.retire(engine, messages);
    }

    /// Gives one input to the engine and executes its commands.
    fn input(&mut self, input: Input<'_>) {
        self.engine.handle(now(self.started), input);
        self.obey();
    }

    fn obey(&mut self) {
        while let Some(command) = self.engine.poll_command() {
            self.command(command);
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Send { id, request, scope, refresh_credentials } => {
                self.send(id, &request, &scope, refresh_credentials);
            }
            Command::Cancel(id) => self.exchanges.cancel(id),
            Command::Compute(compute) => {
                self.compute = Some(self.core.runtime().blocking(move || compute.run()));
            }
            Command::SourceStatus(scope, status) => {
                let Core { resource, selection, .. } = &*self.core;
                let journal = || Journal::new(resource.clone(), selection.clone(), scope.clone());
                self.journals.entry(scope.clone()).or_insert_with(journal).status(&status);
                if status == Status::Stopped {
                    self.journals.remove(&scope);
                }
            }
            Command::Discover => self.discovery = Some(self.core.discover()),
            Command::Answer(id, answer) => {
                if let Some(asked) = self.questions.remove(&id) {
                    // The caller may have stopped waiting.
                    let _ = asked.send(answer);
                }
            }
            Command::ScopeRemoved(scope) => {
                self.requests.link().scope_removed(&scope);
                for removed in self.removals.remove(&scope).unwrap_or_default() {
                    // The caller may have stopped waiting.
                    let _ = removed.send(());
                }
                self.core.progress.changed();
            }
            command => self.core.publish(command),
        }
    }

    /// Passes discovery's answer on, and continues with the resource as the server serves it now.
    fn discovered(&mut self, resource: Option<ResourceType>) {
        let Some(resource) = resource else { return self.input(Input::Discovered(Discovered::Unknown)) };
        let Some(former) = self.core.serve_as(resource) else {
            return self.input(Input::Discovered(Discovered::Unchanged));
        };
        let served = self.core.served();
        tracing::info!(resource = %former, %served, selection = %self.core.selection, "the resource is served as another one");
        let is_other = former.namespaced != served.namespaced;
        let discovered = Discovered::As {
            expected: self.core.expected(self.representation),
            api_version: served.api_version(),
            schema: self.requests.link().serves(&served.api_version()),
            is_other,
        };
        self.engine.handle(now(self.started), Input::Discovered(discovered));
        self.requests.take_protobuf(self.takes_protobuf && self.engine.reads_protobuf());
        self.obey();
        if is_other {
            self.core.move_scopes(&former);
        }
    }

    fn send(&mut self, id: RequestId, request: &Request, scope: &Scope, refresh_credentials: bool) {
        if let Request::Watch(watch) = request {
            self.requests.link().watch_begins(scope, watch.timeout_seconds);
        }
        self.exchanges.start(id, self.requests.send(request, scope, refresh_credentials));
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::AddScope(scope) => self.input(Input::AddScope(scope)),
            Message::RemoveScope(scope, removed) => {
                self.removals.entry(scope.clone()).or_default().push(removed);
                self.input(Input::RemoveScope(scope));
            }
            Message::Wake => self.input(Input::Wake),
            Message::Follow => self.input(Input::Follow),
            Message::Ask(question, answer) => {
                self.asked += 1;
                let id = QuestionId(self.asked);
                self.questions.insert(id, answer);
                self.input(Input::Ask(id, question));
            }
        }
    }

    fn exchange_event(&mut self, id: RequestId, event: ExchangeEvent) {
        let response = match &event {
            ExchangeEvent::Accepted { protobuf } => Response::Accepted { protobuf: *protobuf },
            ExchangeEvent::Bytes(bytes) => {
                let begun = std::time::Instant::now();
                self.engine.handle(now(self.started), Input::Response(id, Response::Bytes(bytes)));
                self.core.counters.decode_nanos.add_nanos(begun.elapsed());
                return self.obey();
            }
            ExchangeEvent::End => Response::End,
            ExchangeEvent::Refused(status) => Response::Refused(status.clone()),
            ExchangeEvent::Unreachable(reason) => Response::Unreachable(reason.clone()),
            ExchangeEvent::Broken(reason) => Response::Broken(reason.clone()),
        };
        self.input(Input::Response(id, response));
    }
}

fn now(started: Instant) -> Time {
    Time::from_start(started.elapsed())
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

impl Core {
    fn expected(&self, representation: Representation) -> Expected {
        let resource = self.served();
        let kind = resource.kind.clone();
        match representation {
            Representation::Whole => Expected { api_version: resource.api_version(), kind, or_kind: None },
            Representation::Metadata => Expected {
                api_version: "meta.k8s.io/v1".to_owned(),
                kind: "PartialObjectMetadata".to_owned(),
                or_kind: Some(kind),
            },
        }
    }

    /// Publishes those commands of an engine that concern readers and observers.
    pub(super) fn publish(&self, command: Command) {
        let Self { resource, selection, .. } = self;
        match command {
            Command::Wake(wakers) => wakers.into_iter().for_each(std::task::Waker::wake),
            Command::Status(status) => self.progress.status_changed(status),
            Command::Listing(is_listing) => self.progress.listing(is_listing),
            Command::Synced => {
                self.progress.synced();
                tracing::info!(%resource, %selection, objects = self.cache.len(), "the informer is synced");
            }
            Command::Applied { applied, .. } => {
                if let informer_core::engine::Applied::ListRefused(error) = applied {
                    tracing::error!(%resource, %selection, %error, "a list was not applied");
                }
                self.progress.changed();
            }
            Command::Report(scope, report) => {
                tracing::debug!(%resource, %selection, ?scope, ?report, "reflector");
                if let Report::ServerRestored { seen, now } = &report {
                    tracing::warn!(%resource, %selection, %seen, %now, "the server went back to an older state, and the cache follows");
                }
                self.progress.report(report);
            }
            Command::Quarantined(report) => {
                if let Report::Quarantined { key: Some(key), reason } = report {
                    tracing::warn!(%resource, %selection, %key, reason, "object quarantined: it is undecodable; further objects are not logged");
                }
            }
            Command::IndexFailed(report) => {
                tracing::warn!(%resource, %selection, %report, "an index function failed");
            }
            // Only the driver of a running engine handles these.
            Command::Send { .. }
            | Command::Cancel(_)
            | Command::Compute(_)
            | Command::SourceStatus(..)
            | Command::Discover
            | Command::Answer(..)
            | Command::ScopeRemoved(_) => {}
        }
    }
}
