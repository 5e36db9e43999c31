//! The clock for operations that take less time than a look at the clock.

use std::time::{Duration, Instant};

const LEAST: u32 = 10;

/// Repeats an operation for this time, and returns its mean time in nanoseconds.
pub fn mean(time: Duration, mut operation: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut count = 0_u32;
    let mut batch = 1_u32;
    loop {
        // The loop reads the clock seldom, because that takes as long as a read of the cache.
        for _ in 0..batch {
            operation();
        }
        count = count.saturating_add(batch);
        let elapsed = start.elapsed();
        if elapsed >= time && count >= LEAST {
            return elapsed.as_nanos() as f64 / f64::from(count);
        }
        if elapsed < time / 100 {
            batch = batch.saturating_mul(2);
        }
    }
}
