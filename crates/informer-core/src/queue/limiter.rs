//! How long a failed item waits before it is tried again.

mod bucket;
mod per_item;

use std::hash::Hash;
use std::time::Duration;

use crate::Time;

pub use bucket::TokenBucket;
pub use per_item::Exponential;

/// Decides how long a failed item waits.
///
/// ```
/// use std::time::Duration;
/// use informer_core::Time;
/// use informer_core::queue::{Exponential, RateLimiter};
///
/// let mut limiter = Exponential::new(Duration::from_millis(5), Duration::from_secs(1_000));
/// let waits: Vec<_> = (0..4).map(|_| limiter.when(Time::ZERO, &"shop/cart").as_millis()).collect();
/// assert_eq!(waits, [5, 10, 20, 40]);
/// assert_eq!(limiter.retries(&"shop/cart"), 4);
///
/// limiter.forget(&"shop/cart");
/// assert_eq!(limiter.when(Time::ZERO, &"shop/cart").as_millis(), 5);
/// ```
pub trait RateLimiter<K> {
    /// Counts a retry of the item, and returns how long it waits from `now` on. The time never goes back.
    fn when(&mut self, now: Time, key: &K) -> Duration;

    /// Forgets the retries of the item, because it succeeded or is not tried again.
    fn forget(&mut self, key: &K);

    /// The number of retries of the item since it was last forgotten; 0 if the limiter does not count them.
    fn retries(&self, key: &K) -> u32;
}

/// The limiter that client-go's controllers have by default: the longer wait of 5 ms per item, doubling to 1000 s, and of ten
/// retries per second overall after a burst of 100.
pub fn default_rate_limiter<K: Clone + Eq + Hash + Send + 'static>() -> impl RateLimiter<K> + Send + 'static {
    let per_item = Exponential::new(Duration::from_millis(5), Duration::from_secs(1_000));
    DefaultLimiter { per_item, overall: TokenBucket::new(Duration::from_millis(100), 100) }
}

/// The longer wait of both limiters.
struct DefaultLimiter<K> {
    per_item: Exponential<K>,
    overall: TokenBucket,
}

impl<K: Clone + Eq + Hash> RateLimiter<K> for DefaultLimiter<K> {
    fn when(&mut self, now: Time, key: &K) -> Duration {
        // Both count the retry.
        self.per_item.when(now, key).max(self.overall.when(now, key))
    }

    fn forget(&mut self, key: &K) {
        self.per_item.forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.per_item.retries(key)
    }
}
