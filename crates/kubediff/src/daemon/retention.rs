//! Removes old records, and believes no clock that jumps.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kubediff_history::{Batch, Error, Number, Retention};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::history::notes;
use crate::history::shared::{SharedHistory, give_way};
use crate::text::terminal::say;

/// How often the size is compared with its limit, from the start on.
const LOOK: Duration = Duration::from_secs(10);
/// How often age counts, however often the daemon starts. Age is measured from the time of the clock so long ago: a clock that jumps
/// removes nothing.
const AGE: Duration = Duration::from_secs(10 * 60);

/// Removes old records from time to time, until it is to stop. The history is locked for one step at a time.
pub(super) async fn run(history: SharedHistory, retention: Retention, stop: CancellationToken) {
    let mut keeper = Keeper::new(history, retention, stop.clone());
    loop {
        let (now, at) = (Timestamp::now(), Instant::now());
        let looking = tokio::task::spawn_blocking(move || {
            keeper.look(now, at);
            keeper
        });
        let Ok(looked) = looking.await else { return };
        keeper = looked;
        if stop.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_none() {
            return keeper.tell_losses();
        }
    }
}

/// The limits, and what was done to keep them.
struct Keeper {
    history: SharedHistory,
    retention: Retention,
    stop: CancellationToken,
    /// The time of the clock at the last run in which age counted, perhaps of a process before this one.
    marked: Option<Timestamp>,
    /// The time of the next such run, by a clock that nobody sets.
    due: Instant,
    /// The newest record at the last run in which the number of changes counted.
    counted: Option<u64>,
    lost: BTreeMap<String, (u64, Number)>,
    told: Option<Instant>,
    failed: Option<String>,
}

impl Keeper {
    fn new(history: SharedHistory, retention: Retention, stop: CancellationToken) -> Self {
        let (marked, due, lost) = (None, Instant::now(), BTreeMap::new());
        Self { history, retention, stop, marked, due, counted: None, lost, told: None, failed: None }
    }

    /// Removes what the limits do not keep at this time. Blocks.
    fn look(&mut self, now: Timestamp, at: Instant) {
        let removed = self.remove(now, at);
        let failed = self.history.noticing(removed).err().map(|error| error.to_string());
        if let Some(error) = failed.as_ref().filter(|_| failed != self.failed) {
            say(&format!("old records stay: {error}"));
        }
        self.failed = failed;
        if !self.lost.is_empty() && self.told.is_none_or(|told| at >= told + AGE) {
            self.told = Some(at);
            self.tell_losses();
        }
    }

    fn remove(&mut self, now: Timestamp, at: Instant) -> Result<(), Error> {
        let mut reader = self.history.lock().reader()?;
        let newest = *self.history.newest().borrow();
        let noted = reader.notes()?.get(notes::RETAINED).and_then(|time| time.parse().ok());
        let marked = *self.marked.get_or_insert_with(|| {
            let passed = noted.map_or(Duration::ZERO, |noted| now.duration_since(noted).unsigned_abs());
            self.due = at + AGE.saturating_sub(passed);
            noted.unwrap_or(now)
        });
        let is_due = at >= self.due;
        // To count takes as long as the history is: it is worth it when there are some more.
        let counts = |most: &u64| is_due || self.counted.is_none_or(|last| newest >= last + most / 16);
        let retention = Retention {
            age: self.retention.age.filter(|_| is_due),
            count: self.retention.count.filter(counts),
            event_age: self.retention.event_age.filter(|_| is_due),
            ..self.retention.clone()
        };
        let mut plan = reader.plan(&retention, now.min(marked))?;
        if plan.leaves_some() {
            say(
                "the history has more than a day's records to remove: a run takes a day, and the next one follows in 10 minutes",
            );
        }
        while !self.stop.is_cancelled() {
            reader.prepare(&mut plan)?;
            let step = self.history.lock().retain(&plan)?;
            give_way();
            for it in step.lost {
                let (records, up_to) = self.lost.entry(it.sink).or_default();
                (*records, *up_to) = (*records + it.records, it.up_to);
            }
            if !step.more {
                break;
            }
        }
        if retention.count.is_some() {
            self.counted = Some(newest);
        }
        if (is_due || noted.is_none()) && !self.stop.is_cancelled() {
            (self.marked, self.due) = (Some(now), at + AGE);
            let mut batch = Batch::default();
            batch.note(notes::RETAINED, now.to_string());
            self.history.lock().commit(&batch)?;
        }
        Ok(())
    }

    fn tell_losses(&mut self) {
        for (sink, (records, up_to)) in std::mem::take(&mut self.lost) {
            say(&format!(
                "the sink {sink} has lost {records} records, up to number {up_to}: it is too far behind; see `history.retention.unsent`"
            ));
        }
    }
}
