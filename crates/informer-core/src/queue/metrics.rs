//! The numbers of a queue.

use std::collections::BTreeMap;
use std::time::Duration;

/// The numbers of a queue at one moment. Counts begin with the queue. The names in the comments are those of client-go's
/// metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Items that wait to be taken, by priority: those that are ready, and those in process that were added again
    /// (`workqueue_depth`).
    pub depth: BTreeMap<i32, usize>,
    /// Items that wait for their time. They are not part of the depth.
    pub delayed: usize,
    /// Items that workers have.
    pub in_process: usize,
    /// Adds (`workqueue_adds_total`). One that changed nothing, because its item waited already, does not count. A delayed
    /// one counts when its time comes.
    pub adds: u64,
    /// Delayed adds (`workqueue_retries_total`), those that changed nothing included.
    pub retries: u64,
    /// The time from an add until the item was taken (`workqueue_queue_duration_seconds`). A delay is not part of it.
    pub queue_duration: Histogram,
    /// The time from then until the item was done (`workqueue_work_duration_seconds`).
    pub work_duration: Histogram,
    /// The time for which the items in process have been there, added up (`workqueue_unfinished_work_seconds`).
    pub unfinished_work: Duration,
    /// The longest of these times (`workqueue_longest_running_processor_seconds`).
    pub longest_running: Duration,
}

/// Counts of durations, in the buckets of client-go's work queue: up to 10 ns, ten times as long, ... up to 10 s, longer.
///
/// ```
/// use std::time::Duration;
/// use informer_core::queue::Histogram;
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
