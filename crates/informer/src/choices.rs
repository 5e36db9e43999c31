//! What a user may choose about lists, connections and memory.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use informer_core::{DecodeError, Object, PackedStorage, PlainStorage, View};

use crate::shared::Keeping;

/// How the first list reads (later ones never go back behind what was seen).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstListChoice {
    /// The most recent state from servers that answer it from their cache (Kubernetes 1.34 and later), any state from
    /// older ones.
    #[default]
    ByServer,
    /// The most recent state.
    Consistent,
    /// Any state that the server has at hand, in pages. May be older than what another server of the cluster has shown.
    Any,
}

/// Whether first contents come as streaming lists (KEP-3157), where the server offers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamingListChoice {
    /// Where that costs less: not for JSON, of which it costs the server twice the CPU.
    #[default]
    WhereItPays,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What carries the requests: each over a connection of its own, or many over one.
///
/// | | HTTP/1.1 | HTTP/2 |
/// |---|---|---|
/// | connections | one per watch | one for about 100 watches, as many as the server allows |
/// | a dead connection is noticed | by missed bookmarks, after 130 s ([`silence_limit`]) | by a ping, after 45 s |
/// | a hundred small watches, client's side | 5.7 MB, 50 ms of CPU | 3.2 MB, 20 ms of CPU |
/// | one big first sync | as fast as the server | about the same CPU; a real server was slower in it |
/// | a big list and a watch at the same time | side by side | the watch waits for its turn on the wire |
/// | what is between | any proxy | one that knows HTTP/2, or passes TLS through |
///
/// So HTTP/1.1 for a few big collections, HTTP/2 for many small ones: all resources of a cluster, or a namespace each
/// for a hundred tenants. `docs/DESIGN.md` says how this was measured.
///
/// [`silence_limit`]: crate::FactoryBuilder::silence_limit
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpVersion {
    /// One connection per watch, and one for lists.
    #[default]
    Http1,
    /// Few connections. What was sent and not read yet takes 2 MiB per request and 4 MiB per connection at most.
    ///
    /// A server that does not speak HTTP/2 is an error: nothing falls back to HTTP/1.1. Over plain `http` the server has
    /// to know that HTTP/2 comes (RFC 9113, section 3.3).
    Http2(Http2),
}

/// How HTTP/2 is spoken.
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::time::Duration;
/// use informer::Http2;
///
/// // A dead connection is found out after 15 s.
/// let impatient = Http2 {
///     ping_interval: Duration::from_secs(10),
///     ping_timeout: Duration::from_secs(5),
///     ..Http2::default()
/// };
/// // A big list holds up half of the watches at most.
/// let two = Http2 { connections: NonZeroUsize::MIN.saturating_add(1), ..Http2::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2 {
    /// How many connections there are at the same time. One by default.
    ///
    /// A server takes a limited number of requests per connection (kube-apiserver: 100, see its flag
    /// `--http2-max-streams-per-connection`), and a watch is one for as long as it lasts: where all connections are
    /// full, more are opened, because nobody could say how long a request would have to wait otherwise.
    pub connections: NonZeroUsize,
    /// How long it takes until the next ping. 30 s by default.
    pub ping_interval: Duration,
    /// A connection on which nothing has come for this long after a ping is dead: everything on it breaks, each watch
    /// reports that, and goes on over a new connection. 15 s by default.
    pub ping_timeout: Duration,
}

impl Default for Http2 {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::MIN,
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
        }
    }
}

/// In which encoding objects come from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodingChoice {
    /// In protobuf, where the resource is built in: a third less to send, half the work for the server, and less to read.
    /// Metadata of custom resources too. In JSON what has no protobuf form or goes through a [`Transform`](crate::Transform) of
    /// JSON; both at once in one factory.
    ///
    /// Messages of protobuf do not name their fields, and those that are newer than Kubernetes 1.36 are not known here. So
    /// a newer server is asked for JSON. What it is says its `/version`, which each factory asks for before lists and watches,
    /// at most once in ten seconds: who upgrades a server need not start anew, though objects that are cached already stay
    /// as they came until they change. Metadata comes in protobuf from newer servers too: its fields have been the same for
    /// years. As long as the question is not answered, or not within ten seconds, objects come in JSON. A server that does
    /// not say its version, or forbids to ask for it, counts as not newer.
    #[default]
    ProtobufWhereOffered,
    /// In JSON: for who has to see every field of whatever server, those that do not say their version included.
    Json,
}

/// How objects are kept.
///
/// | | memory of a pod of 9 KB | a look at it as a type | choose it |
/// |---|---|---|---|
/// | [`Packed`](Layout::Packed) | 0.5 to 0.8 KB | unpack (2 us) and decode | by default |
/// | [`Bytes`](Layout::Bytes) | 7 to 10 KB | decode | where each object is looked at often, and not held |
/// | [`Decoded`](Layout::Decoded) | as packed, and 20 to 40 KB | nothing, after the first | where all are looked at all the time |
///
/// Whichever it is, the answers are the same, and whoever holds a decoded object shares it with all who ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// As bytes, compressed against a dictionary of the cache's own ([`PackedStorage`]). Unpacked and decoded when looked
    /// at, shared while somebody holds the decoded value.
    #[default]
    Packed,
    /// As bytes, as they came. Decoded when looked at, shared while somebody holds the decoded value.
    Bytes,
    /// Packed, and decoded from the first look on: somebody's, or that of an index function, which looks at each version when it
    /// comes.
    Decoded,
}

impl Layout {
    /// What keeps the bytes.
    pub(crate) fn keeping(self) -> Keeping {
        match self {
            Self::Packed | Self::Decoded => Arc::new(|_| Arc::new(PackedStorage::new())),
            Self::Bytes => Arc::new(|_| Arc::new(PlainStorage)),
        }
    }

    /// An object as a `T`, kept or shared.
    pub(crate) fn view<T: View>(self, object: &Arc<Object>) -> Result<Arc<T>, DecodeError> {
        match self {
            Self::Packed | Self::Bytes => T::of(object),
            Self::Decoded => T::kept(object),
        }
    }

    /// Looks at an object as a `T`, which is kept if the layout says so.
    pub(crate) fn with<T: View, R>(
        self,
        object: &Object,
        look: impl FnOnce(&T) -> R,
    ) -> Result<R, DecodeError> {
        match self {
            Self::Packed | Self::Bytes => T::with(object, look),
            Self::Decoded => T::with_kept(object, look),
        }
    }
}
