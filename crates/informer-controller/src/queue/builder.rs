//! The choices of a work queue.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use informer_core::queue::{Config, RateLimiter, default_rate_limiter};

use super::WorkQueue;

/// The choices of a [`WorkQueue`].
///
/// ```
/// use std::time::Duration;
/// use informer::ObjectKey;
/// use informer_controller::queue::{Exponential, WorkQueue};
///
/// let queue: WorkQueue<ObjectKey> = WorkQueue::builder()
///     .name("pods")
///     .rate_limiter(Exponential::new(Duration::from_millis(50), Duration::from_secs(60)))
///     .build();
/// ```
#[must_use]
pub struct WorkQueueBuilder<K> {
    pub(super) name: String,
    pub(super) limiter: Box<dyn RateLimiter<K> + Send>,
    pub(super) config: Config,
}

impl<K: Clone + Eq + Hash + Send + 'static> Default for WorkQueueBuilder<K> {
    fn default() -> Self {
        let limiter = Box::new(default_rate_limiter());
        Self { name: String::new(), limiter, config: Config::default() }
    }
}

impl<K: Clone + Eq + Hash> WorkQueueBuilder<K> {
    /// The name of the queue in metrics. The default is empty.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How long [`WorkQueue::add_rate_limited`] delays an item. The default is that of client-go: 5 ms per item, doubling to
    /// 1000 s, and 10 per second overall after a burst of 100.
    ///
    /// Calls of a limiter come one at a time. Meanwhile other tasks can add, take and finish items. The limiter must not call
    /// methods of the queue that ask the limiter: it would wait for itself.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<K> + Send + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// How much longer than an item an otherwise equal one waits whose priority is lower by one. The default is one second
    /// ([`Config::handicap`]).
    pub fn handicap(mut self, handicap: Duration) -> Self {
        self.config.handicap = handicap;
        self
    }

    /// Makes the queue.
    pub fn build(self) -> WorkQueue<K> {
        WorkQueue::of(self)
    }
}

impl<K> fmt::Debug for WorkQueueBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueueBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
