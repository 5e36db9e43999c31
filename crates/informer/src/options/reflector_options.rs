//! The requests of reflectors, and the times of their lists and watches.

use std::time::Duration;

use informer_core::backoff::BackoffConfig;
use informer_core::reflector::ReflectorConfig;

use crate::{FirstListChoice, StreamingListChoice};

/// The requests of a factory's reflectors, and the times of their lists and watches
/// ([`FactoryBuilder::reflector`](crate::FactoryBuilder::reflector)). Later releases may add options: begin with the default.
///
/// ```
/// use std::time::Duration;
/// use informer::ReflectorOptions;
///
/// let mut options = ReflectorOptions::default();
/// assert_eq!((options.page_size, options.silence_limit), (500, Duration::from_secs(130)));
/// options.page_size = 100;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReflectorOptions {
    /// How consistent the initial list is. [`FirstListChoice::Auto`] by default.
    pub first_list: FirstListChoice,
    /// Whether lists are streaming lists. [`StreamingListChoice::Auto`] by default.
    pub streaming_list: StreamingListChoice,
    /// The number of objects in a page of a paged list ([`FirstListChoice::Any`]). 500 by default. Zero disables paging.
    pub page_size: u32,
    /// The backoff after failures. [`Informer::set_backoff`](crate::Informer::set_backoff) sets it for one informer.
    pub backoff: BackoffConfig,
    /// A watch asks the server to end it after a random time between this and twice this. At least 5 minutes.
    pub min_watch_timeout: Duration,
    /// A watch without an event or a bookmark for this long counts as dead. 130 s by default: two missed bookmarks.
    pub silence_limit: Duration,
    /// A request without an answer, or a list without a further object, for this long counts as dead. 60 s by default.
    pub response_timeout: Duration,
    /// The deadline of a streaming list. If its initial events have not ended by then, the informer aborts it and sends a
    /// LIST. 180 s by default. A streaming list that pauses for 30 s is aborted earlier.
    pub initial_events_timeout: Duration,
    /// The interval at which a denied request ([`Status::Denied`](crate::Status::Denied)) is retried, before jitter. 30 s by
    /// default.
    pub denied_retry: Duration,
    /// How soon informers react to changed schemas. The factory asks the server at most once in this time whether its
    /// schemas have changed. Each informer of a changed schema lists within this time, at a random moment. 30 s by default.
    ///
    /// An object can read differently at an unchanged resourceVersion: when a definition gets other defaults, or when the
    /// server is upgraded. The list reveals the differences and dispatches them as updates (contract L14). To notice a
    /// changed schema, the factory sends one request for all its informers: the index at `/openapi/v3`, some kilobytes. It
    /// is sent soon after the start and when a watch ends before its time; then at growing intervals, at least every ten
    /// minutes.
    pub schema_pace: Duration,
    /// How long internal errors inside of a watch are retried without a list. Zero, the default: such an error leads to a
    /// re-list.
    pub internal_error_retry: Duration,
}

impl Default for ReflectorOptions {
    fn default() -> Self {
        let config = ReflectorConfig::default();
        Self {
            first_list: FirstListChoice::default(),
            streaming_list: StreamingListChoice::default(),
            page_size: config.page_size,
            backoff: config.backoff,
            min_watch_timeout: config.min_watch_timeout,
            silence_limit: config.silence_limit,
            response_timeout: config.response_timeout,
            initial_events_timeout: config.initial_events_timeout,
            denied_retry: config.denied_retry,
            schema_pace: config.relist_spread,
            internal_error_retry: config.internal_error_retry,
        }
    }
}

impl ReflectorOptions {
    /// The settings of the reflectors, except the choices that depend on the server.
    pub(crate) fn config(&self) -> ReflectorConfig {
        ReflectorConfig {
            page_size: self.page_size,
            backoff: self.backoff.clone(),
            min_watch_timeout: self.min_watch_timeout,
            silence_limit: self.silence_limit,
            response_timeout: self.response_timeout,
            initial_events_timeout: self.initial_events_timeout,
            denied_retry: self.denied_retry,
            relist_spread: self.schema_pace,
            internal_error_retry: self.internal_error_retry,
            ..ReflectorConfig::default()
        }
    }
}
