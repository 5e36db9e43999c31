//! A factory's hot set, and the sweeps that cool what was not used for some seconds (design D16).

use std::convert::Infallible;
use std::time::Duration;

use informer_core::HotSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The period of the sweeps. Values and bytes stay hot until the second sweep after their last use: for five to ten seconds.
const PERIOD: Duration = Duration::from_secs(5);
/// The number of objects that one slice of a sweep visits. It visits fewer if packing them takes longer than half a
/// millisecond.
const SLICE: usize = 64;

pub(crate) struct Hot {
    pub(crate) set: HotSet,
    /// Held by the informer that sweeps for all informers. When it stops, another running informer takes over: no separate
    /// task could outlive them.
    sweeping: tokio::sync::Mutex<()>,
}

impl Hot {
    pub(crate) fn new(set: HotSet) -> Self {
        Self { set, sweeping: tokio::sync::Mutex::default() }
    }

    /// Sweeps while the future is polled.
    pub(crate) async fn cool(&self) -> Infallible {
        let _for_all = self.sweeping.lock().await;
        let mut ticks = interval_at(Instant::now() + PERIOD, PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let mut ahead = self.set.len();
            while ahead > 0 {
                ahead -= self.set.sweep(ahead.min(SLICE)).min(ahead);
                // The connections of the same thread get their turn.
                tokio::task::yield_now().await;
            }
        }
    }
}
