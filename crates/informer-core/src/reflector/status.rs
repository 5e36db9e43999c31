//! The status and reports of a reflector.

use std::fmt;
use std::time::Duration;

use crate::wire::ApiStatus;
use crate::{ObjectKey, ResourceVersion};

/// Where an informer stands. An informer that makes no progress shows why, instead of staying silent (design D8).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Status {
    /// The informer was not started.
    NotStarted,
    /// A request was sent and has not been answered yet.
    Connecting,
    /// A list is arriving: the initial one, or a re-list.
    Syncing {
        /// Objects received so far.
        received: usize,
    },
    /// The cache is synced and a watch keeps it current.
    Live {
        /// The version at which the watch started. The cache has usually reached a newer one.
        resource_version: ResourceVersion,
    },
    /// Something failed and will be retried.
    Retrying {
        /// The failure.
        cause: Cause,
        /// The number of failures in a row.
        attempt: u32,
        /// The wait between the failure and the retry.
        wait: Duration,
    },
    /// The server denies access (401, 403), does not have the resource (404), or refuses the list as requested (400, 405,
    /// 406, 415, 422). A field selector that the resource does not support is one reason for that. Retried at a slow pace.
    Denied {
        /// The server's response.
        status: ApiStatus,
    },
    /// A transform or an index function does not return, and the queue of operations is full. The informer has dropped its
    /// response, and resumes when the function returns.
    Stalled,
    /// Stopped for good.
    Stopped,
}

/// Why a request or stream ended, or did not begin: every disconnect has a cause.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// The server could not be reached, or did not respond.
    Unreachable(String),
    /// The server responded with an error.
    Refused(ApiStatus),
    /// A watch brought an error event.
    ErrorEvent(ApiStatus),
    /// The response broke off.
    Broken(String),
    /// The response is undecodable.
    Undecodable(String),
    /// A watch ended almost at once without an event. A proxy that does not support watches can cause this.
    ShortWatch,
    /// The server ended the watch, as it does every few minutes. Not a failure.
    Ended,
    /// No bytes arrived for longer than this limit.
    Silent(Duration),
    /// A streaming list did not complete its initial events.
    NoInitialEventsEnd,
    /// The informer dropped the response, because a transform or an index function did not return.
    Stalled,
    /// The server's version, a definition or a schema has changed. Objects may have changed without a write, so they are
    /// listed. Not a failure.
    SchemaChanged,
    /// An object differed at two lists in a row without a write, so there is one more list. Not a failure.
    Unsteady,
    /// The resource is served as another version or kind, so it is listed. Not a failure.
    ServedAs,
    /// The server no longer has the requested resourceVersion, or has not reached it yet.
    VersionUnavailable(ApiStatus),
    /// A list was older than a state already seen, so it was not applied.
    WentBack {
        /// The newest version seen.
        seen: ResourceVersion,
        /// The version of the list.
        listed: ResourceVersion,
    },
}

/// A noteworthy event that does not change the cache.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Report {
    /// A request or stream ended.
    Disconnected(Cause),
    /// The server went back to an older state than it had shown: a backup was restored. The cache follows it.
    ServerRestored {
        /// The newest version seen before.
        seen: ResourceVersion,
        /// The server's version now.
        now: ResourceVersion,
    },
    /// An object is undecodable and was left out; all others are processed. Its next good version ends the quarantine.
    Quarantined {
        /// The object, if its key decodes.
        key: Option<ObjectKey>,
        /// The reason, without any of its content.
        reason: String,
    },
    /// The content of an object differs at each list without a write, for example because the server renders the current time
    /// or a random order. The first difference was an update. The cache follows the object again when two lists agree, or
    /// when its version changes.
    Unsteady {
        /// The object.
        key: ObjectKey,
    },
    /// An object of the cache does not decode as the type of a view. That view leaves it out; the cache keeps it. Reported
    /// once per version and type.
    Undecodable {
        /// The object.
        key: ObjectKey,
        /// The undecodable version.
        resource_version: ResourceVersion,
        /// The decode error, without any of the object's content.
        reason: String,
    },
}

impl Cause {
    /// Every [`Cause::name`].
    pub const NAMES: [&'static str; 15] = [
        "unreachable",
        "refused",
        "error_event",
        "broken",
        "undecodable",
        "short_watch",
        "ended",
        "silent",
        "no_initial_events_end",
        "stalled",
        "schema_changed",
        "unsteady",
        "served_as",
        "version_unavailable",
        "went_back",
    ];

    /// The name of the cause without details, for a metric label.
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
            Self::Stalled => "stalled",
            Self::SchemaChanged => "schema_changed",
            Self::Unsteady => "unsteady",
            Self::ServedAs => "served_as",
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
            Self::Undecodable(reason) => write!(f, "the response is undecodable: {reason}"),
            Self::ShortWatch => write!(f, "the watch ended almost at once, without an event"),
            Self::Ended => write!(f, "the server ended the watch"),
            Self::Silent(limit) => write!(f, "nothing came for {} s", limit.as_secs()),
            Self::NoInitialEventsEnd => write!(f, "the streaming list did not complete its initial events"),
            Self::Stalled => write!(f, "a transform or an index function did not return"),
            Self::SchemaChanged => {
                write!(f, "a schema has changed, and objects may look different without a write")
            }
            Self::Unsteady => write!(f, "an object differed at two lists without a write"),
            Self::ServedAs => write!(f, "the resource is served as another version or kind"),
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
            Self::NotStarted => write!(f, "not started"),
            Self::Connecting => write!(f, "connecting"),
            Self::Syncing { received } => write!(f, "syncing, {received} objects received"),
            Self::Live { resource_version } if resource_version.is_unset() => write!(f, "live"),
            Self::Live { resource_version } => write!(f, "live since resourceVersion {resource_version}"),
            Self::Retrying { cause, attempt, wait } => {
                write!(f, "retrying in {:.1} s (failure {attempt}): {cause}", wait.as_secs_f64())
            }
            Self::Denied { status } if status.code == 404 => write!(
                f,
                "denied: {status} (the server does not serve this resource: check its group, version and plural, or \
                 install its definition)"
            ),
            Self::Denied { status } => write!(f, "denied: {status}"),
            Self::Stalled => write!(f, "stalled: a transform or an index function does not return"),
            Self::Stopped => write!(f, "stopped"),
        }
    }
}
