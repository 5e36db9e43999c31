//! A run as data: its setup, and its steps.
//!
//! A run depends on its plan alone. Every step has a meaning in any situation, so a plan without some of its steps is
//! a plan. That is how a failing plan is shrunk.

mod draw;

use std::fmt;

use crate::truth::Key;

/// The plan of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The seed of the plan.
    pub seed: u64,
    /// The setup.
    pub setup: Setup,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// The setup of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The informer has a source for each namespace instead of one for all.
    pub by_namespace: bool,
    /// The initial list may read any state (`resourceVersion=0`).
    pub first_list_any: bool,
    /// The informer prefers streaming lists.
    pub streaming: bool,
    /// After an internal error inside a watch, the informer retries the watch for a while before it lists.
    pub internal_error_retry: bool,
    /// Bytes arrive only when a step says so.
    pub by_hand: bool,
    /// The most bytes that arrive at once without a step.
    pub chunk: u16,
    /// The storage packs objects with a dictionary. Otherwise it keeps their bytes.
    pub packed: bool,
    /// User code runs and returns only when a step says so.
    pub code_by_hand: bool,
    /// The most operations that wait for user code.
    pub queued_operations: u16,
    /// The most changes that a slice of a dispatch puts into mailboxes, counted once for each mailbox.
    pub changes_at_once: u16,
    /// The transform.
    pub transform: Transform,
    /// An informer that stops does not wait for user code.
    pub stops_at_once: bool,
    /// The server.
    pub server: ServerSetup,
    /// The subscriptions that exist before the start.
    pub readers: Vec<Reading>,
    /// The number of workers of the controller; without any there is no controller.
    pub workers: u8,
    /// A second informer has the same server.
    pub two: bool,
    /// The informers follow their resource to other versions.
    pub follows: bool,
}

/// A transform. The value of an object decides what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transform {
    /// It drops some objects.
    pub drops_some: bool,
    /// It fails for some objects.
    pub fails_for_some: bool,
    /// It changes the other objects.
    pub changes: bool,
}

/// The server of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSetup {
    /// The version before the first change.
    pub first_version: u8,
    /// The number of objects when the informer starts.
    pub objects: u8,
    /// It supports streaming lists. Otherwise it refuses them (422).
    pub streams_lists: bool,
    /// It is so old that it answers a streaming list with a plain watch.
    pub ignores_initial_events: bool,
    /// It applies `limit` at `resourceVersion=0`, like a server without a watch cache.
    pub pages: bool,
    /// It sends bookmarks even at an unchanged version.
    pub idle_bookmarks: bool,
    /// The bookmark at the end of the initial events comes late, after further changes.
    pub late_end: bool,
    /// A list that does not request the most recent state is this many versions old.
    pub lag: u8,
    /// Which of the three forms of "Too large resource version" it uses.
    pub too_large_form: u8,
    /// Its lists are those of a custom resource: each item has its kind, and the list's metadata follows the items.
    pub custom: bool,
    /// It answers in protobuf. Its refusals are JSON.
    pub protobuf: bool,
    /// The informer selects by a label. An object enters or leaves the selection when its label changes.
    pub selects: bool,
    /// Its versions are not numbers. It answers a version that it never gave with 410.
    pub opaque: bool,
    /// It takes seconds for probes, discovery and the index of schemas.
    pub slow: bool,
}

/// How a subscription joins and reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The delivery.
    pub mode: Mode,
    /// It receives a re-creation as a deletion and an addition.
    pub split: bool,
    /// It takes this many notices after each step. Zero: it reads only when a step says so.
    pub pace: u8,
    /// It takes its snapshot and joins in two steps, with changes in between.
    pub slow_to_join: bool,
    /// It has a filter. The value of an object decides whether the filter matches it.
    pub filters: bool,
}

/// The delivery of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The latest state of each key.
    Latest,
    /// Every change. A full mailbox coalesces.
    Merged(u16),
    /// Every change. A full mailbox drops the oldest.
    Dropped(u16),
}

