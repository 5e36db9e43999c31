//! Options for behaviour that differs between servers.

use std::time::Duration;

/// Options for behaviour that differs between servers. The default is a kube-apiserver 1.37 with default flags.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServeOptions {
    /// How often a watch that allows bookmarks gets one; another comes two seconds before the watch's end.
    pub bookmark_period: Duration,
    /// How long a watch without a timeout lives: a random time from this to twice this.
    pub watch_timeout: Duration,
    /// How long a request waits for a version that the server has not reached yet.
    pub fresh_timeout: Duration,
    /// The minimum size in bytes of a compressed response, for clients that accept gzip; `None` for never.
    pub gzip_from: Option<usize>,
    /// Whether streaming lists are compressed for clients that accept gzip, as servers do from 1.37 on: in many
    /// members, each complete when it is sent.
    pub gzip_watch_members: bool,
    /// Whether `shardSelector` is honoured (KEP-5866: alpha in 1.36 and 1.37, and off by default). If not, it is ignored.
    pub shard_selectors: bool,
    /// Whether lists are answered as from a watch cache: "any version" as a whole, whatever the limit.
    pub watch_cache: bool,
    /// The size of its objects at which a page ends although its limit allows more, as the API permits; `None` for never. A page is in
    /// memory before it is sent, because its end stands before its items.
    pub page_bytes: Option<usize>,
    /// Whether streaming lists are served (`sendInitialEvents`, KEP-3157).
    pub streaming_lists: bool,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            bookmark_period: Duration::from_secs(60),
            watch_timeout: Duration::from_secs(1800),
            fresh_timeout: Duration::from_secs(3),
            gzip_from: Some(128 * 1024),
            gzip_watch_members: true,
            shard_selectors: false,
            watch_cache: true,
            page_bytes: None,
            streaming_lists: true,
        }
    }
}
