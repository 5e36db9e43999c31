//! A limit for all items together.

use std::time::Duration;

use super::RateLimiter;
use crate::Time;

/// A bucket of tokens, which is refilled at an even pace. Each retry takes one, or waits for one that is not there yet.
///
/// A retry is never refused: where more come than the pace allows, waits grow without a bound.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    interval: Duration,
    /// How long it takes to fill the empty bucket.
    filling: Duration,
    /// When it will be full.
    full_at: Time,
}

impl TokenBucket {
    /// A full bucket of `burst` tokens, which gets one in each `interval`. With an interval of 0 nothing waits.
    pub fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, filling: interval.saturating_mul(burst), full_at: Time::ZERO }
    }
}

impl<K> RateLimiter<K> for TokenBucket {
    fn when(&mut self, now: Time, _: &K) -> Duration {
        self.full_at = self.full_at.max(now) + self.interval;
        self.full_at.since(now).saturating_sub(self.filling)
    }

    fn forget(&mut self, _: &K) {}

    fn retries(&self, _: &K) -> u32 {
        0
    }
}
