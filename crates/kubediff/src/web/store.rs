//! The history that the page reads, by several threads at once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use http::StatusCode;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use kubediff_history::{Number, Reader};
use tokio::sync::Semaphore;

use super::problem::Problem;
use crate::ask::Stories;
use crate::history::mask::mask_again;

/// Requests that read at once. Each reader has dictionaries in memory.
const READERS: usize = 4;
/// A record that was seen so long ago is in the history by now.
const SETTLED: SignedDuration = SignedDuration::from_secs(5);

/// The history of the page.
pub(super) struct Store {
    file: PathBuf,
    /// The name of the cluster, else its uid.
    pub(super) cluster: String,
    pub(super) zone: TimeZone,
    /// What `now` is, where somebody else's clock counts.
    now: Option<Timestamp>,
    idle: Mutex<Vec<Masked>>,
    room: Semaphore,
    stories: RwLock<Option<(Stories, Number)>>,
}

/// A reader, and what it masks: hidden values that became known up to a record.
struct Masked {
    reader: Reader,
    last: Number,
    prints: usize,
}

impl Masked {
    fn open(file: &Path) -> Result<Self, kubediff_history::Error> {
        Ok(Self { reader: Reader::open(file)?, last: Number(0), prints: 0 })
    }

    /// Masks what has become known since.
    fn refresh(&mut self, file: &Path) -> Result<(), kubediff_history::Error> {
        let last = self.reader.last()?.map_or(Number(0), |(last, _)| last);
        if last > self.last {
            let prints = self.reader.prints()?.len();
            if prints != self.prints {
                mask_again(&mut self.reader, file)?;
            }
            (self.last, self.prints) = (last, prints);
        }
        Ok(())
    }
}

/// A question's view of the history.
pub(super) struct Asked<'a> {
    pub(super) reader: &'a mut Reader,
    pub(super) store: &'a Store,
    pub(super) now: Zoned,
}

impl Store {
    /// The history in this file.
    pub(super) fn open(
        file: PathBuf,
        zone: TimeZone,
        now: Option<Timestamp>,
    ) -> Result<Self, kubediff_history::Error> {
        let mut first = Masked::open(&file)?;
        let cluster = first.reader.cluster()?;
        Ok(Self {
            file,
            cluster: cluster.name.unwrap_or(cluster.uid),
            zone,
            now,
            idle: Mutex::new(vec![first]),
            room: Semaphore::new(READERS),
            stories: RwLock::new(None),
        })
    }

    /// Runs a question on a thread for blocking work.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&mut Asked<'_>) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphore is never closed.
        let permit = self.room.acquire().await.ok();
        let store = self.clone();
        let answer = tokio::task::spawn_blocking(move || {
            let idle = || store.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let known = idle().pop();
            let mut masked = known.map_or_else(|| Masked::open(&store.file), Ok)?;
            masked.refresh(&store.file)?;
            let now = store.now.unwrap_or_else(Timestamp::now).to_zoned(store.zone.clone());
            let answer = question(&mut Asked { reader: &mut masked.reader, store: &store, now });
            idle().push(masked);
            answer
        });
        let answer = answer.await;
        drop(permit);
        answer.unwrap_or_else(|_| {
            Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The question ended in a mistake of kubediff",
            )
            .hint("Report the message on its standard error."))
        })
    }

    /// The stories of all records up to now.
    pub(super) fn stories(&self, reader: &mut Reader, now: Timestamp) -> Result<Known<'_>, Problem> {
        let last = reader.last()?.map_or(Number(0), |(last, _)| last);
        let is_known = |known: &Option<(Stories, Number)>| known.as_ref().is_some_and(|(_, at)| *at >= last);
        let known = self.stories.read().unwrap_or_else(PoisonError::into_inner);
        if is_known(&known) {
            return Ok(Known(known));
        }
        drop(known);
        let mut writes = self.stories.write().unwrap_or_else(PoisonError::into_inner);
        if !is_known(&writes) {
            let mut stories = match writes.take() {
                Some((stories, _)) => stories,
                None => Stories::open(reader)?,
            };
            stories.catch_up(reader, now.checked_sub(SETTLED).unwrap_or(now))?;
            *writes = Some((stories, last));
        }
        drop(writes);
        Ok(Known(self.stories.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// The stories, while nobody folds more.
pub(super) struct Known<'a>(RwLockReadGuard<'a, Option<(Stories, Number)>>);

impl Known<'_> {
    pub(super) fn stories(&self) -> Option<&Stories> {
        self.0.as_ref().map(|(stories, _)| stories)
    }
}
