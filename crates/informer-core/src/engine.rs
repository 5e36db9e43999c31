//! One informer without its I/O: its reflectors, cache and subscriptions, under one owner.
//!
//! The engine is a state machine. Its owner passes inputs with the time, and carries out the commands. `informer` turns
//! them into HTTP requests; the simulation turns them into requests to a simulated server, so the code that a million
//! seeds test is the code that ships (design D15).
//!
//! ```text
//!   response bytes -> reader -> reflector (one per scope) -> operations -> writer -> cache (published)
//!                                                              |  queue             |
//!                                                              |  while lent        v
//!   Compute  <---------------- the writer, where user code runs                  changes -> mailboxes -> Wake
//! ```
//!
//! # User code can block
//!
//! Transforms and index functions belong to the user. They may be slow, block or panic, so the engine never calls them.
//! Instead it lends the writer, with the operations that wait for it, to its owner as a [`Compute`]. The owner returns both
//! as [`Input::Computed`].
//!
//! Operations that arrive in the meantime wait in a queue. When the queue is full, the engine takes no more bytes. When the
//! user's code does not return, the engine drops its responses and resumes them later: an unread response would use up the
//! window of a connection that other informers share.
//!
//! # Ownership
//!
//! The engine has one owner and no lock. Other threads read what it publishes: the [`Cache`], the [`Fanout`] with its
//! mailboxes, the [`Quarantine`] and the [`Counters`].

mod compute;
mod counters;
mod fanout;
mod follow;
#[cfg(all(test, loom))]
mod interleavings;
mod outbox;
mod quarantine;
mod questions;
mod queue;
mod reach;
mod request;
mod scope_feed;
mod scopes;
mod start;
mod writer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

pub use compute::{Compute, Computed};
pub use counters::{Counter, Counters, EventCounts, RequestCounts};
pub use fanout::{Fanout, Subscriber};
pub use follow::{Discovered, StreamingRefusals};
pub use quarantine::{Quarantine, Quarantined};
pub use questions::{Answer, Question, QuestionId};
pub use reach::Reach;
pub use request::RequestId;
pub use start::Start;
pub use writer::{Applied, TransformFn};

use crate::reflector::{self, Report, Request, Status};
use crate::saved::Saved;
use crate::store::IndexReport;
use crate::wire::ApiStatus;
use crate::{Cache, Checkpoint, Scope, Shelf, SourceId, Store, Time};
use follow::Follow;
use outbox::Outbox;
use queue::Queue;
use scope_feed::ScopeFeed;
use scopes::Scopes;
use start::Running;
use writer::{Operation, Step, Writer};

/// The lists and watches of one resource, their cache, and its subscriptions.
///
/// ```
/// use std::sync::Arc;
/// use informer_core::engine::{Command, Engine, Input, Response, Start};
/// use informer_core::reader::Expected;
/// use informer_core::{PlainStorage, Scope, Shelf, Time};
///
/// let mut engine = Engine::new(Shelf::cold(Arc::new(PlainStorage)));
/// let pods = Expected { api_version: "v1".into(), kind: "Pod".into(), or_kind: None };
/// engine.handle(Time::ZERO, Input::Start(Box::new(Start::new(pods, [Scope::All]))));
///
/// // The owner sends the request that the engine asks for ...
/// let mut commands = std::iter::from_fn(|| engine.poll_command());
/// let list = commands.find_map(|command| match command {
///     Command::Send { id, request, .. } => Some((id, request.to_string())),
///     _ => None,
/// });
/// let (id, request) = list.ok_or("a list")?;
/// assert_eq!(request, r#"LIST rv="""#);
///
/// // ... and passes the answer on.
/// let body = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[
///     {"metadata":{"name":"cart","namespace":"shop","resourceVersion":"5"}}]}"#;
/// for response in [Response::Accepted { protobuf: false }, Response::Bytes(body), Response::End] {
///     engine.handle(Time::ZERO, Input::Response(id, response));
/// }
/// assert!(engine.cache().is_synced());
/// assert!(engine.cache().get_str("shop/cart").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    cache: Cache,
    shelf: Arc<Shelf>,
    fanout: Arc<Fanout>,
    quarantine: Arc<Quarantine>,
    counters: Arc<Counters>,
    /// Set by [`Input::Start`].
    running: Option<Running>,
    scopes: Scopes,
    desk: Desk,
    queue: Queue,
    outbox: Outbox,
    commands: VecDeque<Command>,
    requests: u64,
    /// Set by [`Input::Follow`].
    follow: Option<Follow>,
    /// The schema that the server reported last; empty before.
    schema: Arc<str>,
    /// Requests that are not sent because their refusal is known already.
    foreseen: Vec<(RequestId, ApiStatus)>,
    /// The questions whose answers wait for user code.
    questions: Vec<(QuestionId, Question)>,
    /// The last status that was published.
    status: Status,
    is_listing: bool,
    is_synced: bool,
    is_stopped: bool,
    /// Whether user code has not returned for so long that the responses were dropped.
    is_stuck: bool,
}

