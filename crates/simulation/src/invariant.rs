//! What must hold, by name: so that a failing run can be shrunk to one that fails for the same reason.

use std::fmt;

/// Something that must hold in each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// The cache has what the server had at the version that the cache claims (L3, L11, L13, W1, W10, S2, S3, S8, D7).
    ///
    /// Two exceptions. An object whose event or item was damaged on the way, or repeated out of order by the server, may
    /// be missing or of any state that was true once, until its next good version or list (W8); so may one that is another
    /// one at the same version (L14). A damaged event that has to be followed by a list (W17) is no excuse, nor is anything
    /// damaged in a cache that is loaded without a word of something unread. And a server that was
    /// restored from a backup, and has come as far as before by the time that the informer is back, cannot be told
    /// from one that was not: nothing is said of contents that were mixed like that until the next list.
    Content,
    /// The cache's version never goes back, unless a restored backup was reported in the same moment or a source was
    /// removed, and is not ahead of any source (C5, L12).
    ///
    /// Two exceptions: a source that is added later may be behind until it has been as far once, as
    /// `Cache::resource_version` says; and while one source knows of a restored backup and another does not yet, their
    /// versions cannot be compared.
    Progress,
    /// Requests are as the protocol wants them: none asks for something older than what was seen, a watch starts where
    /// the last one ended, at once where that one was served and ended well, a page has no version (L2, L4, W1, W2, W3).
    Request,
    /// Nothing is asked for before the wait after a failure is over, no wait is too long or too short, and no moment
    /// has more than a handful of requests (W5, W14).
    Pace,
    /// No connection is left open by somebody who waits or has stopped; there is always a next deadline.
    Connection,
    /// What a subscription is told of a key is a legal chain of states that were true, forwards only (H1, H2, H3, H4, H9,
    /// H10, H11, W11), and every change where every change is wanted.
    ///
    /// Where a damaged, repeated or restored state was in the cache, it may be told, too; after `Lagged` the chain of
    /// each key begins anew.
    Story,
    /// When all is told, a subscription knows what the cache has (H2, D3).
    Lost,
    /// A mailbox holds no more than its delivery allows (H8, D7 of the design).
    Bound,
    /// A snapshot never changes and agrees with its indexes (C2, C3, C4).
    Snapshot,
    /// The user's code runs where the engine has asked for that, and nowhere else (F9).
    Guest,
    /// The list of undecodable objects has those whose newest version could not be read, or not be transformed, and no
    /// others (W8, D6).
    Quarantine,
    /// What was saved is loaded, and is not taken for current before a server has said so (P1, P2). That everything
    /// since is told once is a matter of the others: the cache is what the server had at the saved version
    /// ([`Invariant::Content`]), its objects are told in full before anything else, and the story goes on from there.
    Saved,
    /// Once nothing fails any more, an informer is live and current within a bounded time (W6, W12, W15, S6, S7, F3).
    Rest,
    /// After a stop nothing is asked for and nothing is waited for (D5, W14).
    Stop,
    /// Nothing panics.
    Panic,
    /// Something that a test demands beyond these.
    Extra,
}

/// An invariant that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// What was seen instead.
    pub what: String,
}

impl Invariant {
    /// Refuses `what` unless it holds.
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
