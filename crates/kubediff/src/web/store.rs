//! The history that the page reads, by several threads at once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, TryLockError};
use std::time::{Duration, Instant};

use http::StatusCode;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use kubediff_history::{Location, Number, Patience, Reader, Sight};
use tokio::sync::Semaphore;

use super::problem::Problem;
use crate::ask::Stories;
use crate::history::mask::mask_again;

/// Requests that read at once, and those of one user. Each reader has dictionaries in memory.
const READERS: usize = 4;
const OF_USER: usize = 2;
/// So long a user's question may have a reader.
const LONGEST: Duration = Duration::from_secs(30);
/// A record that was seen so long ago is in the history by now.
const SETTLED: SignedDuration = SignedDuration::from_secs(5);

/// So long after the last record, time decides nothing more.
const WEAK: SignedDuration = SignedDuration::from_secs(10);
/// Time is let pass so often at most.
const SOON: SignedDuration = SignedDuration::from_secs(1);

/// A page waits so long for stories.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the history of the page is.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) location: Location,
    /// The cluster, where a database has several.
    pub(crate) cluster: Option<String>,
    /// The file beside which its key is.
    pub(crate) beside: Option<PathBuf>,
}

/// The history of the page.
pub(super) struct Store {
    place: Place,
    /// The name of the cluster, else its uid.
    pub(super) cluster: String,
    pub(super) zone: TimeZone,
    /// A clock that stands still, for tests.
    now: Option<Timestamp>,
    idle: Mutex<Vec<Masked>>,
    room: Arc<Semaphore>,
    /// The turns of users by their names.
    turns: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    stories: RwLock<Option<Folded>>,
    /// Folds them from all records: it has no limit.
    folder: Mutex<Option<Masked>>,
    /// Which file it was at the start.
    identity: Option<(u64, u64)>,
    /// The reader whose revisions are compared.
    witness: Mutex<Reader>,
}

/// The stories up to a record, and up to a time.
struct Folded {
    stories: Stories,
    last: Number,
    until: Timestamp,
}

/// A file by its device and number, where it has them.
fn identity(file: &Path) -> std::io::Result<Option<(u64, u64)>> {
    let found = file.metadata()?;
    #[cfg(unix)]
    let identity = {
        use std::os::unix::fs::MetadataExt as _;
        Some((found.dev(), found.ino()))
    };
    #[cfg(not(unix))]
    let identity = found.is_file().then_some((0, 0));
    Ok(identity)
}

/// A reader, and what it masks: hidden values that became known up to a record.
struct Masked {
    reader: Reader,
    last: Number,
    prints: usize,
}

impl Masked {
    fn open(place: &Place) -> Result<Self, kubediff_history::Error> {
        let reader = Reader::at(&place.location, place.cluster.as_deref())?;
        Ok(Self { reader, last: Number(0), prints: 0 })
    }

