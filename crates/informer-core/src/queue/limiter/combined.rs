//! Limiters made of others.

use std::fmt;
use std::time::Duration;

use super::RateLimiter;
use crate::Time;

/// The longest wait of several limiters. Without any, nothing waits.
///
/// ```
/// use std::time::Duration;
/// use informer_core::queue::{Exponential, MaxOf, TokenBucket};
///
/// let limiter = MaxOf::<String>::default()
///     .with(Exponential::new(Duration::from_millis(50), Duration::from_secs(60)))
///     .with(TokenBucket::new(Duration::from_millis(20), 10));
/// ```
pub struct MaxOf<K>(Vec<Box<dyn RateLimiter<K> + Send>>);

impl<K> MaxOf<K> {
    /// Adds a limiter.
    #[must_use]
    pub fn with(mut self, limiter: impl RateLimiter<K> + Send + 'static) -> Self {
        self.0.push(Box::new(limiter));
        self
    }
}

impl<K> Default for MaxOf<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K> RateLimiter<K> for MaxOf<K> {
    fn when(&mut self, now: Time, key: &K) -> Duration {
        // Each of them counts the retry.
        self.0.iter_mut().map(|limiter| limiter.when(now, key)).max().unwrap_or_default()
    }

    fn forget(&mut self, key: &K) {
        self.0.iter_mut().for_each(|limiter| limiter.forget(key));
    }

    fn retries(&self, key: &K) -> u32 {
        self.0.iter().map(|limiter| limiter.retries(key)).max().unwrap_or_default()
    }
}

impl<K> fmt::Debug for MaxOf<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf").field("limiters", &self.0.len()).finish()
    }
}

/// The waits of another limiter, cut to a longest one.
#[derive(Debug, Clone)]
pub struct AtMost<L> {
    limiter: L,
    longest: Duration,
}

impl<L> AtMost<L> {
    /// Waits of `limiter`, but at most `longest`.
    pub fn new(longest: Duration, limiter: L) -> Self {
        Self { limiter, longest }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for AtMost<L> {
    fn when(&mut self, now: Time, key: &K) -> Duration {
        self.limiter.when(now, key).min(self.longest)
    }

    fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.limiter.retries(key)
    }
}