/// Where the writer is.
enum Desk {
    Here(Box<Writer>),
    /// Lent to the owner with a [`Compute`].
    Lent,
}

/// An input: the closed list of everything that an engine reacts to.
#[derive(Debug)]
pub enum Input<'a> {
    /// List and watch each scope from now on.
    Start(Box<Start>),
    /// Feed the cache from one more scope.
    AddScope(Scope),
    /// Stop feeding the cache from a scope.
    RemoveScope(Scope),
    /// A part of the response to a request. Parts of a cancelled request are ignored.
    Response(RequestId, Response<'a>),
    /// The owner returns the writer.
    Computed(Box<Computed>),
    /// Send the requests that wait for their backoff, or after a denial, now. While user code is stuck, this takes effect when it
    /// returns.
    Wake,
    /// The same for the requests that did not reach the server, because it answers again.
    Released,
    /// The fingerprint of the resource's schema and the server's version. A scope whose content was read with another one
    /// lists once: objects may differ at an unchanged resourceVersion.
    Schema(&'a str),
    /// Follow the resource to other versions and kinds from now on ([`Command::Discover`]).
    Follow,
    /// The answer to [`Command::Discover`]. If the resource is served as another version or kind, each scope lists again.
    Discovered(Discovered),
    /// Answer this as soon as user code does not have the writer.
    Ask(QuestionId, Question),
    /// The time of the call is new: a deadline may have passed, or the engine [has work](Engine::has_work).
    Tick,
    /// Stop for good.
    Stop,
}

/// A part of a response. Parts are passed in the order in which they arrive.
#[derive(Debug)]
pub enum Response<'a> {
    /// The server answers with a success; the body follows.
    Accepted {
        /// The body is in protobuf, not in JSON.
        protobuf: bool,
    },
    /// The server answers with an error.
    Refused(ApiStatus),
    /// The request could not be sent, or was not answered.
    Unreachable(String),
    /// The next part of the body.
    Bytes(&'a [u8]),
    /// The body ended regularly.
    End,
    /// The body broke off.
    Broken(String),
}

/// A command to the owner. The owner carries out commands in order.
#[derive(Debug)]
pub enum Command {
    /// Send a request. A scope has only one request at a time: its former one has been cancelled.
    Send {
        /// The id to pass with the response.
        id: RequestId,
        /// The parameters.
        request: Request,
        /// The scope, which determines the path.
        scope: Scope,
        /// Whether to read the credentials again first.
        refresh_credentials: bool,
    },
    /// Drop a response. The engine ignores the rest of it.
    Cancel(RequestId),
    /// Run user code, on a thread that may block, and return the result with [`Input::Computed`].
    Compute(Box<Compute>),
    /// Wake the readers whose mailboxes got a notice.
    Wake(Vec<Waker>),
    /// The status of the engine as a whole changed.
    Status(Status),
    /// A list began or ended. Resyncs pause during a list (contract R2).
    Listing(bool),
    /// The initial list of all scopes is in the cache.
    Synced,
    /// The cache changed, or reflects another version.
    Applied {
        /// The source whose list or watch caused this.
        source: SourceId,
        /// The request whose response caused this.
        request: RequestId,
        /// The way in which the cache changed.
        applied: Applied,
    },
    /// The status of one scope's reflector changed.
    SourceStatus(Scope, Status),
    /// A report for observers.
    Report(Scope, Report),
    /// An object was quarantined, as the first one in an empty quarantine.
    Quarantined(Report),
    /// An index function failed for an object.
    IndexFailed(IndexReport),
    /// Ask discovery how the resource is served now, and pass the answer with [`Input::Discovered`].
    Discover,
    /// The answer to [`Input::Ask`].
    Answer(QuestionId, Answer),
    /// A scope was removed: its objects have left the cache, and its request was cancelled.
    ScopeRemoved(Scope),
}

/// The engine cannot be asked for this now: its writer is with a [`Compute`]. Ask again after [`Input::Computed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("user code is running; ask for the checkpoint again when it has ended")]
pub struct Lent;

/// User code counts as stuck when it has not returned for this long after the queue filled up.
const STALL: Duration = Duration::from_secs(10);

impl Engine {
    /// An engine with an empty cache, which keeps its objects on `shelf`.
    pub fn new(shelf: Arc<Shelf>) -> Self {
        let store = Store::new();
        let quarantine = Arc::<Quarantine>::default();
        Self {
            cache: store.cache(),
            fanout: Arc::default(),
            counters: Arc::default(),
            running: None,
            scopes: Scopes::default(),
            desk: Desk::Here(Box::new(Writer::new(store, shelf.clone(), quarantine.clone()))),
            queue: Queue::of(queue::OPERATIONS),
            outbox: Outbox::of(outbox::SLICE),
            commands: VecDeque::new(),
            requests: 0,
            follow: None,
            schema: Arc::default(),
            foreseen: Vec::new(),
            questions: Vec::new(),
            status: Status::NotStarted,
            is_listing: false,
            is_synced: false,
            is_stopped: false,
            is_stuck: false,
            shelf,
            quarantine,
        }
    }

    /// The cache, for readers.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The fan-out, to which subscriptions are added.
    pub fn fanout(&self) -> &Arc<Fanout> {
        &self.fanout
    }

    /// The undecodable objects.
    pub fn quarantine(&self) -> &Arc<Quarantine> {
        &self.quarantine
    }

    /// The engine's counters.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Loads a saved cache, before the start. The saved scopes then watch from their saved versions; other scopes list. Does
    /// nothing once the engine was started.
    pub fn load(&mut self, saved: Saved, scopes: &[Scope]) {
        let Desk::Here(writer) = &mut self.desk else { return };
        if self.running.is_some() || self.is_stopped {
            return;
        }
        self.scopes.load(writer, saved, scopes);
        let snapshot = self.cache.snapshot();
        let content: Vec<_> = snapshot.iter().cloned().collect();
        let wakers = self.fanout.load(snapshot.revision(), &content);
        self.command_wake(wakers);
    }

    /// The content to save, with the versions that it reflects.
    ///
    /// # Errors
    ///
    /// While the writer is with a [`Compute`].
    pub fn checkpoint(&self) -> Result<Checkpoint, Lent> {
        match &self.desk {
            Desk::Here(writer) => Ok(writer.checkpoint()),
            Desk::Lent => Err(Lent),
        }
    }

    /// Handles one input. Time must not go back from one call to the next.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        if self.is_stopped {
            // The operations of the writer are in the cache already, so a later checkpoint must include them.
            if let Input::Computed(computed) = input {
                self.desk = Desk::Here(computed.writer);
            }
            return;
        }
        match input {
            Input::Start(start) => self.start(now, *start),
            Input::AddScope(scope) => self.add_scope(now, scope),
            Input::RemoveScope(scope) => self.remove_scope(now, &scope),
            Input::Response(id, response) => self.response(now, id, response),
            Input::Computed(computed) => self.computed(*computed),
            Input::Wake => self.wake(now, &reflector::Input::Wake),
            Input::Released => self.wake(now, &reflector::Input::Released),
            Input::Schema(schema) => self.schema(now, schema),
            Input::Follow => drop(self.follow.get_or_insert_default()),
            Input::Discovered(discovered) => self.discovered(now, discovered),
            Input::Ask(id, question) => self.questions.push((id, question)),
            Input::Tick => self.tick(now),
            Input::Stop => return self.stop(now),
        }
        self.dispatch_slice(now);
        self.go_on(now);
        // After the input: a refusal that is known in advance must not arrive while its request is still being made.
        while let Some((id, status)) = self.foreseen.pop() {
            if let Some(at) = self.scopes.position_of(id) {
                self.ended(now, at, reflector::Input::Refused(status));
                self.go_on(now);
            }
        }
        self.answer();
    }

    /// The next command.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When to call [`Engine::handle`] with [`Input::Tick`] if nothing happens before. There is no deadline while user code
    /// is stuck: deadlines that pass are handled when it returns.
    pub fn deadline(&self) -> Option<Time> {
        if self.is_stuck {
            return None;
        }
        self.scopes.deadline().into_iter().chain(self.stall_deadline()).min()
    }

    /// Whether there is more work to do at once. [`Input::Tick`] continues it, after other informers of the thread had their
    /// turn. A large list is dispatched in slices, so that it does not delay them.
    pub fn has_work(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether the engine takes more bytes of its responses. While it does not, the owner leaves them in the connection,
    /// which applies back-pressure to the server.
    pub fn takes_bytes(&self) -> bool {
        !self.queue.is_full()
    }

    /// Whether the resource can be decoded from protobuf. `false` before the start.
    pub fn reads_protobuf(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.reader.reads_protobuf())
    }

    fn tick(&mut self, now: Time) {
        if self.stall_deadline().is_some_and(|deadline| now >= deadline) {
            self.stall(now);
        }
        if self.is_stuck {
            return;
        }
        for at in 0..self.scopes.len() {
            self.reflect(now, at, reflector::Input::Tick);
        }
    }

    fn stall_deadline(&self) -> Option<Time> {
        // With the writer here, a full queue empties by itself. Only one that waits for a compute can be stuck.
        let since = self.queue.full_since().filter(|_| matches!(self.desk, Desk::Lent) && !self.is_stuck);
        since.map(|since| since + STALL)
    }

    /// The user's code blocks the informer: drops all responses, and sends no request before the code returns.
    fn stall(&mut self, now: Time) {
        self.is_stuck = true;
        for at in 0..self.scopes.len() {
            if let Some(source) = self.scopes.get_mut(at).filter(|source| source.receives()) {
                source.owes_wake = true;
                self.reflect(now, at, reflector::Input::Stalled);
            }
        }
    }

    fn response(&mut self, now: Time, id: RequestId, response: Response<'_>) {
        let Some(at) = self.scopes.position_of(id) else { return };
        match response {
            Response::Accepted { protobuf } => {
                if let (Some(source), Some(running)) = (self.scopes.get_mut(at), &self.running) {
                    source.begin_answer(protobuf, running.limits);
                }
                self.reflect(now, at, reflector::Input::Accepted);
            }
            Response::Refused(status) => self.refused(now, at, status),
            Response::Unreachable(reason) => self.ended(now, at, reflector::Input::Unreachable(reason)),
            Response::Broken(reason) => self.ended(now, at, reflector::Input::Broken(reason)),
            Response::Bytes(bytes) => {
                if let Some(source) = self.scopes.get_mut(at) {
                    source.push(bytes);
                }
                self.read(now, at);
            }
            Response::End => {
                if let Some(source) = self.scopes.get_mut(at) {
                    source.has_ended = true;
                }
                self.read(now, at);
            }
        }
    }

    fn refused(&mut self, now: Time, at: usize, status: ApiStatus) {
        let refused_until = |engine: &Self| {
            engine.scopes.get(at).and_then(|source| source.reflector.streaming_refused_until())
        };
        let before = refused_until(self);
        self.ended(now, at, reflector::Input::Refused(status.clone()));
        if refused_until(self) != before {
            self.streaming_refused(now, status);
        }
    }

    /// A response ended early.
    fn ended(&mut self, now: Time, at: usize, input: reflector::Input) {
        if let Some(source) = self.scopes.get_mut(at) {
            source.hang_up();
        }
        self.reflect(now, at, input);
    }

    /// Reads what has arrived, as far as the queue has room. Each input may end the response.
    fn read(&mut self, now: Time, at: usize) {
        while !self.queue.is_full() {
            let (Some(running), Some(source)) = (&self.running, self.scopes.get_mut(at)) else { return };
            let Some(reading) = source.next(&running.reader) else { break };
            self.counters.read(&reading);
            if let Some(unreadable) = reading.unreadable {
                let report = Report::Quarantined { key: unreadable.key, reason: unreadable.reason };
                self.commands.push_back(Command::Report(source.scope.clone(), report));
            }
            if matches!(reading.input, reflector::Input::Undecodable(_)) {
                self.hang_up(at);
            }
            self.reflect(now, at, reading.input);
        }
        let Some(source) = self.scopes.get(at) else { return };
        if source.has_ended && !self.queue.is_full() {
            self.finish(now, at);
        }
    }

    /// The response has ended: a list must be complete, and a watch may hold a last event.
    fn finish(&mut self, now: Time, at: usize) {
        let (Some(running), Some(source)) = (&self.running, self.scopes.get_mut(at)) else { return };
        let id = source.request;
        let Some((last, end)) = source.finish(&running.reader) else { return };
        if let Some(last) = last {
            self.counters.read(&last);
            self.reflect(now, at, last.input);
        }
        // The last event may have led to another request, to which this end does not belong.
        if self.scopes.get(at).is_some_and(|source| source.request == id) {
            if let Some(source) = self.scopes.get_mut(at) {
                source.hang_up();
            }
            self.reflect(now, at, end);
        }
    }

    /// Passes one input to a scope's reflector, and handles its outputs.
    fn reflect(&mut self, now: Time, at: usize, input: reflector::Input) {
        let Some(source) = self.scopes.get_mut(at) else { return };
        source.reflector.handle(now, input);
        while let Some(output) = self.scopes.get_mut(at).and_then(|source| source.reflector.poll_output()) {
            self.output(now, at, output);
        }
    }

    fn output(&mut self, now: Time, at: usize, output: reflector::Output) {
        use reflector::Output;

        match output {
            Output::Send(request) => self.send(now, at, request),
            Output::Cancel => self.hang_up(at),
            Output::RefreshCredentials => {
                if let Some(source) = self.scopes.get_mut(at) {
                    source.refresh_credentials = true;
                }
            }
            Output::Store(operation) => self.operation(now, at, Step::Store(operation)),
            Output::Status(status) => self.source_status(at, status),
            Output::Report(report) => self.report(now, at, report),
        }
    }

    fn send(&mut self, now: Time, at: usize, request: Request) {
        self.hang_up(at);
        let foreseen = self.foreseen(now, &request);
        let Some(source) = self.scopes.get_mut(at) else { return };
        self.requests += 1;
        let id = RequestId(self.requests);
        source.asks(id, &request);
        // It is not sent, so it does not count as a request.
        if let Some(status) = foreseen {
            return self.foreseen.push((id, status));
        }
        self.counters.sent(source.id, &request, std::mem::take(&mut source.begins_list));
        let refresh_credentials = std::mem::take(&mut source.refresh_credentials);
        let scope = source.scope.clone();
        self.commands.push_back(Command::Send { id, scope, refresh_credentials, request });
    }

    fn hang_up(&mut self, at: usize) {
        if let Some(id) = self.scopes.get_mut(at).and_then(ScopeFeed::hang_up) {
            self.commands.push_back(Command::Cancel(id));
        }
    }

    fn report(&mut self, now: Time, at: usize, report: Report) {
        let Some(source) = self.scopes.get(at) else { return };
        self.commands.push_back(Command::Report(source.scope.clone(), report.clone()));
        match report {
            Report::Disconnected(cause) => self.counters.disconnected(source.id, &cause),
            Report::Quarantined { key, reason } => {
                self.counters.unreadable.add(1);
                self.operation(now, at, Step::Quarantine { key, reason });
            }
            _ => {}
        }
    }

    /// Applies an operation, or queues it.
    fn operation(&mut self, now: Time, at: usize, step: Step) {
        let Some(source) = self.scopes.get_mut(at) else { return };
        // Counted before the store has it: a source is live only once its content is in the cache.
        source.will_apply(&step, &self.schema);
        let operation = Operation::Of {
            source: source.id,
            request: source.request_or_last(),
            scope: source.scope.clone(),
            step,
        };
        self.apply(now, operation);
    }

    fn apply(&mut self, now: Time, operation: Operation) {
        // If nothing waits and no user code runs, the operation is applied at once.
        if self.queue.is_empty()
            && self.outbox.is_empty()
            && let Desk::Here(writer) = &mut self.desk
            && !writer.needs_compute(&operation)
        {
            let outcome = writer.apply(operation);
            return self.applied(now, outcome);
        }
        self.queue.push(now, operation);
    }

    /// Continues the work that the last input made possible.
    fn go_on(&mut self, now: Time) {
        self.lend(now);
        // Responses that were held back may fill the queue again and again, until user code has the writer.
        let mut is_held_back = true;
        while is_held_back && !self.queue.is_full() {
            self.resume(now);
            is_held_back = self.queue.is_full();
            self.lend(now);
        }
        // Last: a status describes the cache as it is after this input.
        self.publish_status();
    }

    /// Applies the queued operations: by a compute where user code runs, otherwise at once.
    fn lend(&mut self, now: Time) {
        while self.outbox.is_empty() && !self.queue.is_empty() {
            match std::mem::replace(&mut self.desk, Desk::Lent) {
                Desk::Here(mut writer) => {
                    // The operations behind one that needs a compute go with it, so that they keep their order. Only the first
                    // one is looked at: the needs of a later one depend on those before it.
                    let needs_compute = |operation| writer.needs_compute(operation);
                    if self.queue.is_long() || self.queue.front().is_some_and(needs_compute) {
                        let compute = Compute::new(writer, self.queue.take());
                        return self.commands.push_back(Command::Compute(Box::new(compute)));
                    }
                    let operation = self.queue.pop();
                    let outcome = operation.map(|operation| writer.apply(operation));
                    self.desk = Desk::Here(writer);
                    if let Some(outcome) = outcome {
                        self.applied(now, outcome);
                    }
                }
                lent @ Desk::Lent => return self.desk = lent,
            }
        }
    }

    fn computed(&mut self, computed: Computed) {
        let Computed { writer, outcomes, reports } = computed;
        // Sources that were cut off resume in `go_on`, behind these outcomes.
        self.is_stuck = false;
        self.desk = Desk::Here(writer);
        self.commands.extend(reports.into_iter().map(Command::IndexFailed));
        // All outcomes are queued before the first one is dispatched, because dispatching may lead to further outcomes, which
        // must come later.
        self.outbox.extend(outcomes);
    }

    /// The queue has room again: reads what was held back, and resumes the sources that stalled, or were to wake meanwhile.
    fn resume(&mut self, now: Time) {
        for at in 0..self.scopes.len() {
            let owes_wake = |source: &mut ScopeFeed| std::mem::take(&mut source.owes_wake);
            if self.scopes.get_mut(at).is_some_and(owes_wake) {
                self.reflect(now, at, reflector::Input::Wake);
            }
            self.read(now, at);
        }
    }

    fn stop(&mut self, now: Time) {
        for at in 0..self.scopes.len() {
            self.reflect(now, at, reflector::Input::Stop);
        }
        self.is_stopped = true;
        // Waiting operations are dropped. A checkpoint has the versions that the store has reached, so a restart gets them again.
        self.queue = Queue::of(queue::OPERATIONS);
        self.commands.push_back(Command::Status(Status::Stopped));
        let wakers = self.fanout.stop();
        self.command_wake(wakers);
    }

    fn command_wake(&mut self, wakers: Vec<Waker>) {
        if !wakers.is_empty() {
            self.commands.push_back(Command::Wake(wakers));
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("cache", &self.cache)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
