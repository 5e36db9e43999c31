//! The invariants, by name, so that a shrunk run fails for the same reason as the original.

use std::fmt;

/// The invariants of every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// The cache has what the server had at the version that the cache claims (L3, L11, L13, W1, W10, S2, S3, S8, D7).
    ///
    /// Two exceptions. First, an object may be missing, or have any former state, until its next good version or the
    /// next list, if its event or item was damaged or sent out of order (W8), or if it changed at an unchanged version
    /// (L14). An event that must lead to a list (W17) is no such exception. Nor is damage from before a save that
    /// claims to have decoded everything. Second, a restored server may have reached its former version again before
    /// the informer returns. The engine cannot notice that, so the content may mix two epochs until the next list.
    Content,
    /// The cache's version is not ahead of any source. It goes back only in the step in which the engine reports a
    /// restored backup or removes a source (C5, L12).
    ///
    /// Two exceptions. A source that is added later may be behind until it has caught up once, as
    /// `Cache::resource_version` says. And the versions of two sources cannot be compared while only one of them knows
    /// of a restored backup.
    Progress,
    /// Requests follow the protocol: no request asks for an older state than one seen, a watch starts where the last
    /// one ended, it does so at once if that one was served and ended cleanly, and a page has no version (L2, L4, W1,
    /// W2, W3).
    Request,
    /// No request is sent before the wait after a failure ends, no wait is too long or too short, and no moment has
    /// more than a handful of requests (W5, W14).
    Pace,
    /// A source that waits has no connection, a live source has its content, and the engine always has a next
    /// deadline.
    Connection,
    /// The changes that a subscription receives of a key form a legal chain of true states, forwards only (H1, H2, H3,
    /// H4, H9, H10, H11, H12, W11). A subscription to every change receives every change. The chain of one with a filter has
    /// the objects that the filter matches.
    ///
    /// A key in doubt may break its chain. After `Lagged` each chain restarts.
    Story,
    /// A subscription that has read everything knows what the cache has (H2, D3); one with a filter knows what the filter
    /// matches of it (H12).
    Lost,
    /// A mailbox holds no more than its delivery allows (H8, D7 of the design).
    Bound,
    /// A snapshot never changes and agrees with its indexes (C2, C3, C4).
    Snapshot,
    /// User code runs in computes, and nowhere else (F9).
    Guest,
    /// The quarantine has the objects whose newest version is undecodable or fails the transform, and no others (W8,
    /// D6).
    Quarantine,
    /// A saved cache loads, and is not synced before a server has confirmed it (P1, P2). Other invariants show that
    /// each change since the save is delivered once: a loaded cache obeys [`Invariant::Content`] and
    /// [`Invariant::Story`].
    Saved,
    /// The end of the initial list is told once the cache has the content of each source and the readers were told of it, and
    /// not later (H4, F3).
    Synced,
    /// A key is reconciled by one worker at a time, for a cause, when the cache has what its last reconciliation wrote, and
    /// again after each change: in the end, every key was reconciled at its last version (Q1, Q6, Q7).
    Reconcile,
    /// Once nothing fails any more, the informer becomes live and current within a bounded time (W6, W12, W15, S6, S7,
    /// F3).
    Rest,
    /// After a stop the engine sends no request and has no deadline (D5, W14).
    Stop,
    /// One input does no more than a slice of work, so that the other informers of the thread have their turn (F9).
    Cost,
    /// Nothing panics.
    Panic,
    /// A demand of a test.
    Extra,
}

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// The oracle's observation instead.
    pub what: String,
}

impl Invariant {
    /// Returns a violation unless `holds`.
    pub(crate) fn holds(self, holds: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
        if holds { Ok(()) } else { Err(self.violated(what())) }
    }

    pub(crate) fn violated(self, what: impl Into<String>) -> Violation {
        Violation { invariant: self, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.what)
    }
}
