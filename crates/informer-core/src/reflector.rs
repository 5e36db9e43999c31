//! Lists a collection, watches it, and recovers: the protocol between a server and the cache.
//!
//! It is a state machine without I/O and without a clock. Its driver sends the requests that it asks for, one at a time. The
//! driver reports the results and the time, and applies the cache operations that the reflector returns:
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
//! The rules are those of client-go's reflector (contract groups L, W and S), without its known gaps.

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

/// The state machine, one per collection: a resource, a scope and a selector.
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

/// An input: the closed list of everything that a reflector reacts to.
#[derive(Debug, Clone)]
pub enum Input {
    /// Starts.
    Start,
    /// The call has a new time; deadlines may have passed.
    Tick,
    /// The reason for a wait may be over: try at once. A running request continues.
    Wake,
    /// The server answers again: try at once what did not reach it. A request that was answered, with a refusal for example, keeps
    /// its pace.
    Released,
    /// The response is not being read, because the user's code does not return. Drop it, and continue at [`Input::Wake`].
    Stalled,
    /// Content may have changed at unchanged versions. While watching, one list follows at a random time within
    /// [`ReflectorConfig::relist_spread`], so that a factory's informers do not list at the same time. If the list fails, the
    /// watch resumes, and the list is tried again later.
    Relist(Why),
    /// Stops for good.
    Stop,
    /// The request could not be sent, or got no response.
    Unreachable(String),
    /// The response is an error.
    Refused(ApiStatus),
    /// The response is a success; its body follows.
    Accepted,
    /// The list's own metadata, if it precedes the items.
    ListStart(ListMeta),
    /// A list item, or an event's object, that is new to the cache.
    Item(Arc<Object>),
    /// A list item, or an initial object of a streaming list, whose resourceVersion the cache already has.
    Unchanged(ObjectKey),
    /// A list item that the reader leaves out, because it is not in the share.
    Outside,
    /// A list item, or the object of an event with a new state, that is undecodable, or of another kind.
    Unreadable {
        /// The object, if its key decodes.
        key: Option<ObjectKey>,
        /// The reason.
        reason: String,
    },
    /// The list, or the page, is complete.
    ListEnd(ListMeta),
    /// An event of an object.
    Event(EventKind, Arc<Object>),
    /// An event after which the cache does not have the object at this version, without a last state: a deletion that is
    /// undecodable except for its key and version, or any event of an object that is not in the share.
    Gone(EventKind, ObjectKey, ResourceVersion),
    /// A bookmark event.
    Bookmark(Bookmark),
    /// An error event.
    ErrorEvent(ApiStatus),
    /// The response ended regularly.
    End,
    /// The response broke off.
    Broken(String),
    /// The rest of the response is undecodable, or an event whose object is unknown is lost.
    Undecodable(String),
}

/// Why a list follows although the watch works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The server's version, a definition or a schema has changed.
    SchemaChanged,
    /// An object differed at two lists in a row, without a write.
    Unsteady,
    /// The resource is served as another version or kind.
    ServedAs,
}

/// The proof that an equal resourceVersion gives of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust<'a> {
    /// It is unchanged if the watch has come as far as its version: events report writes only. At a later version it is an
    /// object that the cache keeps from before a backup was restored.
    Version(&'a ResourceVersion),
    /// It was not written. Its content may have changed nevertheless, and is compared (contract L14).
    Content,
    /// It proves nothing: the server was restored from a backup.
    Nothing,
}

/// The types of events that concern an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The object was added.
    Added,
    /// The object has changed.
    Modified,
    /// The object was deleted or deselected; the event holds its last state.
    Deleted,
}

/// A command to the driver. The driver carries out outputs in order.
#[derive(Debug)]
pub enum Output {
    /// Send this request. It is the only one: cancel a running one.
    Send(Request),
    /// Cancel the running request.
    Cancel,
    /// Refresh the credentials before the next request.
    RefreshCredentials,
    /// Change the cache.
    Store(StoreOperation),
    /// The status has changed.
    Status(Status),
    /// A report.
    Report(Report),
}

