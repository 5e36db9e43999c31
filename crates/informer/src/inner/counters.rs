//! The counters outside of the engine: relaxed atomics that can be read at any time.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use informer_core::engine;
use tokio::time::Instant;

/// A number to which several tasks add. It orders no other memory access.
#[derive(Default)]
pub(crate) struct Counter(engine::Counter);

impl Counter {
    pub(crate) fn add_nanos(&self, time: Duration) {
        self.0.add(nanos(time));
    }
}

impl Deref for Counter {
    type Target = engine::Counter;

    fn deref(&self) -> &engine::Counter {
        &self.0
    }
}

/// The counters of one informer: those of its engine, and those of the code around the engine.
pub(crate) struct Counters {
    engine: Arc<engine::Counters>,
    pub(crate) saves: Counter,
    pub(crate) failed_saves: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) decode_nanos: Counter,
}

impl Counters {
    pub(crate) fn new(engine: Arc<engine::Counters>) -> Self {
        Self {
            engine,
            saves: Counter::default(),
            failed_saves: Counter::default(),
            received_bytes: Counter::default(),
            decode_nanos: Counter::default(),
        }
    }
}

impl Deref for Counters {
    type Target = engine::Counters;

    fn deref(&self) -> &engine::Counters {
        &self.engine
    }
}

/// Measures the calls of one handler, of which one runs at a time.
pub(crate) struct CallMeter {
    made: Instant,
    calls: Counter,
    nanos: Counter,
    began: Moment,
}

impl Default for CallMeter {
    fn default() -> Self {
        Self {
            made: Instant::now(),
            calls: Counter::default(),
            nanos: Counter::default(),
            began: Moment::default(),
        }
    }
}

impl CallMeter {
    pub(crate) fn begin(&self) {
        self.began.set(self.made.elapsed());
    }

    pub(crate) fn end(&self) {
        let Some(took) = self.under_way() else { return };
        self.began.clear();
        self.nanos.add_nanos(took);
        self.calls.add(1);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.get()
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.nanos.get())
    }

    pub(crate) fn under_way(&self) -> Option<Duration> {
        self.began.get().map(|began| self.made.elapsed().saturating_sub(began))
    }
}

/// A time since the creation of its meter, or none.
#[derive(Default)]
struct Moment(Counter);

impl Moment {
    fn set(&self, since_start: Duration) {
        // The value 0 means none.
        self.0.set(nanos(since_start).saturating_add(1));
    }

    fn clear(&self) {
        self.0.set(0);
    }

    fn get(&self) -> Option<Duration> {
        self.0.get().checked_sub(1).map(Duration::from_nanos)
    }
}

/// A `u64` of nanoseconds lasts for 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The metrics of one handler, or of one stream of changes: a stream has no calls, only a backlog.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerMetrics {
    /// The name from [`Subscribe::named`](crate::Subscribe::named), or else the lowest free number.
    pub name: String,
    /// Pending changes.
    pub backlog: usize,
    /// Calls that have ended.
    pub calls: u64,
    /// The duration of these calls together, with what they awaited.
    pub call_time: Duration,
    /// How long the running call has taken.
    pub call_under_way: Option<Duration>,
}

/// The lowest number from 1 on that is not used.
pub(crate) fn lowest_free(used: impl Iterator<Item = usize>) -> usize {
    let used: HashSet<_> = used.collect();
    (1..=used.len()).find(|number| !used.contains(number)).unwrap_or(used.len() + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_lowest_free_number_fills_gaps() {
        let lowest_free = |used: &[usize]| super::lowest_free(used.iter().copied());
        assert_eq!(lowest_free(&[]), 1);
        assert_eq!(lowest_free(&[1, 2, 3]), 4);
        assert_eq!(lowest_free(&[3, 1]), 2);
        assert_eq!(lowest_free(&[7, 9]), 1);
        // Named handlers have the number 0.
        assert_eq!(lowest_free(&[0, 0, 1]), 2);
    }
}
