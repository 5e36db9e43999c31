//! Drives one informer's engine: it turns the engine's commands into requests, and their responses into inputs. This is the
//! only place that waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{BoxFuture, OptionFuture};
use informer_core::engine::{Command, Computed, Engine, Input, Reach, RequestId, Response, Start};
use informer_core::reader::Expected;
use informer_core::reflector::{Report, Request, Status};
use informer_core::wire::{ApiStatus, Limits};
use informer_core::{Scope, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::exchanges::Exchanges;
use super::journal::Journal;
use super::requests::Requests;
use super::schema::Schema;
use super::{Chosen, Core};
use crate::EncodingChoice;
use crate::exchange::ExchangeEvent;
use crate::resource::ResourceType;
use crate::settings::Representation;
use crate::transform::Transform;

/// A message from the handles of an informer to its driver.
pub(super) enum Message {
    AddScope(Scope),
    /// The sender is notified when the scope's objects have left the cache and its connection is closed.
    RemoveScope(Scope, oneshot::Sender<()>),
    Wake,
    #[cfg_attr(not(feature = "save"), expect(dead_code, reason = "nothing is saved"))]
    Checkpoint(oneshot::Sender<informer_core::Checkpoint>),
    /// Asks how far a scope has come. The answer is `None` if the engine has no source for it yet.
    Reach(Scope, oneshot::Sender<Option<Reach>>),
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
    let reflector = tokio::select! {
        biased;
        () = stop.cancelled() => return core.retire(engine, messages),
        config = core.server.reflector_config(&core.settings, !scopes.is_empty()) => config,
    };
    let wants_json = chosen.transform.as_ref().is_some_and(Transform::wants_json);
    let mut start = Start::new(core.expected(chosen.representation), scopes);
    start.reflector = informer_core::reflector::ReflectorConfig { backoff: chosen.backoff, ..reflector };
    start.limits = Limits { item_bytes: core.settings.item_limit };
    start.transform = chosen.transform.map(|transform| core.noting_drops(transform));
    start.share = core.selection.share().cloned();
    start.skips_managed_fields = !core.settings.decodes_managed_fields;
    start.seed = core.server.seed();
    let started = core.started();
    engine.handle(Time::from_start(started.elapsed()), Input::Start(Box::new(start)));
    let protobuf = core.settings.encoding == EncodingChoice::Auto && !wants_json;
    let schema = Schema::new(core.server.clone(), (*core.served()).clone(), core.schema());
    let requests = Requests::new(core.clone(), chosen.representation, protobuf && engine.reads_protobuf());
    let driver = Driver {
        engine,
        messages,
        requests,
        schema,
        exchanges: Exchanges::default(),
        compute: None,
        discovery: None,
        lost: None,
        representation: chosen.representation,
        takes_protobuf: protobuf,
        journals: HashMap::new(),
        checkpoints: Vec::new(),
        reaches: Vec::new(),
        removals: HashMap::new(),
        refused: Vec::new(),
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
    schema: Schema,
    exchanges: Exchanges,
    /// User code that runs on another thread. Its result is `None` if the thread panicked, which is a bug.
    compute: Option<BoxFuture<'static, Option<Computed>>>,
    /// A discovery request for a resource that was not found, or whose schema has changed.
    discovery: Option<BoxFuture<'static, Option<ResourceType>>>,
    lost: Option<Lost>,
    representation: Representation,
    takes_protobuf: bool,
    journals: HashMap<Scope, Journal>,
    /// Callers that wait for a checkpoint until user code returns the writer.
    checkpoints: Vec<oneshot::Sender<informer_core::Checkpoint>>,
    /// Callers that wait for the reach of a scope until user code returns the writer.
    reaches: Vec<(Scope, oneshot::Sender<Option<Reach>>)>,
    removals: HashMap<Scope, Vec<oneshot::Sender<()>>>,
    /// Requests that are not sent because their refusal is known already.
    refused: Vec<(RequestId, ApiStatus)>,
    started: Instant,
}

/// A followed resource that the server has not found.
struct Lost {
    status: ApiStatus,
    /// Whether discovery does not know the resource either.
    is_unknown: bool,
}

/// Everything that can wake a driver.
enum Event {
    Stop,
    Message(Message),
    Exchange(RequestId, ExchangeEvent),
    Computed(Option<Computed>),
    Released,
    /// The server reported a schema. The value says whether it differs from the former one.
    Schema(bool),
    Discovered(Option<ResourceType>),
    Deadline,
}

impl Driver {
    async fn run(mut self) {
        let stop = self.core.life.stop_token();
        let hot = self.core.settings.hot.clone();
        // Dropped before this waits for user code to end, so that another informer takes over the sweeps.
        let mut cooling = Box::pin(async move { hot.cool().await });
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
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => Event::Stop,
                // The sender is in the core, which this holds.
                Some(message) = self.messages.recv() => Event::Message(message),
                Some(computed) = OptionFuture::from(self.compute.as_mut()) => Event::Computed(computed),
                never = &mut cooling => match never {},
                (id, progress) = self.exchanges.next() => Event::Exchange(id, progress),
                () = self.requests.released() => Event::Released,
                Some(resource) = OptionFuture::from(self.discovery.as_mut()) => Event::Discovered(resource),
                is_other = self.schema.told() => Event::Schema(is_other),
                () = sleep_until(deadline) => Event::Deadline,
            };
            match event {
                Event::Stop => break,
                Event::Deadline => self.input(Input::Tick),
                Event::Released => self.input(Input::Wake),
                Event::Discovered(resource) => {
                    self.discovery = None;
                    self.discovered(resource);
                }
                Event::Schema(is_other) => {
                    if is_other {
                        self.input(Input::SchemaChanged);
                        // A resource that was deleted and returned at once was never missing to the informer, and may have
                        // another scope.
                        if self.core.follows() {
                            self.discover();
                        }
                    }
                }
                Event::Message(message) => self.message(message),
                Event::Exchange(id, progress) => self.progress(id, progress),
                Event::Computed(Some(computed)) => {
                    self.compute = None;
                    self.input(Input::Computed(Box::new(computed)));
                    self.answer();
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
        self.note_schema();
        self.input(Input::Stop);
        let Self { core, mut engine, messages, compute, exchanges, .. } = self;
        drop(exchanges);
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
        loop {
            while let Some(command) = self.engine.poll_command() {
                self.command(command);
            }
            let Some((id, status)) = self.refused.pop() else { return };
            let refused = Input::Response(id, Response::Foreseen(status));
            self.engine.handle(now(self.started), refused);
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
                let stopped = status == Status::Stopped;
                self.journals.entry(scope.clone()).or_insert_with(journal).status(&status);
                if let Status::Denied { status } = &status
                    && status.is_not_found()
                    && self.core.follows()
                {
                    self.lost.get_or_insert_with(|| Lost { status: status.clone(), is_unknown: false });
                    self.discover();
                }
                if stopped {
                    self.journals.remove(&scope);
                }
            }
            Command::StreamingListRefused(status) => {
                self.core.server.streaming_list_refused(&self.core.served(), status);
            }
            Command::ScopeRemoved(scope) => {
                self.schema.scope_removed(&scope);
                for removed in self.removals.remove(&scope).unwrap_or_default() {
                    // The caller may have stopped waiting.
                    let _ = removed.send(());
                }
                self.core.progress.changed();
            }
            observed => self.core.observe(observed),
        }
    }

    fn discover(&mut self) {
        if self.discovery.is_none() {
            self.discovery = Some(self.core.discover());
        }
    }

    fn discovered(&mut self, resource: Option<ResourceType>) {
        let Some(resource) = resource else {
            if let Some(lost) = &mut self.lost {
                lost.is_unknown = true;
            }
            return;
        };
        let lost = self.lost.take();
        match self.core.serve_as(resource) {
            Some(former) => self.served_as(&former),
            // The resource returned unchanged.
            None if lost.is_some_and(|lost| lost.is_unknown) => self.input(Input::Wake),
            None => {}
        }
    }

    /// Continues with the resource as the server serves it now.
    fn served_as(&mut self, former: &ResourceType) {
        let served = self.core.served();
        tracing::info!(resource = %former, %served, selection = %self.core.selection, "the resource is served as another one");
        self.schema = Schema::new(self.core.server.clone(), (*served).clone(), None);
        let is_other = former.namespaced != served.namespaced;
        let input = Input::ServedAs { expected: self.core.expected(self.representation), is_other };
        self.engine.handle(now(self.started), input);
        self.requests.take_protobuf(self.takes_protobuf && self.engine.reads_protobuf());
        self.obey();
        if is_other {
            self.core.move_scopes(former);
        }
    }

    fn send(&mut self, id: RequestId, request: &Request, scope: &Scope, refresh_credentials: bool) {
        if let Request::Watch(watch) = request {
            self.schema.watch_begins(scope, watch);
        }
        if let Request::Watch(watch) = request
            && watch.initial_events
        {
            let time = self.core.settings.reflector.streaming_list_retry;
            if let Some(status) = self.core.server.refuses_streaming_list(&self.core.served(), time) {
                return self.refused.push((id, status));
            }
        }
        // While the resource is lost, nothing is requested: when it returns, its former path may belong to another
        // resource.
        if let Some(lost) = &self.lost {
            self.refused.push((id, lost.status.clone()));
            return self.discover();
        }
        self.engine.sent(id);
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
            Message::Checkpoint(answer) => {
                self.checkpoints.push(answer);
                self.answer();
            }
            Message::Reach(scope, answer) => {
                self.reaches.push((scope, answer));
                self.answer();
            }
        }
    }

    /// Notes the schema of the content that is saved from here on, unless a list is due that will decide it.
    fn note_schema(&self) {
        if !self.engine.awaits_list() {
            self.core.set_schema(self.schema.last().cloned());
        }
    }

    /// Answers checkpoint and reach requests, unless user code has the writer. The callers may have stopped waiting.
    fn answer(&mut self) {
        while !self.checkpoints.is_empty() {
            let Ok(checkpoint) = self.engine.checkpoint() else { return };
            self.note_schema();
            if let Some(answer) = self.checkpoints.pop() {
                let _ = answer.send(checkpoint);
            }
        }
        while let Some((scope, answer)) = self.reaches.pop() {
            let Ok(reach) = self.engine.reach(&scope) else { return self.reaches.push((scope, answer)) };
            let _ = answer.send(reach);
        }
    }

    fn progress(&mut self, id: RequestId, progress: ExchangeEvent) {
        let response = match &progress {
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
    pub(super) fn observe(&self, command: Command) {
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
            | Command::StreamingListRefused(_)
            | Command::ScopeRemoved(_) => {}
        }
    }
}
