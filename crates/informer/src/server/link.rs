//! One informer's way to the server. [`Upstream`] decides for all informers of a factory; this module sends its probes and
//! reads the schemas, waits, and passes the news on.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use informer_core::upstream::{Command, Input, Member, Upstream};
use informer_core::{Scope, Time};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until, timeout};

use super::Server;
use crate::error_chain;
use crate::lock::lock;
use crate::transport::{Response, TransportError};

/// The state that all links to one server share.
pub(super) struct Links {
    state: Mutex<State>,
    /// Notified when something may be due earlier than what the link that runs waits for.
    changed: Notify,
    /// Notified when links were released.
    freed: Notify,
    /// Held by the link that carries out the commands for all links. When it is dropped, another link takes over: no separate
    /// task could outlive them.
    running: tokio::sync::Mutex<()>,
}

struct State {
    upstream: Upstream,
    links: HashMap<Member, mpsc::UnboundedSender<News>>,
    /// Why the latest unanswered request failed.
    reason: String,
}

/// News for one informer.
pub(crate) enum News {
    /// Its first requests may be sent.
    Begin,
    /// An outage is over, and it is the informer's turn.
    Released,
    /// Its schema has this fingerprint, another one than before.
    Schema(String),
}

pub(crate) struct Link {
    server: Arc<Server>,
    member: Member,
}

/// The news for a link's informer. While it waits for them, it carries out commands for all links.
pub(crate) struct Inbox {
    news: mpsc::UnboundedReceiver<News>,
    run: BoxFuture<'static, Infallible>,
}

impl Links {
    pub(super) fn new(upstream: Upstream) -> Self {
        Self {
            state: Mutex::new(State { upstream, links: HashMap::new(), reason: String::new() }),
            changed: Notify::new(),
            freed: Notify::new(),
            running: tokio::sync::Mutex::default(),
        }
    }

    /// Whether the server is unreachable, as far as known.
    pub(super) fn is_outage(&self) -> bool {
        lock(&self.state).upstream.is_outage()
    }
}

impl Server {
    fn now(&self) -> Time {
        Time::from_start(self.started().elapsed())
    }

    fn input(&self, input: Input) {
        let now = self.now();
        let (before, after, is_sooner) = {
            let upstream = &mut lock(&self.links.state).upstream;
            let (before, deadline) = (upstream.is_outage(), upstream.deadline());
            upstream.handle(now, input);
            (before, upstream.is_outage(), upstream.deadline() != deadline)
        };
        if is_sooner {
            self.links.changed.notify_one();
        }
        if before != after {
            let what = if after { "the server cannot be reached" } else { "the server answers again" };
            tracing::debug!("{what}");
        }
    }

    /// Carries out the commands for all links while the future is polled.
    async fn run(self: Arc<Self>) -> Infallible {
        let _for_all = self.links.running.lock().await;
        let mut questions = FuturesUnordered::new();
        loop {
            questions.extend(self.command());
            let deadline = lock(&self.links.state).upstream.deadline();
            let deadline = deadline.and_then(|at| self.started().checked_add(at.since(Time::ZERO)));
            tokio::select! {
                biased;
                Some(answer) = questions.next() => self.input(answer),
                () = self.links.changed.notified() => {}
                () = async { sleep_until(deadline.unwrap_or_else(Instant::now)).await }, if deadline.is_some() => {
                    self.input(Input::Tick);
                }
            }
        }
    }

