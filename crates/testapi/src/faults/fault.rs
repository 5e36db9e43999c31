//! The faults of one request.

use std::time::Duration;

use serve::{Reason, Status};

pub use Point::{Bytes, Events};

/// The fault of one request.
///
/// Faults of content (from [`Garble`](Self::Garble) on, and all that count in [`Events`]) need to parse the response:
/// it is not compressed, whatever the client accepts, and JSON unless it is a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    // Instead of a response.
    /// Closes the connection without a response. Over HTTP/2 that ends all its requests.
    Disconnect,
    /// Closes all connections of the server.
    DisconnectAll,
    /// Never answers, and keeps the connection open.
    Hang,
    /// Delays the response.
    Delay(Duration),
    /// Refuses, in the words of the real server.
    Refuse(Refusal),
    /// Refuses, in the script's own words.
    Answer(Box<Status>),

    // Before the response.
    /// Compacts the history first: everything but reads of the newest revision has expired.
    Compact,
    /// Sends a Table, whatever the client accepts, like a proxy that asks for printed columns.
    AsTable,

    // How the response is sent.
    /// Breaks the connection in the middle of the response.
    CutAfter(Point),
    /// Ends the response early, properly. Unless it is a watch, the JSON is truncated.
    EndAfter(Point),
    /// Sends nothing more, and keeps the connection open.
    StallAfter(Point),
    /// Sends chunks of 1 to `max` bytes, of pseudo-random sizes.
    Chunks {
        /// The seed of the sizes.
        seed: u64,
        /// The size of the largest chunk, at least 1.
        max: usize,
    },
    /// Sends slowly.
    Slow {
        /// At least 1.
        bytes_per_second: u32,
    },

    // Faults of the content of a response.
    /// Garbles some bytes: in a watch, of the event after this many; in another response, in its first 4 KiB.
    Garble(u64),
    /// Truncates the event after this many to a half; the watch goes on. Watches only.
    Truncate(u64),
    /// Changes the kind: in a watch, of the object after this many events; otherwise of the whole response.
    WrongKind(u64),
    /// Repeats the event after this many. Watches only.
    Duplicate(u64),
    /// Lowers the resourceVersion: in a watch, of the object after this many events; in a list, of the list.
    RevisionBack {
        /// How many events come unchanged first.
        after: u64,
        /// By how much, down to 1 at least.
        by: u64,
    },
    /// Sends an ERROR event after this many events, and ends the watch. Watches only.
    ErrorAfter(u64, StreamError),
    /// Omits the bookmark that ends the initial events. Watches only.
    NoEndBookmark,
    /// Omits all bookmarks. Watches only.
    NoBookmarks,
}

/// A place in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// After this many bytes of the body, as sent.
    Bytes(u64),
    /// After this many events of a watch, bookmarks included. Other responses have no events and never get there.
    Events(u64),
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 401: the credentials are missing, wrong or expired.
    Unauthorized,
    /// 403: the user lacks the permission.
    Forbidden,
    /// 404: the resource does not exist; for a request that names an object, the object.
    NotFound,
    /// 409: another client wrote in between, or on a create, the name is taken.
    Conflict,
    /// 410: the history no longer has that version, or a continue token has expired.
    Expired,
    /// 422: the request or the object is not valid; a streaming list is refused as by a server without the feature.
    Invalid,
    /// 429: too many requests, with Retry-After and in plain text, like an overloaded server.
    TooManyRequests {
        /// Seconds.
        retry_after: u32,
    },
    /// 429: the watch cache is not ready, with Retry-After.
    NotReady {
        /// Seconds.
        retry_after: u32,
    },
    /// 500: etcd does not answer.
    InternalError,
    /// 503: the server is shutting down, with Retry-After 1.
    Unavailable,
    /// 504: the request timed out.
    Timeout,
}

/// The status of an ERROR event in a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamError {
    /// 410: the history no longer has that version.
    Expired,
    /// 500: an internal error.
    InternalError,
    /// 500: a deleted object is undecodable.
    StoreRead,
    /// 429: too many requests.
    TooManyRequests {
        /// Seconds.
        retry_after: u32,
    },
}

impl Fault {
    /// Whether it applies to watches only.
    pub fn is_for_watches(&self) -> bool {
        matches!(
            self,
            Self::Truncate(_)
                | Self::Duplicate(_)
                | Self::ErrorAfter(..)
                | Self::NoEndBookmark
                | Self::NoBookmarks
                | Self::CutAfter(Events(_))
                | Self::EndAfter(Events(_))
                | Self::StallAfter(Events(_))
        )
    }

    /// Whether the response must not be compressed.
    pub(super) fn reads_content(&self) -> bool {
        self.is_for_watches()
            || matches!(self, Self::Garble(_) | Self::WrongKind(_) | Self::RevisionBack { .. })
    }
}

impl StreamError {
    /// The object of the event.
    pub fn status(self) -> Status {
        match self {
            Self::Expired => {
                Status::new(Reason::Expired, "The resourceVersion for the provided watch is too old.")
            }
            Self::InternalError => internal_error("etcdserver: no leader"),
            Self::StoreRead => Status::new(
                Reason::StorageReadError,
                "saw a DELETED event, but object data is corrupt - data from the storage is not transformable \
                 revision=0: no matching prefix found",
            ),
            Self::TooManyRequests { retry_after } => {
                Status::new(Reason::TooManyRequests, "storage is (re)initializing").retry_after(retry_after)
            }
        }
    }
}

pub(super) fn internal_error(cause: &str) -> Status {
    Status::new(Reason::InternalError, format!("Internal error occurred: {cause}")).cause("", cause, "")
}

/// One fault where several are possible.
impl From<Fault> for Vec<Fault> {
    fn from(fault: Fault) -> Self {
        vec![fault]
    }
}
