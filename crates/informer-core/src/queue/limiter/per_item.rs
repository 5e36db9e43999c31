//! Limiters that count the failures of each item.
//!
//! They hold a key for each item that failed since it was last forgotten. Somebody who drops an item for good, because its
//! object is gone, forgets it too.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

use super::RateLimiter;
use crate::Time;

/// A map of this capacity is not made smaller.
const KEPT_CAPACITY: usize = 256;

/// Waits that double with each failure of the item in a row.
pub struct Exponential<K> {
    first: Duration,
    longest: Duration,
    failures: Failures<K>,
}

impl<K> Exponential<K> {
    /// Waits from `first` to `longest`. Memory: a key and 4 bytes for each failing item.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: Failures::default() }
    }
}

impl<K: Clone + Eq + Hash> RateLimiter<K> for Exponential<K> {
    fn when(&mut self, _: Time, key: &K) -> Duration {
        let before = self.failures.add(key);
        doubled(self.first, before).min(self.longest)
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn retries(&self, key: &K) -> u32 {
        self.failures.of(key)
    }
}

/// A duration that was doubled so often, or the greatest one.
fn doubled(first: Duration, times: u32) -> Duration {
    let nanos = first.as_nanos();
    match nanos {
        0 => Duration::ZERO,
        _ if times < nanos.leading_zeros() => {
            u64::try_from(nanos << times).map_or(Duration::MAX, Duration::from_nanos)
        }
        _ => Duration::MAX,
    }
}

/// The number of failures of each item that failed.
struct Failures<K>(HashMap<K, u32>);

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Clone + Eq + Hash> Failures<K> {
    /// Counts a failure. Returns the number of those before.
    fn add(&mut self, key: &K) -> u32 {
        match self.0.get_mut(key) {
            Some(failures) => {
                let before = *failures;
                *failures = before.saturating_add(1);
                before
            }
            None => {
                self.0.insert(key.clone(), 1);
                0
            }
        }
    }

    fn of(&self, key: &K) -> u32 {
        self.0.get(key).copied().unwrap_or(0)
    }

    fn forget(&mut self, key: &K) {
        self.0.remove(key);
        if self.0.capacity() > KEPT_CAPACITY && self.0.capacity() / 4 > self.0.len() {
            self.0.shrink_to(2 * self.0.len());
        }
    }
}

impl<K> fmt::Debug for Exponential<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, longest, failures } = self;
        f.debug_struct("Exponential")
            .field("first", first)
            .field("longest", longest)
            .field("failing", &failures.0.len())
            .finish()
    }
}
