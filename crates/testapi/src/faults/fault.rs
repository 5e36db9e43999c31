//! What can go wrong with one request.

use std::time::Duration;

use serve::{Reason, Status};

pub use Point::{Bytes, Events};

/// What goes wrong with one request.
///
/// Faults of the content (from [`Garble`](Self::Garble) on, and all that count in [`Events`]) need to see it: the answer
/// to a request that meets one is not compressed, whatever the client accepts, and JSON unless it is a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    // Instead of an answer.
    /// The connection is closed without an answer. Over HTTP/2 that ends all its requests.
    Disconnect,
    /// All connections of the server are closed.
    DisconnectAll,
    /// There is no answer, ever, and the connection stays.
    Hang,
    /// The answer comes later.
    Delay(Duration),
    /// An answer that refuses, in the words of the real server.
    Refuse(Refusal),
    /// An answer that refuses, in the script's own words.
    Answer(Box<Status>),

    // Before the answer.
    /// The history is compacted first: what is not read at the newest revision has expired.
    Compact,
    /// The answer is a Table, whatever the client accepts, as through a proxy that asks for what people look at.
    AsTable,

    // How the answer is sent.
    /// The connection breaks in the middle of the answer.
    CutAfter(Point),
    /// The answer ends early and properly. In the middle of a document that is JSON which is cut short.
    EndAfter(Point),
    /// Nothing comes any more, and the connection stays.
    StallAfter(Point),
    /// The answer comes in pieces of 1 to `max` bytes, whose sizes follow from the seed.
    Chunks {
        /// Where the sizes come from.
        seed: u64,
        /// The size of the largest piece, at least 1.
        max: usize,
    },
    /// The answer comes slowly.
    Slow {
        /// At least 1.
        bytes_per_second: u32,
    },

    // What the answer says.
    /// Some bytes are not what they should be: in a watch in the event after this many, in another answer in its
    /// first 4 KiB.
    Garble(u64),
    /// Half of the event after this many is missing, and the watch goes on. Watches only.
    Truncate(u64),
    /// The kind is another: in a watch of the object after this many events, else of the whole answer.
    WrongKind(u64),
    /// The event after this many comes twice. Watches only.
    Duplicate(u64),
    /// The resourceVersion is lower than it should be: in a watch of the object after this many events, in a list that
    /// of the list.
    RevisionBack {
        /// So many events come as they should.
        after: u64,
        /// By so much, and not below 1.
        by: u64,
    },
    /// After so many events the watch brings an ERROR, and ends. Watches only.
    ErrorAfter(u64, StreamError),
    /// The bookmark that ends the initial events does not come. Watches only.
    NoEndBookmark,
    /// No bookmark comes at all. Watches only.
    NoBookmarks,
}

/// A place in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// After so many bytes of the body, as they are sent.
    Bytes(u64),
    /// After so many events of a watch, bookmarks included. Other answers have no events and never get there.
    Events(u64),
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 401: the credentials are missing, wrong or expired.
    Unauthorized,
    /// 403: the user may not do that.
    Forbidden,
    /// 404: the resource is not there; for a request that names an object, the object.
    NotFound,
    /// 409: another has written in between, or on a creation, the name is taken.
    Conflict,
    /// 410: the history does not go back that far, or a continue token has expired.
    Expired,
    /// 422: the request or the object is not valid; a streaming list is refused as by a server without the feature.
    Invalid,
    /// 429: too many requests, with Retry-After and in plain text, as a server does it that is overloaded.
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
    /// 504: it took too long.
    Timeout,
}

/// What an ERROR event in a watch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamError {
    /// 410: the history does not go back that far.
    Expired,
    /// 500: something in the server.
    InternalError,
    /// 500: a deleted object cannot be read.
    StoreRead,
    /// 429: come back later.
    TooManyRequests {
        /// Seconds.
        retry_after: u32,
    },
}

impl Fault {
    /// Whether it can only happen to a watch.
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

    /// Whether the answer must come as it is, and not compressed.
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
