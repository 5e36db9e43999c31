//! What a reflector says about itself.

use std::fmt;
use std::time::Duration;

use crate::wire::ApiStatus;
use crate::{ObjectKey, ResourceVersion};

/// Where a reflector stands. "Status, not silence" (design D8).
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// A request was sent, nothing has come back.
    Connecting,
    /// The content is arriving.
    Syncing {
        /// Objects so far.
        received: usize,
    },
    /// The content is there and a watch keeps it current.
    Live {
        /// Where the watch started.
        resource_version: ResourceVersion,
    },
    /// Something failed and is tried again.
    Retrying {
        /// What failed.
        cause: Cause,
        /// Which failure in a row.
        attempt: u32,
        /// How long after the failure it is tried again.
        wait: Duration,
    },
    /// The server does not let us (401, 403), does not know the resource (404), or will not list it as it was asked to
    /// (400, 405, 406, 415, 422), as with a field selector that the resource does not have. Asked again at a slow pace.
    Denied {
        /// The server's answer.
        status: ApiStatus,
    },
    /// Stopped for good.
    Stopped,
}

/// Why something that ran came to an end, or did not begin: every disconnect has one.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// The server could not be reached, or did not answer.
    Unreachable(String),
    /// The server answered with an error.
    Refused(ApiStatus),
    /// A watch brought an error event.
    ErrorEvent(ApiStatus),
    /// The response broke off.
    Broken(String),
    /// The response could not be understood.
    Undecodable(String),
    /// A watch ended almost at once without having brought anything, as through a proxy that does not let watches be.
    ShortWatch,
    /// The server ended the watch, as it does each few minutes. Not a failure.
    Ended,
    /// Nothing came for longer than the limit.
    Silent(Duration),
    /// A streaming list did not come to its end.
    NoInitialEventsEnd,
    /// The asked resourceVersion is not kept any more, or not there yet.
    VersionUnavailable(ApiStatus),
    /// A list answered with an older state than one already seen, so it was not applied.
    WentBack {
        /// The newest version seen.
        seen: ResourceVersion,
        /// The list's.
        listed: ResourceVersion,
    },
}

/// Something worth telling that is not a change of the cache.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// A request or stream came to an end.
    Disconnected(Cause),
    /// The server itself is at an older state than one it has shown: a restored backup. The cache follows it.
    ServerRestored {
        /// The newest version seen before.
        seen: ResourceVersion,
        /// The server's now.
        now: ResourceVersion,
    },
    /// An object could not be read and was left out; the rest goes on. The next good version clears it.
    Quarantined {
        /// The object, where as much could be read.
        key: Option<ObjectKey>,
        /// What is wrong with it, without any of its content.
        reason: String,
    },
}

impl Cause {
    /// Every [`Cause::name`].
    pub const NAMES: [&'static str; 11] = [
        "unreachable",
        "refused",
        "error_event",
        "broken",
        "undecodable",
        "short_watch",
        "ended",
        "silent",
        "no_initial_events_end",
        "version_unavailable",
        "went_back",
    ];

    /// The cause without what is special about it: a label for metrics, one of few.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Refused(_) => "refused",
            Self::ErrorEvent(_) => "error_event",
            Self::Broken(_) => "broken",
            Self::Undecodable(_) => "undecodable",
            Self::ShortWatch => "short_watch",
            Self::Ended => "ended",
            Self::Silent(_) => "silent",
            Self::NoInitialEventsEnd => "no_initial_events_end",
            Self::VersionUnavailable(_) => "version_unavailable",
            Self::WentBack { .. } => "went_back",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(reason) => write!(f, "the server cannot be reached: {reason}"),
            Self::Refused(status) => write!(f, "the server refused: {status}"),
            Self::ErrorEvent(status) => write!(f, "the watch ended with an error: {status}"),
            Self::Broken(reason) => write!(f, "the response broke off: {reason}"),
            Self::Undecodable(reason) => write!(f, "the response cannot be understood: {reason}"),
            Self::ShortWatch => write!(f, "the watch ended almost at once, without an event"),
            Self::Ended => write!(f, "the server ended the watch"),
            Self::Silent(limit) => write!(f, "nothing came for {} s", limit.as_secs()),
            Self::NoInitialEventsEnd => write!(f, "the streaming list did not come to its end"),
            Self::VersionUnavailable(status) => write!(f, "the resourceVersion is not available: {status}"),
            Self::WentBack { seen, listed } => {
                write!(
                    f,
                    "the list answered with the older resourceVersion {listed}; {seen} was already seen"
                )
            }
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => write!(f, "connecting"),
            Self::Syncing { received } => write!(f, "syncing, {received} objects received"),
            Self::Live { resource_version } if resource_version.is_unset() => write!(f, "live"),
            Self::Live { resource_version } => write!(f, "live since resourceVersion {resource_version}"),
            Self::Retrying { cause, attempt, wait } => {
                write!(f, "retrying in {:.1} s (failure {attempt}): {cause}", wait.as_secs_f64())
            }
            Self::Denied { status } => write!(f, "denied: {status}"),
            Self::Stopped => write!(f, "stopped"),
        }
    }
}
