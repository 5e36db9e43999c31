//! A factory's hot set, and what lets cool in it what nobody has used for some seconds (design D16).

use std::convert::Infallible;
use std::time::Duration;

use informer_core::HotSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// What was used stays hot until the second look after that: for five to ten seconds.
const PERIOD: Duration = Duration::from_secs(5);
/// So many objects are looked at in a row, fewer where packing them takes longer than half a millisecond.
const SLICE: usize = 64;

pub(crate) struct Hot {
    pub(crate) set: HotSet,
    /// Held by the informer that sweeps for all. When it stops, another one that runs takes over: there is no task that could
    /// outlive them.
    sweeping: tokio::sync::Mutex<()>,
}

impl Hot {
    pub(crate) fn new(set: HotSet) -> Self {
        Self { set, sweeping: tokio::sync::Mutex::default() }
    }

    /// Sweeps, for as long as the future is polled.
    pub(crate) async fn cool(&self) -> Infallible {
        let _for_all = self.sweeping.lock().await;
        let mut ticks = interval_at(Instant::now() + PERIOD, PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let mut ahead = self.set.len();
            while ahead > 0 {
                ahead -= self.set.sweep(ahead.min(SLICE)).min(ahead);
                // Connections have their turn.
                tokio::task::yield_now().await;
            }
        }
    }
}
