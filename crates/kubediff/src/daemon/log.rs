//! The history as one sink reads it: the records that routes lead to it, and how far it has come.

mod event;
mod milestones;
mod routed;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kubediff_delivery::{Log, Page, Record as Parcelled, Settled};
use kubediff_history::{DeadLetter, Error, Ids, Number, Page as HistoryPage};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::history::shared::{SharedHistory, WRITE_AGAIN};
use crate::text::terminal::say;
pub(super) use routed::Routed;

/// The most dead letters that are remembered for the records after them, and that are read at a time to be sent again.
const REMEMBERED: usize = 1_000;

/// How far a sink has come.
pub(super) struct Place {
    pub(super) position: u64,
    /// How many dead letters it has.
    pub(super) dead: u64,
    /// The latest of them, the newest first.
    pub(super) letters: Vec<DeadLetter>,
    pub(super) tail: Option<String>,
}

/// The history for one sink.
#[derive(Clone)]
pub(super) struct SinkLog {
    sink: Arc<str>,
    pub(super) history: SharedHistory,
    routed: Arc<Routed>,
    /// Whether it gets stories.
    folds: bool,
    /// The newest number that it may read.
    newest: watch::Receiver<u64>,
    stop: CancellationToken,
}

/// Why the history cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogError {
    #[error(transparent)]
    History(#[from] Error),
    #[error("the thread that reads the history has ended")]
    Thread(#[from] tokio::task::JoinError),
}

impl SinkLog {
    pub(super) fn new(
        name: &str,
        history: SharedHistory,
        routed: Arc<Routed>,
        stop: CancellationToken,
    ) -> Self {
        let folds = routed.folds(name);
        let newest = if folds { history.decided() } else { history.told() };
        Self { sink: name.into(), history, routed, folds, newest, stop }
    }

    /// The ids of the records.
    pub(super) fn ids(&self) -> Ids {
        self.routed.ids()
    }

    /// How far the sink has come.
    pub(super) fn place(&self) -> Result<Place, Error> {
        self.routed.ask(|reader| {
            let sinks = reader.sinks()?;
            let (position, dead, tail) = match sinks.into_iter().find(|sink| *sink.name == *self.sink) {
                Some(sink) => (sink.position.0, sink.dead, sink.tail),
                None => (0, 0, None),
            };
            let letters = reader.dead_letters(&self.sink, &HistoryPage::newest(REMEMBERED))?;
            Ok(Place { position, dead, letters, tail })
        })
    }

    /// Gives the dead letters, the oldest first, as long as `taken` returns true: those that still exist and that the routes
    /// still let through. Blocks.
    pub(super) fn each_dead_letter(&self, mut taken: impl FnMut(Parcelled) -> bool) -> Result<(), Error> {
        let mut page = HistoryPage::oldest(REMEMBERED);
        loop {
            let letters = self.routed.ask(|reader| reader.dead_letters(&self.sink, &page))?;
            let Some(last) = letters.last() else { return Ok(()) };
            page = page.after(last.number);
            for letter in letters {
                let record = self.routed.one(letter.number.0)?;
                if record.is_some_and(|record| record.of(&self.sink).is_some_and(|it| !taken(it.clone()))) {
                    return Ok(());
                }
            }
        }
    }

    /// Blocks.
    fn page(&self, after: u64, records: usize, bytes: usize) -> Result<Page, Error> {
        let routed = self.routed.page(after, self.folds)?;
        let through = routed.through_for(self.folds);
        let mut page = Page { records: Vec::new(), through: after };
        let mut size = 0;
        for record in routed.records.iter().filter(|record| record.number > after && record.number <= through)
        {
            if let Some(parcelled) = record.of(&self.sink) {
                size += parcelled.entry.bytes;
                if !page.records.is_empty() && (page.records.len() >= records || size > bytes) {
                    return Ok(page);
                }
                page.records.push(parcelled.clone());
            }
            page.through = record.number;
        }
        page.through = through.max(after);
        Ok(page)
    }
}

impl Log for SinkLog {
    type Error = LogError;

    async fn read(&self, after: u64, records: usize, bytes: usize) -> Result<Page, LogError> {
        let log = self.clone();
        let read = move || log.history.noticing(log.page(after, records, bytes));
        Ok(tokio::task::spawn_blocking(read).await??)
    }

    fn edition(&self) -> u64 {
        self.routed.edition()
    }

    async fn store(&self, settled: Settled) -> Result<(), LogError> {
        let log = self.clone();
        let dead = settled.dead.into_iter().map(|letter| DeadLetter {
            number: Number(letter.number),
            object: letter.object,
            reason: letter.reason.into(),
        });
        let settled = kubediff_history::Settled {
            position: Number(settled.position),
            dead: dead.collect(),
            resent: settled.resent.into_iter().map(Number).collect(),
            tail: settled.tail.map(Into::into),
        };
        let settled = Arc::new(settled);
        loop {
            let (log, settled) = (log.clone(), settled.clone());
            let stored = move || log.history.noticing(log.history.lock().settle_sink(&log.sink, &settled));
            match tokio::task::spawn_blocking(stored).await? {
                // To begin again would send again what the sink has.
                Err(error) if error.is_passing() => {
                    let wait = self.stop.run_until_cancelled(tokio::time::sleep(WRITE_AGAIN));
                    if wait.await.is_none() {
                        return Err(error.into());
                    }
                }
                stored => return Ok(stored?),
            }
        }
    }

    fn went_back(&self, position: u64, from: u64) {
        say(&format!(
            "the sink {} has lost what it had after number {position}: the records up to {from} are sent again, as far as the \
             history has them",
            self.sink
        ));
    }

    async fn grown(&self, after: u64) -> u64 {
        let mut newest = self.newest.clone();
        let grown = newest.wait_for(|newest| *newest > after).await.map(|newest| *newest);
        match grown {
            Ok(newest) => newest,
            // The history is closed: nothing more will come.
            Err(_) => std::future::pending().await,
        }
    }
}
