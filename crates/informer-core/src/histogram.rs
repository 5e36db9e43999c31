//! Counts of durations.

use std::time::Duration;

/// Counts of durations, in the buckets of client-go's work queue: up to 10 ns, ten times as long, ... up to 10 s, longer.
///
/// ```
/// use std::time::Duration;
/// use informer_core::Histogram;
///
/// let mut histogram = Histogram::default();
/// histogram.observe(Duration::from_millis(10));
/// histogram.observe(Duration::from_secs(60));
/// assert_eq!(histogram.counts(), [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
/// assert_eq!((histogram.count(), histogram.sum()), (2, Duration::from_millis(60_010)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [u64; Self::BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    /// The longest duration of each bucket but the last.
    pub const BOUNDS: [Duration; 10] = [
        Duration::from_nanos(10),
        Duration::from_nanos(100),
        Duration::from_micros(1),
        Duration::from_micros(10),
        Duration::from_micros(100),
        Duration::from_millis(1),
        Duration::from_millis(10),
        Duration::from_millis(100),
        Duration::from_secs(1),
        Duration::from_secs(10),
    ];

    /// Counts a duration.
    pub fn observe(&mut self, duration: Duration) {
        let bucket = Self::BOUNDS.partition_point(|bound| *bound < duration);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(duration);
    }

    /// The number of durations in each bucket.
    pub fn counts(&self) -> [u64; Self::BOUNDS.len() + 1] {
        self.counts
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of the durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }
}
