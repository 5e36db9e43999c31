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
    failures: HashMap<ObjectKey, Failures>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Failures {
    count: u32,
    /// When the key is tried again.
    due: Time,
}

impl Retries {
    /// Retries at the pace of this limiter.
    pub fn new(limiter: impl RateLimiter<ObjectKey> + Send + 'static) -> Self {
        Self { limiter: Box::new(limiter), failures: HashMap::new() }
    }

    /// How many times in a row a key has failed.
    pub fn failures(&self, key: &ObjectKey) -> u32 {
        self.failures.get(key).map_or(0, |failures| failures.count)
    }

    /// A key has failed. Returns how long it waits. An attempt that failed before its time, because the object changed, makes no
    /// later wait longer: in an outage, a busy object would wait for hours after it.
    pub fn failed(&mut self, now: Time, key: &ObjectKey) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        failures.count = failures.count.saturating_add(1);
        if now >= failures.due {
            failures.due = now + self.limiter.when(now, key);
        }
        failures.due.since(now)
    }

    /// A key has not failed, and comes again after `wait`, or later, if many are put off: they come at the limiter's pace. Returns how
    /// long it waits.
    pub fn put_off(&mut self, now: Time, key: &ObjectKey, wait: Duration) -> Duration {
        self.settled(key);
        let pace = self.limiter.when(now, key);
        self.limiter.forget(key);
        wait.max(pace)
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
