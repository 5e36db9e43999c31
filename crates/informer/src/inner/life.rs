//! The life of a factory or an informer: how it is asked to stop, which work a stop waits for, and which it cuts off.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::inner::ending::{NotEnded, Unfinished, Work};
use crate::options::resource::ResourceType;
use crate::options::selection::Selection;

/// The life of a factory, or of one of its informers, which is a part of the factory's.
pub(crate) struct Life {
    stop: CancellationToken,
    /// Handler calls that did not end in time are dropped at their next `await`.
    cut: CancellationToken,
    /// The work that runs, of the factory and of all its parts.
    roll: Roll,
    /// The informer whose life this is; `None` for the factory.
    part: Option<Arc<Part>>,
}

struct Part {
    resource: ResourceType,
    selection: Selection,
}

#[derive(Clone, Default)]
struct Roll(Arc<watch::Sender<BTreeMap<u64, Entry>>>);

#[derive(Clone)]
struct Entry {
    part: Option<Arc<Part>>,
    work: Work,
}

/// A place among the work that a stop waits for. The code that starts a task takes a place before it checks whether a stop
/// has begun. So no task begins after the wait.
pub(crate) struct Running {
    roll: Roll,
    number: u64,
}

/// The last part of a bounded stop, in which dropped handler calls end.
const LAST: Duration = Duration::from_millis(100);

impl Life {
    /// A life that ends when `stop` is cancelled, or earlier.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { stop, cut: CancellationToken::new(), roll: Roll::default(), part: None }
    }

    /// The life of an informer, which ends when this one ends, or earlier.
    pub(crate) fn part(&self, resource: ResourceType, selection: Selection) -> Self {
        Self {
            stop: self.stop.child_token(),
            cut: self.cut.child_token(),
            roll: self.roll.clone(),
            part: Some(Arc::new(Part { resource, selection })),
        }
    }

    pub(crate) fn running(&self, work: Work) -> Running {
        let mut number = 0;
        self.roll.0.send_modify(|entries| {
            number = entries.last_key_value().map_or(0, |(last, _)| last + 1);
            entries.insert(number, Entry { part: self.part.clone(), work });
        });
        Running { roll: self.roll.clone(), number }
    }

    /// A token that is cancelled when a stop begins.
    pub(crate) fn stop_token(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// A token that is cancelled when running handler calls are to be dropped.
    pub(crate) fn cut_token(&self) -> CancellationToken {
        self.cut.child_token()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Resolves when a stop begins.
    pub(crate) async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Waits until nothing runs, after a stop has begun.
    pub(crate) async fn ended(&self) {
        // An error means that the sender is gone, but this has it.
        let _ =
            self.roll.0.subscribe().wait_for(|entries| !entries.values().any(|entry| self.has(entry))).await;
    }

    /// As [`Life::ended`], for `limit` at most. Handler calls that run shortly before it are dropped.
    pub(crate) async fn ended_within(&self, limit: Duration) -> Result<(), NotEnded> {
        let last = LAST.min(limit / 10);
        if timeout(limit - last, self.ended()).await.is_ok() {
            return Ok(());
        }
        let unfinished = self.own();
        self.cut.cancel();
        // An error is reported by what still runs.
        let _ = timeout(last, self.ended()).await;
        let still_runs = self.own();
        let unfinished = unfinished.into_iter().filter_map(|(number, Entry { part, work })| {
            let part = part?;
            Some(Unfinished {
                resource: part.resource.clone(),
                selection: part.selection.clone(),
                work,
                still_runs: still_runs.contains_key(&number),
            })
        });
        let unfinished: Vec<_> = unfinished.collect();
        // The last of it may have ended at the limit.
        if unfinished.is_empty() { Ok(()) } else { Err(NotEnded::new(limit, unfinished)) }
    }

    fn own(&self) -> BTreeMap<u64, Entry> {
        let mut entries = self.roll.0.borrow().clone();
        entries.retain(|_, entry| self.has(entry));
        entries
    }

    /// Whether the work belongs to this life.
    fn has(&self, entry: &Entry) -> bool {
        let Some(part) = &self.part else { return true };
        entry.part.as_ref().is_some_and(|of| Arc::ptr_eq(of, part))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.roll.0.send_modify(|entries| {
            entries.remove(&self.number);
        });
    }
}