/// An operation on the cache.
#[derive(Debug)]
pub enum StoreOperation {
    /// Begin to stage a list, and discard the list that was staged before.
    BeginReplace {
        /// Whether an equal resourceVersion means an equal state. It does not after a backup was restored.
        trust_versions: bool,
        /// Whether the objects are written in another form than those of the list before, because their schema or their served
        /// version has changed: other content at an equal version is then a change, however often it came before.
        expects_revisions: bool,
    },
    /// The list has the version of this key that the cache has, or an undecodable one.
    Keep(ObjectKey),
    /// The list has this object.
    Stage(Arc<Object>),
    /// The staged list no longer has this object; this is its last state.
    Unstage(Arc<Object>),
    /// The staged list no longer has this key, since this version.
    UnstageKey(ObjectKey, ResourceVersion),
    /// Replace the cache's objects by the staged list in one step.
    Commit {
        /// The version of the list.
        resource_version: ResourceVersion,
    },
    /// Discard the staged list.
    Discard,
    /// One object is new or changed.
    Upsert(Arc<Object>),
    /// One object was deleted; this is its last state.
    Delete(Arc<Object>),
    /// One object was deleted at this version; its last state is the one in the cache.
    DeleteKey(ObjectKey, ResourceVersion),
    /// The cache reflects this version.
    Bookmark(ResourceVersion),
    /// The server has confirmed the loaded objects.
    Confirm,
}

/// From where a reflector resumes if its cache was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// The cache has all of the server's state at this version: watch from there.
    Watch(ResourceVersion),
    /// The cache has reached this version, but some objects were undecodable: list and compare.
    List(ResourceVersion),
}

impl Resume {
    /// Resumes from objects that reflect this version, some of which may have been undecodable. `None` if there is
    /// nothing to resume from.
    pub fn from_saved(version: &ResourceVersion, has_unread: bool) -> Option<Self> {
        let version = Some(version.clone()).filter(|version| !version.is_unset_or_zero())?;
        Some(if has_unread { Self::List(version) } else { Self::Watch(version) })
    }
}

#[derive(Debug)]
enum State {
    /// The start continues with this.
    Idle(Next),
    Listing(Listing),
    Streaming(Streaming),
    Watching(Watching),
    /// A list of one object runs, only to find out which version the server has reached.
    Probing {
        deadline: Time,
    },
    Waiting {
        until: Time,
        next: Next,
        /// Whether the request was not answered, or not to its end.
        unreached: bool,
    },
    /// [`Input::Wake`] continues with this; a deadline does not.
    Stalled(Next),
    Stopped,
}

/// The step that follows a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A list: a LIST or a streaming list, whichever is due by then.
    Sync,
    /// The watch from the last version; after a load that no server has confirmed, a probe of the server's version
    /// comes first.
    Watch,
}

