//! How often keys have failed, and how long each waits.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use crate::queue::RateLimiter;
use crate::{ObjectKey, Time};

/// The failures of keys in a row, and the pace of their retries.
pub struct Retries {
    limiter: Box<dyn RateLimiter<ObjectKey> + Send>,
    /// Only of keys that fail.
    failures: HashMap<ObjectKey, u32>,
}

impl Retries {
    /// Retries at the pace of this limiter.
    pub fn new(limiter: impl RateLimiter<ObjectKey> + Send + 'static) -> Self {
        Self { limiter: Box::new(limiter), failures: HashMap::new() }
    }

    /// How many times in a row a key has failed.
    pub fn failures(&self, key: &ObjectKey) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }

    /// A key has failed. Returns how long it waits.
    pub fn failed(&mut self, now: Time, key: &ObjectKey) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        self.limiter.when(now, key)
    }

    /// A key does not fail any more, or is not tried again.
    pub fn settled(&mut self, key: &ObjectKey) {
        self.failures.remove(key);
        self.limiter.forget(key);
    }
}

impl fmt::Debug for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retries").field("failing", &self.failures.len()).finish_non_exhaustive()
    }
}
