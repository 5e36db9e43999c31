//! A run as data: how everything is set up, and what happens, step by step.
//!
//! A plan is all that a run depends on, and every step means something in any situation. So a plan stays a plan when steps
//! are taken out, which is how a failing one is shrunk.

mod draw;

use std::fmt;

use crate::truth::Key;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Where it was drawn from.
    pub seed: u64,
    /// What holds from the start.
    pub setup: Setup,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// What holds from the start of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// One list and watch per namespace instead of one for all.
    pub by_namespace: bool,
    /// The first list may read any state (`resourceVersion=0`).
    pub first_list_any: bool,
    /// The informer prefers streaming lists.
    pub streaming: bool,
    /// Internal errors inside a watch are retried without a list for a while.
    pub internal_error_retry: bool,
    /// Connections pass bytes only when a step says so.
    pub by_hand: bool,
    /// How many bytes arrive at once where they flow by themselves.
    pub chunk: u16,
    /// The cache keeps its objects packed, with a dictionary; otherwise as they came.
    pub packed: bool,
    /// User code runs, and returns, only when a step says so.
    pub code_by_hand: bool,
    /// So many operations wait for user code at most.
    pub queued_operations: u16,
    /// So many changes go into mailboxes in a row, counted once for each.
    pub changes_at_once: u16,
    /// What the user's code makes of each object before it is kept.
    pub transform: Transform,
    /// An informer that stops does not wait for user code that runs.
    pub stops_at_once: bool,
    /// The server.
    pub server: ServerSetup,
    /// Subscriptions from before the start.
    pub readers: Vec<Reading>,
}

/// What a transform does: to which objects, their content decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transform {
    /// It drops some.
    pub drops_some: bool,
    /// It fails for some.
    pub fails_for_some: bool,
    /// It changes the others.
    pub changes: bool,
}

/// What kind of server it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSetup {
    /// The version before the first change.
    pub first_version: u8,
    /// How many objects there are when the informer starts.
    pub objects: u8,
    /// It knows streaming lists; others refuse them (422).
    pub streams_lists: bool,
    /// It is so old that it takes a streaming list for a plain watch.
    pub ignores_initial_events: bool,
    /// It heeds `limit` at `resourceVersion=0`, as one without a watch cache does.
    pub pages: bool,
    /// It sends bookmarks though nothing has changed.
    pub idle_bookmarks: bool,
    /// The end of the initial events comes later than they do, with changes in between.
    pub late_end: bool,
    /// How many versions its cache is behind where a list does not ask for the most recent state.
    pub lag: u8,
    /// Which of the three forms "Too large resource version" has.
    pub too_large_form: u8,
    /// The items of its lists have their kind, and the list's own metadata comes behind them: a custom resource.
    pub custom: bool,
    /// It answers in protobuf. What it refuses with is in JSON all the same.
    pub protobuf: bool,
    /// Only objects with a label are asked for: others come and go as that changes.
    pub selects: bool,
    /// Its versions are no numbers. A server like that does not know versions that it has not given.
    pub opaque: bool,
}

/// How a subscription reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// One pending change per key, or every change.
    pub mode: Mode,
    /// Re-creations are told in two.
    pub split: bool,
    /// How many notices it takes after each step by itself. Zero: only when a step says so.
    pub pace: u8,
    /// Its snapshot and its joining are steps of their own, with changes in between.
    pub slow_to_join: bool,
}

/// What a subscription wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The latest state of each key.
    Latest,
    /// Every change; those that find no room are merged.
    Merged(u16),
    /// Every change; those that find no room push out the oldest.
    Dropped(u16),
}

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An object is created or changed.
    Put(Key),
    /// An object is deleted, if it is there.
    Delete(Key),
    /// An object is deleted and created again.
    Recreate(Key),
    /// Another resource changes: the version moves.
    Elsewhere(u8),
    /// The server forgets its history up to now.
    Compact,
    /// The state of now can be restored later; the version moves on.
    Backup,
    /// The server comes back with the state of the last backup. All connections break.
    Restore,
    /// The server comes back as it was. All connections break.
    ServerRestart,
    /// Open watches get a bookmark.
    Bookmark,
    /// The next so many requests are answered like this.
    Fault(Fault, u8),
    /// Requests are denied until further notice, those of one namespace or all.
    Deny(Denial, Option<u8>),
    /// Whatever was denied is allowed.
    Allow,
    /// The next event, or list item, is damaged.
    Spoil(Spoil),
    /// A watch brings something that it should not.
    Lie(u8, Lie),
    /// A watch brings an error event.
    Error(u8, Error),
    /// A response ends as responses do, whatever has arrived of it.
    End(u8),
    /// A response breaks off.
    Cut(u8),
    /// A connection is dead, and neither end knows.
    Mute(u8),
    /// A connection passes no bytes by itself any more.
    Stall(u8),
    /// Up to so many bytes of a response arrive.
    Deliver(u8, u16),
    /// Connections pass what they have.
    Flow(u8),
    /// Time passes, in milliseconds.
    Pass(u32),
    /// A subscription joins.
    Join(Reading),
    /// A subscription leaves.
    Leave(u8),
    /// A subscription takes notices, or goes on joining.
    Read(u8, u8),
    /// A subscription wants to be told once more of all that there is.
    Resync(u8),
    /// Somebody asks to try again at once.
    Wake,
    /// The content of an object changes though nobody writes it, as by another version of its definition.
    Revise(Key),
    /// The informer is told that contents may have changed like that.
    SchemaChanged,
    /// User code runs; or, the next time, its result is returned.
    Code,
    /// The cache is saved as it is now.
    Save,
    /// The informer stops, and another one starts.
    Restart(Start),
    /// A namespace is looked at, too.
    AddNamespace(u8),
    /// A namespace is looked at no more.
    RemoveNamespace(u8),
    /// Somebody takes a snapshot and keeps it.
    Snapshot,
    /// Somebody adds an index, or drops it.
    Index,
    /// The next change is told to nobody. No plan that is drawn has this: no informer could notice it. It is there to
    /// show that a wrong cache is found.
    Forget,
}

/// From what an informer starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// From nothing.
    Fresh,
    /// From the cache that was saved last, if one was (contract P).
    Saved,
}

/// What a request meets instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is refused.
    Unreachable,
    /// Nothing comes back.
    Silent,
    /// A Status of this code; 429 and 503 may ask to wait for so many seconds, in the header or in the body.
    Refused {
        /// The HTTP code.
        code: u16,
        /// What the server asks for.
        retry_after: u8,
    },
    /// The asked version is not there yet, says the server, in one of three forms.
    TooLarge,
    /// An error page of some proxy.
    Page,
    /// Success, with a body that is no list: a Status, a Table, or text.
    Nonsense(u8),
    /// A list is of a state so many versions older than was asked for.
    Stale(u8),
    /// A streaming list never says where its initial events end.
    NoEnd,
}

/// Why requests are denied, or lead nowhere.
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
    /// Nobody listens.
    Down,
}

/// How an event, or a list item, is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoil {
    /// Its resourceVersion is a number. The key can be read.
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

/// What a watch brings though it should not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// The last event once more.
    Twice,
    /// A former event of this key, so many before its last.
    Old(Key, u8),
    /// A bookmark so many versions back.
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
