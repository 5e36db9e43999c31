//! How long a failed item waits before it is tried again.

mod bucket;
mod combined;
mod per_item;

use std::hash::Hash;
use std::time::Duration;

use crate::Time;

pub use bucket::TokenBucket;
pub use combined::{AtMost, MaxOf};
pub use per_item::{Exponential, FastSlow};

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
pub fn default_rate_limiter<K: Clone + Eq + Hash + Send + 'static>() -> MaxOf<K> {
    MaxOf::default()
        .with(Exponential::new(Duration::from_millis(5), Duration::from_secs(1_000)))
        .with(TokenBucket::new(Duration::from_millis(100), 100))
}
