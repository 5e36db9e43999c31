//! Lists a collection, watches it, and recovers: the protocol between a server and the cache.
//!
//! A state machine without I/O and without a clock. Whoever drives it sends the requests that it asks for, one at a
//! time, tells it what came back and what time it is, and applies the cache operations that it puts out:
//!
//! ```text
//!             Start                    commit                        end, 410, error
//!   Idle ------------> Listing  ------------------> Watching ------------------------+
//!                      (LIST, pages, or                |  silent                     |
//!                       a streaming list)              v                             v
//!                          ^                        Probing                       Waiting
//!                          +-----------------------------+--------------------------+
//! ```
//!
//! The rules are client-go's reflector's (contract groups L, W and S), with its known gaps closed.

mod config;
mod listing;
mod request;
mod status;
mod streaming;
mod watching;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

pub use config::{FirstList, ReflectorConfig, StreamingList};
pub use request::{ListRequest, Request, WatchRequest};
pub use status::{Cause, Report, Status};

use crate::backoff::Backoff;
use crate::wire::{ApiStatus, Bookmark, ListMeta};
use crate::{Object, ObjectKey, ResourceVersion, Time};
use listing::Listing;
use streaming::Streaming;
use watching::Watching;

/// The state machine. One per collection: a resource, a scope and a selector.
///
/// ```
/// use informer_core::reflector::{Input, Output, Reflector, ReflectorConfig};
/// use informer_core::Time;
///
/// let mut reflector = Reflector::new(ReflectorConfig::default(), 42);
/// reflector.handle(Time::ZERO, Input::Start);
/// while let Some(output) = reflector.poll_output() {
///     if let Output::Send(request) = output {
///         assert_eq!(request.to_string(), r#"LIST rv="""#);
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Reflector {
    state: State,
    known: Known,
    outputs: VecDeque<Output>,
}

/// Something that happened: the closed list of causes of everything a reflector does.
#[derive(Debug, Clone)]
pub enum Input {
    /// Begin.
    Start,
    /// The time is what the call says; deadlines may have passed.
    Tick,
    /// Whatever is waited for may be there now: try at once. A request under way goes on as it is.
    Wake,
    /// End for good.
    Stop,
    /// The request could not be sent, or was not answered.
    Unreachable(String),
    /// The request was answered with an error.
    Refused(ApiStatus),
    /// The request was answered; its content follows.
    Accepted,
    /// The list's own metadata, where it comes before the items.
    ListStart(ListMeta),
    /// A list item, or an event's object, that is new against the cache.
    Item(Arc<Object>),
    /// A list item, or a streaming list's initial object, whose resourceVersion the cache has already.
    Unchanged(ObjectKey),
    /// A list item, or an event, that cannot be read, or is of another kind.
    Unreadable {
        /// The object, where as much could be read.
        key: Option<ObjectKey>,
        /// What is wrong.
        reason: String,
    },
    /// The list, or the page, is complete.
    ListEnd(ListMeta),
    /// An event that tells of an object.
    Event(EventKind, Arc<Object>),
    /// A bookmark event.
    Bookmark(Bookmark),
    /// An error event.
    ErrorEvent(ApiStatus),
    /// The response ended as responses do.
    End,
    /// The response broke off.
    Broken(String),
    /// The response cannot be understood any further.
    Undecodable(String),
}

/// The events that tell of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It is there now.
    Added,
    /// It has changed.
    Modified,
    /// It is gone, or has left the selector; the event holds its last state.
    Deleted,
}

/// What the driver has to do, in order.
#[derive(Debug)]
pub enum Output {
    /// Send this request. It is the only one: whatever still runs is cancelled.
    Send(Request),
    /// Cancel whatever runs.
    Cancel,
    /// Read the credentials again before the next request.
    RefreshCredentials,
    /// Change the cache.
    Store(StoreOperation),
    /// The status is a new one.
    Status(Status),
    /// Worth telling.
    Report(Report),
}

