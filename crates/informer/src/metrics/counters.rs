//! What is counted beside the engine: relaxed atomics, read whenever somebody looks.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use informer_core::engine;
use tokio::time::Instant;

/// One number that several tasks add to. It orders nothing else.
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

/// The counters of one informer: its engine's, and those of what is around the engine.
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

/// Measures the calls of one handler, which come one at a time.
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

/// A time since some start, or none.
#[derive(Default)]
struct Moment(Counter);

impl Moment {
    fn set(&self, since_start: Duration) {
        // 0 means none.
        self.0.set(nanos(since_start).saturating_add(1));
    }

    fn clear(&self) {
        self.0.set(0);
    }

    fn get(&self) -> Option<Duration> {
        self.0.get().checked_sub(1).map(Duration::from_nanos)
    }
}

/// Enough for 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