    /// Passes the news on. Returns the questions to the server.
    fn command(self: &Arc<Self>) -> Vec<BoxFuture<'static, Input>> {
        let mut questions = Vec::new();
        let mut state = lock(&self.links.state);
        while let Some(command) = state.upstream.poll_command() {
            let server = self.clone();
            let (member, news) = match command {
                Command::Probe => {
                    questions.push(async move { Input::Probed(server.probe().await) }.boxed());
                    continue;
                }
                Command::ReadSchemas => {
                    questions.push(async move { Input::Schemas(server.read_schemas().await) }.boxed());
                    continue;
                }
                Command::Begin(member) => (member, News::Begin),
                Command::Release(member) => {
                    self.links.freed.notify_waiters();
                    (member, News::Released)
                }
                Command::Schema(member, schema) => (member, News::Schema(schema)),
            };
            if let Some(link) = state.links.get(&member) {
                // An informer that has stopped gets no news.
                let _ = link.send(news);
            }
        }
        questions
    }

    /// The way of one informer to the server. `lists` says whether it has something to list at once.
    pub(crate) fn link(self: &Arc<Self>, api_version: String, lists: bool) -> (Link, Inbox) {
        let (sender, news) = mpsc::unbounded_channel();
        let now = self.now();
        let member = {
            let mut state = lock(&self.links.state);
            let member = state.upstream.join(now, api_version, lists);
            state.links.insert(member, sender);
            member
        };
        self.links.changed.notify_one();
        let run = self.clone().run().boxed();
        (Link { server: self.clone(), member }, Inbox { news, run })
    }
}

impl Inbox {
    /// The next news.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(crate) async fn next(&mut self) -> News {
        let Self { news, run } = self;
        tokio::select! {
            biased;
            // The sender is in the server, which the other branch holds.
            Some(news) = news.recv() => news,
            never = run => match never {},
        }
    }
}

impl Link {
    /// Sends a request, and notes whether the server answers it. A request that its caller drops after `patience` counts as
    /// unanswered.
    pub(crate) async fn send(
        &self,
        request: http::Request<Vec<u8>>,
        patience: Duration,
    ) -> Result<Response, TransportError> {
        let question = Question { link: self, asked: Instant::now(), patience };
        let response = self.server.transport().send(request).await;
        // A response or an error has arrived, so the drop of the question must not count as a failure.
        std::mem::forget(question);
        if let Err(error) = &response {
            lock(&self.server.links.state).reason = error_chain(error);
        }
        self.server.input(match &response {
            Ok(_) => Input::Answered(self.member),
            Err(_) => Input::Unanswered(self.member),
        });
        response
    }

    /// Waits until a request may be sent. In an outage that is when the outage has ended and it is this link's turn.
    ///
    /// # Errors
    ///
    /// When that takes longer than `patience`.
    pub(crate) async fn ready(&self, patience: Duration) -> Result<(), TransportError> {
        let freed = async {
            loop {
                // The wait is registered before the check, so that a turn that comes in between is not missed.
                let mut notified = pin!(self.server.links.freed.notified());
                notified.as_mut().enable();
                if !lock(&self.server.links.state).upstream.holds(self.member) {
                    return;
                }
                notified.await;
            }
        };
        let away = |_| {
            let reason = lock(&self.server.links.state).reason.clone();
            let context = format!("the server cannot be reached, and is being probed; last error: {reason}");
            TransportError::new(context, None)
        };
        timeout(patience, freed).await.map_err(away)
    }

    /// Notes that a watch of a scope is requested.
    pub(crate) fn watch_begins(&self, scope: &Scope, seconds: u64) {
        self.server.input(Input::WatchBegins(self.member, scope.clone(), Duration::from_secs(seconds)));
    }

    pub(crate) fn scope_removed(&self, scope: &Scope) {
        self.server.input(Input::ScopeRemoved(self.member, scope.clone()));
    }

    /// Notes that the informer requests another version. Returns the fingerprint of its schema; empty while it is unknown.
    pub(crate) fn serves(&self, api_version: &str) -> String {
        lock(&self.server.links.state).upstream.serves(self.member, api_version)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut state = lock(&self.server.links.state);
        state.links.remove(&self.member);
        state.upstream.leave(self.member);
    }
}

/// A request that waits for its response. Its drop before that notes a failure, if the caller has waited long enough.
struct Question<'a> {
    link: &'a Link,
    asked: Instant,
    patience: Duration,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.asked.elapsed() >= self.patience {
            self.link.server.input(Input::Unanswered(self.link.member));
        }
    }
}
