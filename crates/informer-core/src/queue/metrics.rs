//! The numbers of a queue.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Histogram;

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
    /// The time from an add until the item was taken (`workqueue_queue_duration_seconds`). A delay is not part of it, nor the time before a controller begins.
    pub queue_duration: Histogram,
    /// The time from then until the item was done (`workqueue_work_duration_seconds`).
    pub work_duration: Histogram,
    /// The time for which the items in process have been there, added up (`workqueue_unfinished_work_seconds`).
    pub unfinished_work: Duration,
    /// The longest of these times (`workqueue_longest_running_processor_seconds`).
    pub longest_running: Duration,
}