/// One step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An object is created or changed.
    Put(Key),
    /// An object is deleted, if it exists.
    Delete(Key),
    /// An object is deleted and created again.
    Recreate(Key),
    /// Another resource changes, so the server's version grows.
    Elsewhere(u8),
    /// The server forgets its history up to now.
    Compact,
    /// The server makes a backup, and its version grows.
    Backup,
    /// The server restarts with the state of the last backup. All connections break.
    Restore,
    /// The server restarts. All connections break.
    ServerRestart,
    /// Open watches get a bookmark.
    Bookmark,
    /// The next requests, this many, meet a fault.
    Fault(Fault, u8),
    /// The server denies requests from now on: those of one namespace, or all.
    Deny(Denial, Option<u8>),
    /// The server denies no request any more.
    Allow,
    /// The next event, or list item, is damaged.
    Spoil(Spoil),
    /// A watch sends something wrong.
    Lie(u8, Lie),
    /// A watch sends an error event.
    Error(u8, Error),
    /// A response ends cleanly, wherever it is.
    End(u8),
    /// A connection breaks.
    Cut(u8),
    /// A connection is dead, and neither side notices.
    Mute(u8),
    /// Bytes of a connection arrive only when a step says so.
    Stall(u8),
    /// Up to this many bytes of a response arrive.
    Deliver(u8, u16),
    /// Bytes of a connection arrive without a step.
    Flow(u8),
    /// Time passes, in milliseconds.
    Pass(u32),
    /// A subscription joins.
    Join(Reading),
    /// A subscription leaves.
    Leave(u8),
    /// A subscription takes notices, or takes its next step to join.
    Read(u8, u8),
    /// A subscription asks for a resync.
    Resync(u8),
    /// A caller asks for an immediate retry.
    Wake,
    /// An object changes at an unchanged version, as after a change of its definition.
    Revise(Key),
    /// The definition changes: objects may have changed at unchanged versions, and the watches end.
    SchemaChanged,
    /// From now on steps act on the other informer.
    Turn,
    /// A caller asks the engine how far a source has come.
    Ask,
    /// The resource is served as another version only, which ends the watches.
    Serve,
    /// The definition of the resource is deleted.
    Undefine,
    /// The resource is defined again.
    Define,
    /// User code runs. The next such step returns its result.
    Code,
    /// The cache is saved.
    Save,
    /// The informer stops, and another one starts.
    Restart(Start),
    /// A namespace is added.
    AddNamespace(u8),
    /// A namespace is removed.
    RemoveNamespace(u8),
    /// A reconciliation ends.
    Reconciled(u8, Ending),
    /// The controller starts no reconciliation, as without leadership.
    Pause,
    /// The controller goes on.
    Resume,
    /// A caller takes a snapshot and keeps it.
    Snapshot,
    /// A caller adds an index, or drops it.
    Index,
    /// No watch sends the next change. No informer could notice that, so no drawn plan has this step. Tests use it to
    /// show that the oracle finds a wrong cache.
    Forget,
}

/// How a reconciliation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Well.
    Done,
    /// Well, and again after a while.
    Again,
    /// Well, after it has created or changed an object.
    Writes(Key),
    /// Well, after it has deleted an object.
    Deletes(Key),
    /// Badly, after it has created or changed an object.
    WritesAndFails(Key),
    /// Badly, after a request without an answer.
    Unanswered {
        /// The object.
        key: Key,
        /// Whether it was to be deleted, or else created or changed.
        deletes: bool,
        /// Whether the server has carried it out.
        arrives: bool,
    },
    /// Badly.
    Fails,
    /// It is cut off after it has created or changed an object.
    Interrupted(Key),
}

/// The start of an informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Nothing.
    Fresh,
    /// The cache that was saved last, if any (contract P).
    Saved,
}

/// The fault that a request meets in place of a right answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is refused.
    Unreachable,
    /// No answer comes.
    Silent,
    /// A refusal with this code. It may ask for a wait, in the header or in the body.
    Refused {
        /// The HTTP code.
        code: u16,
        /// The requested wait in seconds; 0 for none.
        retry_after: u8,
    },
    /// "Too large resource version", in one of three forms.
    TooLarge,
    /// An error page of a proxy.
    Page,
    /// A success whose body is no list, such as a Status, a Table or text.
    Nonsense(u8),
    /// A list that is this many versions older than requested.
    Stale(u8),
    /// A streaming list without the bookmark at the end of its initial events.
    NoEnd,
}

/// How the server denies requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// 401
    Unauthorized,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 503
    Unavailable,
    /// The connection is refused.
    Down,
}

/// How an event or a list item is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoil {
    /// Its resourceVersion is a number instead of a text. Its key is decodable.
    Version,
    /// It is of another kind.
    Kind,
    /// It has no name.
    Nameless,
    /// Its event is of an unknown type.
    Type,
    /// Half of it is missing.
    Half,
}

/// Something wrong that a watch sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The last event once more.
    Twice,
    /// A former event of this key, counted back from the last one.
    Old(Key, u8),
    /// A bookmark this many versions back.
    OldBookmark(u8),
}

/// The error events of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// 410 Expired.
    Expired,
    /// 410 Gone.
    Gone,
    /// 500 InternalError.
    Internal,
    /// 500 StoreReadError.
    StoreRead,
    /// 429, asking for a wait.
    TooManyRequests,
    /// 504 Timeout.
    Timeout,
    /// An object that is no Status.
    Nonsense,
}

impl fmt::Display for Plan {
    /// One line for the setup, one for each step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        writeln!(f, "{:?}", self.setup)?;
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f, "{index:4} {step:?}")?;
        }
        Ok(())
    }
}