    /// Masks what has become known since.
    fn refresh(&mut self, place: &Place) -> Result<(), kubediff_history::Error> {
        let last = self.reader.last()?.map_or(Number(0), |(last, _)| last);
        if last > self.last {
            let prints = self.reader.prints()?.len();
            if prints != self.prints {
                mask_again(&mut self.reader, place.beside.as_deref())?;
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
    /// The part of the history that the sender may see.
    pub(super) seen: &'a Seen,
    /// Whether the answer looked only as far as there was time for.
    pub(super) is_partial: bool,
}

/// Somebody who waits for an answer, until this is dropped.
#[derive(Default)]
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The part of the history that the sender of a question may see; all of it by default.
#[derive(Clone, Default, Hash)]
pub(super) struct Seen {
    pub(super) sight: Option<Arc<Sight>>,
    /// The name of the person or program that asks, where it has one.
    pub(super) user: Option<Arc<str>>,
}

impl Store {
    /// The history at this place.
    pub(super) fn open(
        place: Place,
        zone: TimeZone,
        now: Option<Timestamp>,
    ) -> Result<Self, kubediff_history::Error> {
        let mut first = Masked::open(&place)?;
        let identity = place.location.file().and_then(|file| identity(file).ok()).flatten();
        let cluster = first.reader.cluster()?;
        let witness = Mutex::new(Masked::open(&place)?.reader);
        Ok(Self {
            place,
            cluster: cluster.name.unwrap_or(cluster.uid),
            zone,
            now,
            idle: Mutex::new(vec![first]),
            room: Arc::new(Semaphore::new(READERS)),
            turns: Mutex::default(),
            stories: RwLock::new(None),
            folder: Mutex::new(None),
            identity,
            witness,
        })
    }

    /// Runs a question on a thread for blocking work. The answer is made of what its sender may see. The question ends soon after nobody
    /// waits for it any more, and keeps its room until then.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        seen: Seen,
        question: impl FnOnce(&mut Asked<'_>) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphores are never closed.
        let turn = match seen.user.clone().map(|user| self.turn(user)) {
            Some(turn) => turn.acquire_owned().await.ok(),
            None => None,
        };
        let room = self.room.clone().acquire_owned().await.ok();
        let store = self.clone();
        let waiting = Waiting::default();
        let is_over = waiting.0.clone();
        let answer = tokio::task::spawn_blocking(move || {
            let _room = (turn, room);
            store.is_the_same()?;
            let idle = || store.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let known = idle().pop();
            let mut masked = known.map_or_else(|| Masked::open(&store.place), Ok)?;
            // First: the reader has the patience of its last question.
            let deadline = seen.user.as_ref().map(|_| Instant::now() + LONGEST);
            masked.reader.wait(&Patience { deadline, is_over })?;
            masked.refresh(&store.place)?;
            masked.reader.limit(seen.sight.as_deref())?;
            let now = store.now.unwrap_or_else(Timestamp::now).to_zoned(store.zone.clone());
            let reader = &mut masked.reader;
            let answer = question(&mut Asked { reader, store: &store, now, seen: &seen, is_partial: false });
            idle().push(masked);
            answer
        });
        answer.await.unwrap_or_else(|_| {
            Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The question ended in a mistake of kubediff",
            )
            .hint("Report the message on its standard error."))
        })
    }

    /// The turns of a user: heavy questions of one leave readers to the others.
    fn turn(&self, user: Arc<str>) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turns| turns.available_permits() < OF_USER || Arc::strong_count(turns) > 1);
        turns.entry(user).or_insert_with(|| Arc::new(Semaphore::new(OF_USER))).clone()
    }

    /// Refuses to answer from another file than the one at the start.
    fn is_the_same(&self) -> Result<(), Problem> {
        let problem = |title: &str| {
            Problem::new(StatusCode::GONE, title)
                .hint("Start `kubediff` again, with the file that it is to show.")
        };
        let Some(file) = self.place.location.file() else { return Ok(()) };
        match identity(file) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_) => Err(problem("The file of the history is another one now")),
            Err(_) => Err(problem("The file of the history is gone")),
        }
    }

    /// A number that stays the same as long as nobody writes to the history.
    pub(super) fn revision(&self) -> Result<i64, Problem> {
        Ok(self.witness.lock().unwrap_or_else(PoisonError::into_inner).revision()?)
    }

    /// Whether all records are folded, and time decides nothing more about their stories.
    pub(super) fn is_settled(&self, reader: &mut Reader, now: Timestamp) -> Result<bool, Problem> {
        let (_, last_at) = reader.last()?.unwrap_or_default();
        // Somebody folds, perhaps a long log.
        if let Err(TryLockError::WouldBlock) = self.stories.try_read() {
            return Ok(false);
        }
        let known = self.stories(reader, now)?;
        Ok(known.0.as_ref().is_some_and(|known| known.until.duration_since(last_at) >= WEAK))
    }

    /// The stories for a page, which does not wait long: `None` while a long log is folded for the first time.
    pub(super) fn stories_soon(
        &self,
        reader: &mut Reader,
        now: Timestamp,
    ) -> Result<Option<Known<'_>>, Problem> {
        let until = Instant::now() + PATIENCE;
        while let Err(TryLockError::WouldBlock) = self.stories.try_read() {
            if Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(PATIENCE / 50);
        }
        self.stories(reader, now).map(Some)
    }

    /// The stories of all records up to now. Whether a reader may know one of them is seen when it is asked for.
    pub(super) fn stories(&self, reader: &mut Reader, now: Timestamp) -> Result<Known<'_>, Problem> {
        let (last, last_at) = reader.last()?.unwrap_or_default();
        let time_passes = |known: &Folded| {
            let is_settled = known.until.duration_since(last_at) >= WEAK;
            !is_settled && now.duration_since(known.until) > SETTLED + SOON
        };
        let is_known = |known: &Option<Folded>| {
            known.as_ref().is_some_and(|known| known.last >= last && !time_passes(known))
        };
        let known = self.stories.read().unwrap_or_else(PoisonError::into_inner);
        if is_known(&known) {
            return Ok(Known(known));
        }
        drop(known);
        let mut writes = self.stories.write().unwrap_or_else(PoisonError::into_inner);
        if !is_known(&writes) {
            let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
            let folder = match &mut *folder {
                Some(folder) => folder,
                none => none.insert(Masked::open(&self.place)?),
            };
            folder.refresh(&self.place)?;
            let mut stories = match writes.take() {
                Some(folded) => folded.stories,
                None => Stories::open(&mut folder.reader)?,
            };
            let until = now.checked_sub(SETTLED).unwrap_or(now);
            stories.catch_up(&mut folder.reader, until)?;
            *writes = Some(Folded { stories, last, until });
        }
        drop(writes);
        Ok(Known(self.stories.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// The stories, while nobody folds more.
pub(super) struct Known<'a>(RwLockReadGuard<'a, Option<Folded>>);

impl Known<'_> {
    pub(super) fn stories(&self) -> Option<&Stories> {
        self.0.as_ref().map(|folded| &folded.stories)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use kubediff_history::{
        Batch, Body, ChangeRecord, Cluster, Filter, History, ObjectId, Observation, Page, Settings, What,
    };

    use super::*;

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let cluster = Cluster { uid: "1".to_owned(), name: None };
        let mut history = History::open(&path, &cluster, &Settings::default()).unwrap();
        let mut batch = Batch::default();
        let object = ObjectId {
            resource: "pods".to_owned(),
            name: "a".to_owned(),
            uid: "1".to_owned(),
            ..ObjectId::default()
        };
        let record = ChangeRecord { object, summary: "added".to_owned(), ..ChangeRecord::default() };
        let body = Body::redacted("{}");
        batch.observe(Observation { record, body, what: What::Change, replaces: None });
        history.commit(&batch).unwrap();
        let place = Place { location: Location::File(path.clone()), cluster: None, beside: Some(path) };
        let store = Arc::new(Store::open(place, TimeZone::UTC, None).unwrap());
        let (begins, began) = tokio::sync::oneshot::channel();
        let (ends, ended) = tokio::sync::oneshot::channel();
        let long = move |asked: &mut Asked<'_>| {
            begins.send(()).unwrap();
            let until = Instant::now() + Duration::from_secs(30);
            while Instant::now() < until {
                if let Err(error) = asked.reader.records(&Filter::default(), &Page::newest(10)) {
                    let _ = ends.send(error);
                    break;
                }
            }
            Ok(())
        };
        let asking = store.clone();
        let asking = tokio::spawn(async move { asking.ask(Seen::default(), long).await });
        began.await.unwrap();
        asking.abort();
        let ended = ended.await;
        assert!(matches!(ended, Ok(kubediff_history::Error::Late)), "{ended:?}");
        // The reader answers the next question.
        let last = store
            .ask(Seen::default(), |asked| Ok(asked.reader.records(&Filter::default(), &Page::newest(10))?));
        assert_eq!(last.await.unwrap().records.len(), 1);
    }

    #[tokio::test]
    async fn heavy_questions_of_one_user_leave_readers_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let cluster = Cluster { uid: "1".to_owned(), name: None };
        let _history = History::open(&path, &cluster, &Settings::default()).unwrap();
        let place = Place { location: Location::File(path.clone()), cluster: None, beside: Some(path) };
        let store = Arc::new(Store::open(place, TimeZone::UTC, None).unwrap());
        let of = |user: &str| Seen { user: Some(user.into()), ..Seen::default() };
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let heavy: Vec<_> = (0..READERS + 1)
            .map(|_| {
                let (store, seen, gate) = (store.clone(), of("jane"), gate.clone());
                tokio::spawn(async move {
                    let wait = move |_: &mut Asked<'_>| {
                        drop(gate.1.wait_while(gate.0.lock().unwrap(), |is_open| !*is_open).unwrap());
                        Ok(())
                    };
                    store.ask(seen, wait).await
                })
            })
            .collect();
        while store.room.available_permits() > READERS - OF_USER {
            tokio::task::yield_now().await;
        }
        let other = tokio::time::timeout(Duration::from_secs(30), store.ask(of("joe"), |_| Ok(()))).await;
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
        assert!(other.is_ok_and(|answer| answer.is_ok()));
        for question in heavy {
            assert!(question.await.unwrap().is_ok());
        }
    }
}