/// The state that outlives each request.
#[derive(Debug)]
struct Known {
    config: ReflectorConfig,
    backoff: Backoff,
    random: fastrand::Rng,
    /// The newest version seen: of the list, then of each event and bookmark.
    last_version: ResourceVersion,
    /// Whether the server cannot list at `last_version`, so that the most recent state is requested instead.
    version_unavailable: bool,
    /// Whether the last list was consistent and yet older than what was seen: equal versions prove nothing now.
    distrust_versions: bool,
    /// Whether the initial list came in pages. Later lists then ask for pages too, since that bypasses no watch cache.
    paginated: bool,
    /// Whether a list was committed, or a load confirmed.
    synced: bool,
    /// No streaming list is requested before this time.
    streaming_refused_until: Option<Time>,
    /// The number of streaming lists in a row that broke before the end of their initial events.
    streaming_attempts: u32,
    /// The number of watches in a row that ended almost at once.
    short_watches: u32,
    /// When internal errors inside watches began.
    internal_errors_since: Option<Time>,
    /// When a watch last expired, and from which version.
    expired: Option<(Time, ResourceVersion)>,
    /// Whether the credentials were refreshed, and no request was accepted since.
    credentials_refreshed: bool,
    /// When to list although the watch works, and why.
    relist_at: Option<(Time, Why)>,
    /// Set while the running list is such an extra list, without which the watch stays current.
    relists: Option<Why>,
    /// Whether the schema or the served version has changed since the last complete list began.
    expects_revisions: bool,
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
                relist_at: None,
                relists: None,
                expects_revisions: false,
            },
            outputs: VecDeque::new(),
        }
    }

    /// A reflector for a loaded cache. [`Input::Start`] first probes the server's version, because a watch from a version
    /// that the server has not reached (a restored backup, another cluster) would be silent. If the server has reached the
    /// version, the reflector watches, and a watch that is served confirms the loaded objects. Otherwise it lists, and
    /// differences are changes.
    pub fn resuming(config: ReflectorConfig, seed: u64, from: Resume) -> Self {
        let (next, last_version) = match from {
            Resume::Watch(version) if !version.is_unset_or_zero() => (Next::Watch, version),
            // A watch from an unset version or from 0 begins with the server's state, not with the changes since a version.
            Resume::Watch(version) | Resume::List(version) => (Next::Sync, version),
        };
        let mut reflector = Self::new(config, seed);
        reflector.state = State::Idle(next);
        reflector.known.last_version = last_version;
        reflector
    }

    /// Handles one input. An input that does not fit the state, such as one of a cancelled request, is ignored.
    pub fn handle(&mut self, now: Time, input: Input) {
        match (&self.state, input) {
            (State::Stopped, _) => {}
            (_, Input::Stop) => self.stop(),
            // In every state: a list that becomes due during a request or a wait is not forgotten.
            (_, Input::Relist(why)) => self.relist_soon(now, why),
            (State::Idle(next), Input::Start) => self.resume(now, *next),
            // Before the start nothing was requested, so nothing can have been answered.
            (State::Idle(_), _) => {}
            (_, Input::Tick) => self.tick(now),
            (State::Waiting { next, .. }, Input::Wake)
            | (State::Waiting { next, unreached: true, .. }, Input::Released) => self.resume(now, *next),
            (State::Stalled(next), Input::Wake) => self.resume(now, *next),
            // Inputs of a cancelled response, and a stall while nothing is read.
            (State::Waiting { .. } | State::Stalled(_), _) => {}
            (_, Input::Stalled) => self.stalled(),
            // A running request has its own deadline.
            (_, Input::Start | Input::Wake | Input::Released) => {}
            (State::Listing(_), input) => self.listing(now, input),
            (State::Streaming(_), input) => self.streaming(now, input),
            (State::Watching(_), input) => self.watching(now, input),
            (State::Probing { .. }, input) => self.probing(now, input),
        }
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Reflector::handle`] with [`Input::Tick`] unless something happens before.
    pub fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Idle(_) | State::Stalled(_) | State::Stopped => None,
            State::Listing(listing) => Some(listing.deadline),
            State::Streaming(streaming) => Some(streaming.deadline()),
            State::Watching(watching) => {
                let deadline = watching.deadline(self.known.synced);
                // An extra list waits until the watch works. Before that, the watch may lead to a list anyway.
                let relist_at = self.known.relist_at.filter(|_| self.known.synced && watching.is_accepted());
                Some(relist_at.map_or(deadline, |(relist_at, _)| deadline.min(relist_at)))
            }
            State::Probing { deadline } => Some(*deadline),
            State::Waiting { until, .. } => Some(*until),
        }
    }

    /// How far an equal resourceVersion can be trusted now. It decides whether an object that the cache has at the same
    /// version may be passed as [`Input::Unchanged`].
    pub fn trusts_versions(&self) -> Trust<'_> {
        match &self.state {
            State::Listing(Listing { trust_versions: false, .. })
            | State::Streaming(Streaming { trust_versions: false, .. }) => Trust::Nothing,
            State::Listing(_) | State::Streaming(_) => Trust::Content,
            // Events report writes, so an equal version up to the last one seen is an equal object.
            _ => Trust::Version(&self.known.last_version),
        }
    }

    /// The newest version seen.
    pub fn last_version(&self) -> &ResourceVersion {
        &self.known.last_version
    }

    /// The time before which no streaming list is requested, because the last one was refused or did not complete.
    pub fn streaming_refused_until(&self) -> Option<Time> {
        self.known.streaming_refused_until
    }

    fn tick(&mut self, now: Time) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match &self.state {
            State::Idle(_) | State::Stalled(_) | State::Stopped => {}
            State::Waiting { next, .. } => self.resume(now, *next),
            State::Listing(_) => self.listing_timed_out(now),
            State::Streaming(_) => self.streaming_timed_out(now),
            State::Watching(watching) => {
                let due = self.known.relist_at.filter(|(relist_at, _)| now >= *relist_at);
                if let Some((_, why)) = due.filter(|_| self.known.synced && watching.is_accepted()) {
                    self.relist(now, why);
                } else {
                    self.watching_timed_out(now);
                }
            }
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

    /// Lists everything, by a streaming list if that is configured and possible.
    fn sync(&mut self, now: Time) {
        self.known.relists = None;
        let known = &self.known;
        let refused = known.streaming_refused_until.is_some_and(|until| now < until);
        if known.config.streaming_list == StreamingList::Preferred && !refused {
            self.stream(now);
        } else {
            self.list(now);
        }
    }

    fn relist_soon(&mut self, now: Time, why: Why) {
        self.known.expects_revisions |= why != Why::Unsteady;
        // Spread at random: a changed schema reaches all informers of a cluster at once.
        let wait = self.known.config.relist_spread.mul_f64(self.known.random.f64());
        // A list that is due already finds the later cause too, and must not be put off by it.
        let (_, due) = self.known.relist_at.get_or_insert((now + wait, why));
        if *due == Why::Unsteady {
            *due = why;
        }
    }

    /// Lists although the watch works, because the watch does not show what the list is to find.
    fn relist(&mut self, now: Time, why: Why) {
        let cause = match why {
            Why::SchemaChanged => Cause::SchemaChanged,
            Why::Unsteady => Cause::Unsteady,
            Why::ServedAs => Cause::ServedAs,
        };
        self.output(Output::Cancel);
        // It ends a working watch, so metrics count it beside the other causes of a disconnect.
        self.output(Output::Report(Report::Disconnected(cause)));
        self.known.relists = Some(why);
        self.list(now);
    }

    /// Probes the server's version, after a watch fell silent or before the first one. If it is older than the last version
    /// seen, a watch from that version would be silent for ever.
    fn probe(&mut self, now: Time) {
        // One item is enough: only the version of the list counts.
        let probe = ListRequest { limit: Some(1), ..ListRequest::default() };
        self.output(Output::Send(Request::List(probe)));
        self.state = State::Probing { deadline: now + self.known.config.response_timeout };
    }

    fn probing(&mut self, now: Time, input: Input) {
        match input {
            Input::ListEnd(meta) => {
                if meta.resource_version.is_older_than(&self.known.last_version) {
                    // Most likely the server was restored from a backup. It cannot list at the last version, and gives
                    // versions out a second time.
                    self.known.version_unavailable = true;
                    self.known.distrust_versions = true;
                    self.sync(now);
                } else {
                    self.watch(now);
                }
            }
            Input::Refused(status) => {
                // If the server refuses the probe, a full list follows, which is known to work.
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

    /// An error response without a special meaning for that request.
    fn refused(&mut self, now: Time, status: ApiStatus, next: Next) {
        if status.is_unauthorized() && !self.known.credentials_refreshed {
            // The token may have expired: fresh credentials may be accepted (W15).
            self.known.credentials_refreshed = true;
            self.output(Output::Report(Report::Disconnected(Cause::Refused(status))));
            self.output(Output::RefreshCredentials);
            return self.resume(now, next);
        }
        if status.is_unauthorized() || status.is_forbidden() || status.is_not_found() {
            // Any number of changes may happen before access is granted again, so a list comes next.
            return self.deny(now, status);
        }
        // A server under load knows better than the backoff when to come back.
        let asked = status.retry_after;
        self.retry(now, Cause::Refused(status), asked, next);
    }

    /// The user's code is stuck: drops the response. A watch later resumes from the last version, and a list starts over.
    fn stalled(&mut self) {
        let next = match &self.state {
            State::Watching(_) | State::Probing { .. } => Next::Watch,
            // A partly staged list starts over, because the rest of its response is dropped.
            _ => Next::Sync,
        };
        self.discard();
        self.output(Output::Cancel);
        self.output(Output::Report(Report::Disconnected(Cause::Stalled)));
        self.output(Output::Status(Status::Stalled));
        self.state = State::Stalled(next);
    }

    fn deny(&mut self, now: Time, status: ApiStatus) {
        self.output(Output::Report(Report::Disconnected(Cause::Refused(status.clone()))));
        self.output(Output::Status(Status::Denied { status }));
        let retry = self.known.config.denied_retry;
        // Not by the backoff: a denial is no failure of the server, and may end at any time.
        let until = now + self.known.backoff.stretched(retry);
        // A denial may last for days, so the next 401 refreshes the credentials again.
        self.known.credentials_refreshed = false;
        self.state = State::Waiting { until, next: Next::Sync, unreached: false };
    }

    /// After a failure: report it, wait, continue with `next`.
    fn retry(&mut self, now: Time, cause: Cause, asked: Option<Duration>, next: Next) {
        let wait = self.known.backoff.after_failure(now, asked);
        let attempt = self.known.backoff.failures();
        let unreached = matches!(cause, Cause::Unreachable(_) | Cause::Silent(_) | Cause::Broken(_));
        self.output(Output::Report(Report::Disconnected(cause.clone())));
        self.output(Output::Status(Status::Retrying { cause, attempt, wait }));
        self.state = State::Waiting { until: now + wait, next, unreached };
    }

    fn accepted(&mut self) {
        self.known.credentials_refreshed = false;
    }

    fn begin_replace(&mut self, trust_versions: bool) {
        let expects_revisions = self.known.expects_revisions;
        self.store(StoreOperation::BeginReplace { trust_versions, expects_revisions });
    }

    /// The staged list is complete.
    fn commit(&mut self, resource_version: ResourceVersion, trust_versions: bool) {
        // Unlike `advance`, a list may move the version back: after a restored backup.
        let seen = std::mem::replace(&mut self.known.last_version, resource_version.clone());
        if !trust_versions && resource_version.is_older_than(&seen) {
            let now = resource_version.clone();
            self.output(Output::Report(Report::ServerRestored { seen, now }));
        }
        self.known.version_unavailable = false;
        self.known.distrust_versions = false;
        self.known.synced = true;
        self.known.relists = None;
        // The schema may have changed once more while the list ran.
        self.known.expects_revisions = self.known.relist_at.is_some_and(|(_, why)| why != Why::Unsteady);
        self.known.streaming_attempts = 0;
        self.store(StoreOperation::Commit { resource_version });
    }

    fn stop(&mut self) {
        self.discard();
        self.output(Output::Cancel);
        self.output(Output::Status(Status::Stopped));
        self.state = State::Stopped;
    }

    /// Discards the staged part of a list that does not complete.
    fn discard(&mut self) {
        // Otherwise nothing is staged, and the store would get an operation for nothing.
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
    /// The version for a re-list: never older than what was seen (L2), unless the server cannot list at that version.
    fn version_to_list(&self) -> ResourceVersion {
        if self.version_unavailable { ResourceVersion::UNSET } else { self.last_version.clone() }
    }

    /// Moves the last version forward, never back: a watch must not resume from an event that arrived out of order.
    fn advance(&mut self, version: &ResourceVersion) {
        if !version.is_unset() && !version.is_older_than(&self.last_version) {
            self.last_version = version.clone();
        }
    }
}
