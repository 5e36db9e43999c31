//! Settings of a reflector, with their defaults.

use std::time::Duration;

use crate::backoff::BackoffConfig;

/// Settings of one reflector.
#[derive(Debug, Clone)]
pub struct ReflectorConfig {
    /// How consistent the initial list is.
    pub first_list: FirstList,
    /// Whether the initial list is a streaming list (KEP-3157) instead of a LIST.
    pub streaming_list: StreamingList,
    /// The page size of paged lists.
    pub page_size: u32,
    /// A watch asks the server to end it after a random time between this and twice this. Less than 5 minutes counts as 5
    /// minutes, as in client-go.
    pub min_watch_timeout: Duration,
    /// A watch without an event or a bookmark for this long counts as silent. Servers send a bookmark about every minute, so
    /// the default allows for two missed ones.
    pub silence_limit: Duration,
    /// A request without a response, or a list without a further item, for this long counts as dead.
    pub response_timeout: Duration,
    /// A streaming list that has not completed its initial events after this time is dropped for a LIST, even if events still
    /// arrive. One that pauses for 30 s is dropped earlier.
    pub initial_events_timeout: Duration,
    /// How long internal errors inside a watch are retried without a list. Zero: they lead to a list at once.
    pub internal_error_retry: Duration,
    /// How often a denied request ([`Status::Denied`](super::Status::Denied)) is repeated.
    pub denied_retry: Duration,
    /// After its schema changed, a resource is listed at a random time within this.
    pub relist_spread: Duration,
    /// For how long no streaming list is requested after one was refused.
    pub streaming_list_retry: Duration,
    /// The waits after failures.
    pub backoff: BackoffConfig,
}

/// How consistent the initial list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstList {
    /// The most recent state: resourceVersion unset.
    #[default]
    Consistent,
    /// Any state that the server has in its watch cache, in pages: resourceVersion `0`. This is cheaper on servers before
    /// 1.34, which answer a consistent list from etcd. It may be older than what another server of the cluster has shown
    /// before.
    Any,
}

/// Whether streaming lists are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamingList {
    /// A plain LIST.
    #[default]
    Never,
    /// A streaming list, or a LIST while the server refuses streaming lists.
    Preferred,
}

impl ReflectorConfig {
    /// The shortest timeout that a watch requests (client-go: `minWatchTimeout`).
    pub const SHORTEST_WATCH_TIMEOUT: Duration = Duration::from_secs(300);
}

impl Default for ReflectorConfig {
    fn default() -> Self {
        Self {
            first_list: FirstList::default(),
            streaming_list: StreamingList::default(),
            page_size: 500,
            min_watch_timeout: Self::SHORTEST_WATCH_TIMEOUT,
            silence_limit: Duration::from_secs(130),
            response_timeout: Duration::from_secs(60),
            initial_events_timeout: Duration::from_secs(180),
            internal_error_retry: Duration::ZERO,
            denied_retry: Duration::from_secs(30),
            relist_spread: Duration::from_secs(30),
            streaming_list_retry: Duration::from_secs(3600),
            backoff: BackoffConfig::default(),
        }
    }
}