/// What to do with the cache.
#[derive(Debug)]
pub enum StoreOperation {
    /// Begin to stage a whole content; what was staged before is discarded.
    BeginReplace {
        /// Whether an equal resourceVersion means an equal state. Not so after a backup was restored.
        trust_versions: bool,
    },
    /// The staged content has what the cache has.
    Keep(ObjectKey),
    /// The staged content has this.
    Stage(Arc<Object>),
    /// The staged content does not have this any more; its last state.
    Unstage(Arc<Object>),
    /// Put the staged content in the place of the cache's, in one step.
    Commit {
        /// The state that it reflects.
        resource_version: ResourceVersion,
    },
    /// Forget what was staged.
    Discard,
    /// One object is new or changed.
    Upsert(Arc<Object>),
    /// One object is gone.
    Delete(Arc<Object>),
    /// The cache reflects this state.
    Bookmark(ResourceVersion),
    /// The server goes on from the content that the cache began with.
    Confirm,
}

/// From where a reflector goes on whose cache has a content already, such as one that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// All of the server's state at this version is in the cache: watch from there.
    Watch(ResourceVersion),
    /// The cache has been as far as this version, but some objects could not be read: list, and compare.
    List(ResourceVersion),
}

#[derive(Debug)]
enum State {
    /// The start does this.
    Idle(Next),
    Listing(Listing),
    Streaming(Streaming),
    Watching(Watching),
    /// A list of one item is under way, only to learn how new the server's state is.
    Probing {
        deadline: Time,
    },
    Waiting {
        until: Time,
        next: Next,
    },
    Stopped,
}

/// What follows a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The content anew, in whatever way is right by then.
    Sync,
    /// The watch from the last version; of a content that no server has confirmed yet, once the server is known to have
    /// come as far.
    Watch,
}

/// What outlives each request.
#[derive(Debug)]
struct Known {
    config: ReflectorConfig,
    backoff: Backoff,
    random: fastrand::Rng,
    /// The newest version seen: of the list, then of each event and bookmark.
    last_version: ResourceVersion,
    /// The server has said that it cannot list at `last_version`: ask for the most recent instead.
    version_unavailable: bool,
    /// The last list went back in time though it was consistent: equal versions mean nothing now.
    distrust_versions: bool,
    /// The first list came in pages, so there is no watch cache to spare: keep asking for pages.
    paginated: bool,
    /// A content was committed, or confirmed.
    synced: bool,
    /// Until when a streaming list is not asked for.
    streaming_refused_until: Option<Time>,
    /// Streaming lists in a row that ended before their end.
    streaming_attempts: u32,
    /// Watches in a row that ended almost at once.
    short_watches: u32,
    /// When internal errors inside watches began.
    internal_errors_since: Option<Time>,
    /// When a watch last expired, and from which version.
    expired: Option<(Time, ResourceVersion)>,
    /// The credentials were read again and nothing has been accepted since.
    credentials_refreshed: bool,
}

impl Reflector {
    /// A reflector that waits for [`Input::Start`]. The same seed gives the same timeouts and waits.
    pub fn new(config: ReflectorConfig, seed: u64) -> Self {
        let backoff = Backoff::new(config.backoff.clone(), seed);
        Self {
            state: State::Idle(Next::Sync),
            known: Known {
                config,
                backoff,
                random: fastrand::Rng::with_seed(seed),
                last_version: ResourceVersion::UNSET,
                version_unavailable: false,
                distrust_versions: false,
                paginated: false,
                synced: false,
                streaming_refused_until: None,
                streaming_attempts: 0,
                short_watches: 0,
                internal_errors_since: None,
                expired: None,
                credentials_refreshed: false,
            },
            outputs: VecDeque::new(),
        }
    }

    /// A reflector for a cache that has a content already. [`Input::Start`] asks first how new the server's state is: a
    /// watch from a version that it has not reached (a restored backup, another cluster) would be silent. Then it watches,
    /// and a watch that is served confirms the content; or it lists, and what differs is a change.
    pub fn resuming(config: ReflectorConfig, seed: u64, from: Resume) -> Self {
        let (next, last_version) = match from {
            Resume::Watch(version) if !version.is_unset_or_zero() => (Next::Watch, version),
            Resume::Watch(version) | Resume::List(version) => (Next::Sync, version),
        };
        let mut reflector = Self::new(config, seed);
        reflector.state = State::Idle(next);
        reflector.known.last_version = last_version;
        reflector
    }

