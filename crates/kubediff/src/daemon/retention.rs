//! Removes old records, and believes no clock that jumps.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kubediff_history::{Number, Retention};
use tokio_util::sync::CancellationToken;

use crate::follow::say;
use crate::history::writer::{SharedHistory, give_way};

/// How often old records are removed. The first time comes so long after the start.
const RETAIN: Duration = Duration::from_secs(10 * 60);

/// Removes old records from time to time, until it is to stop. The history is locked for one step at a time.
pub(super) async fn run(history: SharedHistory, retention: Retention, stop: CancellationToken) {
    let mut clock = Clock::now();
    while stop.run_until_cancelled(tokio::time::sleep(RETAIN)).await.is_some() {
        let jumped = clock.has_jumped();
        clock = Clock::now();
        if jumped && retention.age.is_some() {
            say("the clock has jumped: no record is removed for its age before the next run");
        }
        let retention = Retention { age: retention.age.filter(|_| !jumped), ..retention.clone() };
        let (of, stopped) = (history.clone(), stop.clone());
        let run = move || {
            let plan = of.lock().reader()?.plan(&retention, Timestamp::now())?;
            if plan.leaves_some() {
                say(
                    "the history has more than a day's records to remove: a run takes a day, and the next one follows in 10 minutes",
                );
            }
            let mut lost = BTreeMap::<String, (u64, Number)>::new();
            while !stopped.is_cancelled() {
                let step = of.lock().retain(&plan)?;
                give_way();
                for it in step.lost {
                    let (records, up_to) = lost.entry(it.sink).or_default();
                    (*records, *up_to) = (*records + it.records, it.up_to);
                }
                if !step.more {
                    break;
                }
            }
            Ok::<_, kubediff_history::Error>(lost)
        };
        match tokio::task::spawn_blocking(run).await.map(|outcome| history.noticing(outcome)) {
            Ok(Ok(lost)) => {
                for (sink, (records, up_to)) in lost {
                    say(&format!(
                        "the sink {sink} has lost {records} records, up to number {up_to}: it is too far behind; see `history.retention.unsent`"
                    ));
                }
            }
            Ok(Err(error)) => say(&format!("old records stay: {error}")),
            Err(_) => return,
        }
    }
}

/// The time of day, and that of a clock that nobody sets.
struct Clock(Timestamp, tokio::time::Instant);

impl Clock {
    /// More than this between the two is a jump.
    const MOST: Duration = Duration::from_secs(60);

    fn now() -> Self {
        Self(Timestamp::now(), tokio::time::Instant::now())
    }

    fn has_jumped(&self) -> bool {
        let passed =
            Timestamp::now().duration_since(self.0) - self.1.elapsed().try_into().unwrap_or_default();
        passed.unsigned_abs() > Self::MOST
    }
}
