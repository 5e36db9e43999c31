//! Options for lists, connections and memory.

#[cfg(feature = "http2")]
use std::num::NonZeroUsize;
use std::sync::Arc;
#[cfg(feature = "http2")]
use std::time::Duration;

#[cfg(feature = "packed")]
use informer_core::PackedStorage;
use informer_core::{PlainStorage, Retention, Storage};

/// How consistent the initial list is. [`Auto`](Self::Auto) by default. (A re-list is never older than the state before
/// it.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FirstListChoice {
    /// `Consistent` on servers that answer consistent lists from their cache (Kubernetes 1.34 and later) or do not report
    /// their version, `Any` on older servers.
    #[default]
    Auto,
    /// The most recent state. Servers before 1.34 read it from etcd.
    Consistent,
    /// Any state that the server has cached, in pages. It may be older than what another server of the cluster has
    /// returned.
    Any,
}

/// Whether lists are streaming lists (KEP-3157): watches that begin with the objects. [`Auto`](Self::Auto) by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StreamingListChoice {
    /// The choice that costs less by our measurements. At present that is a LIST everywhere, as with
    /// [`Never`](Self::Never). For 10,000 pods as protobuf (Kubernetes 1.36), a streaming list cost the server 1.7 s of CPU
    /// instead of 0.7 s and the client 10 % more, and took 1.1 s instead of 0.7 s. As JSON it costs the server twice the CPU
    /// of a LIST. A later release may choose streaming lists where they cost less. client-go streams by default since
    /// Kubernetes 1.35.
    #[default]
    Auto,
    /// A streaming list; a LIST from servers that refuse it.
    Always,
    /// A LIST.
    Never,
}

/// How requests are carried: each over its own connection, or many over one. [`Http1`](Self::Http1) by default.
///
/// | | HTTP/1.1 | HTTP/2 |
/// |---|---|---|
/// | connections | one per watch | one for about 100 watches, as many as the server allows |
/// | a dead connection is detected | by missed bookmarks, after 130 s ([`silence_limit`]) | by a ping, after 45 s |
/// | a hundred small watches, on the client | 5.7 MB, 50 ms of CPU | 3.2 MB, 20 ms of CPU |
/// | one big initial list | as fast as the server | about the same CPU; a real server sent it more slowly |
/// | a big list and a watch at the same time | side by side | the watch waits for its turn on the wire |
/// | proxies in between | any | one that supports HTTP/2, or passes TLS through |
///
/// So use HTTP/1.1 for a few big collections, HTTP/2 for many small ones: all resources of a cluster, or a namespace
/// each for a hundred tenants. `docs/DESIGN.md` describes the measurement.
///
/// [`silence_limit`]: crate::ReflectorOptions::silence_limit
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HttpVersion {
    /// One connection per watch, and one for lists.
    #[default]
    Http1,
    /// Few connections. Unread bytes take at most 2 MiB per request.
    ///
    /// A server without HTTP/2 is an error: there is no fallback to HTTP/1.1. Over plain `http` the server must support
    /// prior knowledge (RFC 9113, section 3.3).
    #[cfg(feature = "http2")]
    Http2(Http2),
}

/// Options of HTTP/2. Later releases may add some: begin with the default.
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::time::Duration;
/// use informer::Http2;
///
/// // A dead connection is found out after 15 s.
/// let mut impatient = Http2::default();
/// impatient.ping_interval = Duration::from_secs(10);
/// impatient.ping_timeout = Duration::from_secs(5);
/// // A big list holds up half of the watches at most.
/// let mut two = Http2::default();
/// two.connections = NonZeroUsize::MIN.saturating_add(1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg(feature = "http2")]
#[non_exhaustive]
pub struct Http2 {
    /// The number of connections at the same time. One by default.
    ///
    /// A server limits the requests per connection (kube-apiserver: 100, see its flag
    /// `--http2-max-streams-per-connection`), and a watch occupies one for as long as it runs. When all connections are
    /// full, another one is opened, because a request might otherwise wait for minutes.
    pub connections: NonZeroUsize,
    /// The interval between pings. 30 s by default.
    pub ping_interval: Duration,
    /// A connection that brings no byte for this long after a ping is dead: all its streams break, and each watch reports
    /// the cause and resumes over a new connection. 15 s by default.
    pub ping_timeout: Duration,
}

#[cfg(feature = "http2")]
impl Default for Http2 {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::MIN,
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
        }
    }
}

/// The encoding in which the server sends objects. [`Auto`](Self::Auto) by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EncodingChoice {
    /// Protobuf for built-in resources and for the metadata of custom ones: a third less to send, half the work for the
    /// server, and less to decode. JSON for what has no protobuf form or goes through a [`Transform`](crate::Transform) of JSON.
    ///
    /// Protobuf messages do not name their fields, and this library knows those of Kubernetes 1.37. A newer server
    /// therefore gets requests for JSON. Each factory reads the server's `/version` before lists and watches, at most once
    /// in ten seconds, so a server upgrade needs no restart. Objects that are cached already keep their fields until they
    /// change. Metadata comes in protobuf from newer servers too, because its fields have been the same for years. A
    /// request waits for the version for at most ten seconds; while it is unknown, objects come in JSON. A server that does
    /// not report its version, or forbids the request, counts as not newer.
    #[default]
    Auto,
    /// JSON: for programs that must see every field of any server, also of those that do not report their version.
    Json,
}

/// How objects are kept in memory. [`Packed`](Self::Packed) by default, [`Bytes`](Self::Bytes) without the feature `packed`.
///
/// | | memory of a pod of 9 KB | a typed read that is not hot | choose it |
/// |---|---|---|---|
/// | [`Packed`](Layout::Packed) | 0.5 to 0.8 KB | unpack (2 us) and decode | by default |
/// | [`Bytes`](Layout::Bytes) | 7 to 10 KB | decode | if more objects are read often than the hot set has room for |
/// | [`Decoded`](Layout::Decoded) | as packed, and 20 to 40 KB | does not happen twice | if all are read all the time |
///
/// In each layout, what was used a moment ago is hot: the decoded values of all informers of a factory, within
/// [`FactoryBuilder::hot_bytes`](crate::FactoryBuilder::hot_bytes). A read of a hot value costs a lookup. The layout
/// changes costs only, never results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Bytes, compressed against a dictionary of the cache's own ([`PackedStorage`]).
    #[cfg(feature = "packed")]
    #[default]
    Packed,
    /// Bytes as received.
    #[cfg_attr(not(feature = "packed"), default)]
    Bytes,
    /// A decoded value stays for as long as its version lives: the hot set has no bound. The bytes are packed, or without
    /// the feature `packed` as received.
    Decoded,
}

impl Layout {
    /// The storage for the bytes of objects that are not hot.
    pub(crate) fn storage(self) -> Arc<dyn Storage> {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed | Self::Decoded => Arc::new(PackedStorage::new()),
            #[cfg(not(feature = "packed"))]
            Self::Decoded => Arc::new(PlainStorage),
            Self::Bytes => Arc::new(PlainStorage),
        }
    }

    /// For how long decoded values are kept.
    pub(crate) fn keeping(self) -> Retention {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed => Retention::WhileHot,
            Self::Bytes => Retention::WhileHot,
            Self::Decoded => Retention::Always,
        }
    }
}