    /// Takes one input. An input that does not fit the state, as one of a request that was cancelled meanwhile, is
    /// ignored.
    pub fn handle(&mut self, now: Time, input: Input) {
        match (&self.state, input) {
            (State::Stopped, _) => {}
            (_, Input::Stop) => self.stop(),
            (State::Idle(next), Input::Start) => self.resume(now, *next),
            (State::Idle(_), _) => {}
            (_, Input::Tick) => self.tick(now),
            (State::Waiting { next, .. }, Input::Wake) => self.resume(now, *next),
            (State::Waiting { .. }, _) => {}
            // A request under way has its own time.
            (_, Input::Start | Input::Wake) => {}
            (State::Listing(_), input) => self.listing(now, input),
            (State::Streaming(_), input) => self.streaming(now, input),
            (State::Watching(_), input) => self.watching(now, input),
            (State::Probing { .. }, input) => self.probing(now, input),
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Reflector::handle`] with [`Input::Tick`] if nothing happens before.
    pub fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Idle(_) | State::Stopped => None,
            State::Listing(listing) => Some(listing.deadline),
            State::Streaming(streaming) => Some(streaming.deadline),
            State::Watching(watching) => Some(watching.deadline(self.known.synced)),
            State::Probing { deadline } => Some(*deadline),
            State::Waiting { until, .. } => Some(*until),
        }
    }

    /// Whether an object that the cache has with the same resourceVersion may be put in as [`Input::Unchanged`].
    pub fn trusts_versions(&self) -> bool {
        match &self.state {
            State::Listing(listing) => listing.trust_versions,
            State::Streaming(streaming) => streaming.trust_versions,
            _ => true,
        }
    }

    /// The newest version seen.
    pub fn last_version(&self) -> &ResourceVersion {
        &self.known.last_version
    }

    /// Until when no streaming list is asked for, because the last one was refused or did not come to its end.
    pub fn streaming_refused_until(&self) -> Option<Time> {
        self.known.streaming_refused_until
    }

    fn tick(&mut self, now: Time) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match &self.state {
            State::Idle(_) | State::Stopped => {}
            State::Waiting { next, .. } => self.resume(now, *next),
            State::Listing(_) => self.listing_timed_out(now),
            State::Streaming(_) => self.streaming_timed_out(now),
            State::Watching(_) => self.watching_timed_out(now),
            State::Probing { .. } => {
                self.output(Output::Cancel);
                let limit = self.known.config.response_timeout;
                self.retry(now, Cause::Silent(limit), None, Next::Watch);
            }
        }
    }

    fn resume(&mut self, now: Time, next: Next) {
        match next {
            Next::Sync => self.sync(now),
            Next::Watch if self.known.synced => self.watch(now),
            Next::Watch => {
                self.output(Output::Status(Status::Connecting));
                self.probe(now);
            }
        }
    }

    /// Fetches the whole content, as a streaming list where that is wanted and possible.
    fn sync(&mut self, now: Time) {
        let known = &self.known;
        let refused = known.streaming_refused_until.is_some_and(|until| now < until);
        if known.config.streaming_list == StreamingList::Preferred && !refused {
            self.stream(now);
        } else {
            self.list(now);
        }
    }

    /// Learns how new the server's state is, after a watch fell silent or before the first one: if it is older than ours,
    /// the watch stands at a version that the server has not reached, and would be silent for ever.
    fn probe(&mut self, now: Time) {
        let probe = ListRequest { limit: Some(1), ..ListRequest::default() };
        self.output(Output::Send(Request::List(probe)));
        self.state = State::Probing { deadline: now + self.known.config.response_timeout };
    }

    fn probing(&mut self, now: Time, input: Input) {
        match input {
            Input::ListEnd(meta) => {
                if meta.resource_version.is_older_than(&self.known.last_version) {
                    self.known.version_unavailable = true;
                    self.known.distrust_versions = true;
                    self.sync(now);
                } else {
                    self.watch(now);
                }
            }
            Input::Refused(status) => {
                // Whoever cannot be asked like that is listed in the way that is known to work.
                let asks_again = self.known.synced || watching::is_passing(&status);
                let next = if asks_again { Next::Watch } else { Next::Sync };
                self.refused(now, status, next);
            }
            Input::Unreachable(reason) => self.retry(now, Cause::Unreachable(reason), None, Next::Watch),
            Input::End => self.retry(now, Cause::Broken("the list is incomplete".into()), None, Next::Watch),
            Input::Broken(reason) => self.retry(now, Cause::Broken(reason), None, Next::Watch),
            Input::Undecodable(reason) => self.retry(now, Cause::Undecodable(reason), None, Next::Watch),
            _ => {}
        }
    }

    /// A request was answered with an error that has no meaning of its own for that request.
    fn refused(&mut self, now: Time, status: ApiStatus, next: Next) {
        if status.is_unauthorized() && !self.known.credentials_refreshed {
            // Tokens expire: what is there by now may be good (W15).
            self.known.credentials_refreshed = true;
            self.output(Output::Report(Report::Disconnected(Cause::Refused(status))));
            self.output(Output::RefreshCredentials);
            return self.resume(now, next);
        }
        if status.is_unauthorized() || status.is_forbidden() || status.is_not_found() {
            // By the time it is allowed again, anything may have happened.
            return self.deny(now, status);
        }
        let asked = status.retry_after;
        self.retry(now, Cause::Refused(status), asked, next);
    }

    fn deny(&mut self, now: Time, status: ApiStatus) {
        self.output(Output::Report(Report::Disconnected(Cause::Refused(status.clone()))));
        self.output(Output::Status(Status::Denied { status }));
        let retry = self.known.config.denied_retry;
        let until = now + self.known.backoff.stretched(retry);
        // The next 401 is worth another look at the credentials: a denial may last for days.
        self.known.credentials_refreshed = false;
        self.state = State::Waiting { until, next: Next::Sync };
    }

    /// Something failed: say so, wait, go on with `next`.
    fn retry(&mut self, now: Time, cause: Cause, asked: Option<Duration>, next: Next) {
        let wait = self.known.backoff.after_failure(now, asked);
        let attempt = self.known.backoff.failures();
        self.output(Output::Report(Report::Disconnected(cause.clone())));
        self.output(Output::Status(Status::Retrying { cause, attempt, wait }));
        self.state = State::Waiting { until: now + wait, next };
    }

    fn accepted(&mut self) {
        self.known.credentials_refreshed = false;
    }

    /// The staged content is complete.
    fn commit(&mut self, resource_version: ResourceVersion, trust_versions: bool) {
        let seen = std::mem::replace(&mut self.known.last_version, resource_version.clone());
        if !trust_versions && resource_version.is_older_than(&seen) {
            let now = resource_version.clone();
            self.output(Output::Report(Report::ServerRestored { seen, now }));
        }
        self.known.version_unavailable = false;
        self.known.distrust_versions = false;
        self.known.synced = true;
        self.known.streaming_attempts = 0;
        self.store(StoreOperation::Commit { resource_version });
    }

    fn stop(&mut self) {
        self.discard();
        self.output(Output::Cancel);
        self.output(Output::Status(Status::Stopped));
        self.state = State::Stopped;
    }

    /// Nothing of a dead list may be left.
    fn discard(&mut self) {
        if matches!(self.state, State::Listing(_) | State::Streaming(_)) {
            self.store(StoreOperation::Discard);
        }
    }

    fn store(&mut self, operation: StoreOperation) {
        self.output(Output::Store(operation));
    }

    fn output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }
}

impl Known {
    /// From where to ask for the whole content again: never older than what was seen (L2), unless the server cannot.
    fn version_to_list(&self) -> ResourceVersion {
        if self.version_unavailable { ResourceVersion::UNSET } else { self.last_version.clone() }
    }

    /// Follows what a watch has told. Never back: an event out of order does not make the past the present.
    fn advance(&mut self, version: &ResourceVersion) {
        if !version.is_unset() && !version.is_older_than(&self.last_version) {
            self.last_version = version.clone();
        }
    }
}
