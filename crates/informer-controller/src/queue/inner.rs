//! What the handles of a queue share: the queue under its lock, its user code outside of it, and the clock.

use std::hash::Hash;
use std::time::Duration;

use informer_core::Time;
use informer_core::queue::{Add, RateLimiter};
use tokio::time::Instant;

use super::builder::GroupOf;
use super::shared::Shared;
use crate::sync::{Mutex, lock};

pub(super) struct Inner<K> {
    pub(super) name: String,
    pub(super) shared: Shared<K>,
    pub(super) limiter: Mutex<Box<dyn RateLimiter<K> + Send>>,
    pub(super) group: Option<GroupOf<K>>,
    pub(super) started: Instant,
}

impl<K: Clone + Eq + Hash> Inner<K> {
    pub(super) fn now(&self) -> Time {
        Time::from_start(self.started.elapsed())
    }

    /// The moment of a time of this queue; a distant one instead of one that clocks cannot tell.
    pub(super) fn moment(&self, at: Time) -> Instant {
        const DISTANT: Duration = Duration::from_secs(365 * 86_400);
        self.started.checked_add(at.since(Time::ZERO)).unwrap_or_else(|| Instant::now() + DISTANT)
    }

    pub(super) fn add(&self, key: K, add: Add) {
        let group = self.group.as_ref().map_or(0, |group| group(&key));
        let now = self.now();
        self.shared.change(|queue| queue.add_to(now, group, key, add));
    }

    pub(super) fn done(&self, key: &K) {
        let now = self.now();
        self.shared.change(|queue| queue.done(now, key));
    }

    /// Counts a retry, and returns how long the item is to wait.
    pub(super) fn back_off(&self, key: &K) -> Duration {
        let mut limiter = lock(&self.limiter);
        // Read under the lock: the limiter is promised that times do not go back.
        let now = self.now();
        limiter.when(now, key)
    }
}
