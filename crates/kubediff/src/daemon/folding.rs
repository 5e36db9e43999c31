//! Folds the log of the history to stories, behind what records it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubediff_history::{Error, Number, Reader};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::history::shared::{SharedHistory, give_way};
use crate::story::Fold;
use crate::text::terminal::say;

/// How often new records are folded at most, and how often time passes for records that wait for their stories.
const OFTEN: Duration = Duration::from_secs(1);
/// How often time passes for stories that go on while nothing is recorded.
const SELDOM: Duration = Duration::from_secs(5);
/// The time after a failure.
const AGAIN: Duration = Duration::from_secs(10);
/// A record that was seen so long ago is in the log by now.
const SETTLED: SignedDuration = SignedDuration::from_secs(5);
/// So far behind, folded routes tell changes one by one.
const FAR: Duration = Duration::from_secs(60);
/// After so many records that belong to no story, the place is stored.
const PLACE: u64 = 1_000;

/// Folds what is recorded until it is to stop. The history is locked for one batch at a time.
pub(super) async fn run(shared: SharedHistory, stop: CancellationToken) {
    let mut newest = shared.newest();
    let mut folding = None;
    let mut failed = None;
    let mut folded_at = Instant::now();
    loop {
        newest.mark_unchanged();
        let (history, stopped) = (shared.clone(), stop.clone());
        let before = folding.take();
        let step = tokio::task::spawn_blocking(move || {
            let folding = before.map_or_else(|| Folding::open(&history, &stopped), |it| Ok(Some(it)))?;
            let Some(mut folding) = folding else { return Ok(None) };
            folding.fold(&history, &stopped)?;
            Ok::<_, Error>(Some(folding))
        });
        let Some(folded) = step.await.ok().and_then(Result::transpose) else { return };
        let wait = match folded {
            Ok(folded) => {
                (failed, folded_at) = (None, Instant::now());
                let waits = folded.fold.decided() < folded.fold.through();
                let is_open = folded.fold.is_open() || waits;
                folding = Some(folded);
                let pass = async {
                    let grown = async { newest.changed().await.is_ok() };
                    if is_open {
                        let soon = if waits { OFTEN } else { SELDOM };
                        tokio::time::timeout(soon, grown).await.unwrap_or(true)
                    } else {
                        grown.await
                    }
                };
                match stop.run_until_cancelled(pass).await {
                    Some(true) => OFTEN,
                    _ => return,
                }
            }
            Err(error) => {
                let error = error.to_string();
                if failed.as_ref() != Some(&error) {
                    say(&format!(
                        "changes are not folded to stories, and folded routes soon tell them one by one: {error}"
                    ));
                }
                if folded_at.elapsed() >= FAR {
                    shared.decide(Number(*newest.borrow()));
                }
                failed = Some(error);
                AGAIN
            }
        };
        if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
    }
}

struct Folding {
    fold: Fold,
    reader: Reader,
    /// The place that is stored.
    stored: Number,
    /// Whether it was said that it is far behind.
    is_far: bool,
}

impl Folding {
    /// `None` if it is to stop before it is open.
    fn open(history: &SharedHistory, stop: &CancellationToken) -> Result<Option<Self>, Error> {
        let mut reader = history.lock().reader()?;
        let fold = Fold::of_history_unless(&mut reader, &|| stop.is_cancelled())?;
        Ok(fold.map(|fold| Self { stored: fold.through(), fold, reader, is_far: false }))
    }

    /// The records up to here need not wait for their stories any more.
    fn decided(&mut self, is_behind: bool) -> Result<Number, Error> {
        let is_far = is_behind
            && Duration::try_from(self.fold.lags(Timestamp::now())).is_ok_and(|behind| behind > FAR);
        if is_far && !self.is_far {
            say(
                "the folding of changes to stories is far behind: until it has caught up, folded routes tell changes one by one",
            );
        }
        self.is_far = is_far;
        match is_far {
            true => Ok(self.reader.last()?.map_or(self.fold.decided(), |(last, _)| last)),
            false => Ok(self.fold.decided()),
        }
    }

    fn fold(&mut self, history: &SharedHistory, stop: &CancellationToken) -> Result<(), Error> {
        loop {
            let more = self.fold.advance(&mut self.reader)?;
            if !more {
                let now = Timestamp::now().checked_sub(SETTLED).unwrap_or(Timestamp::MIN);
                let is_behind = self.reader.last()?.is_some_and(|(last, _)| last > self.fold.through());
                if !is_behind {
                    self.fold.tick(now, &mut self.reader)?;
                }
            }
            let folded = self.fold.changes();
            let is_far = folded.through.0 >= self.stored.0 + PLACE;
            if is_far || !folded.stories.is_empty() || !folded.members.is_empty() {
                self.stored = folded.through;
                history.lock().fold(&folded)?;
            }
            history.decide(self.decided(more)?);
            if !more || stop.is_cancelled() {
                return Ok(());
            }
            give_way();
        }
    }
}

#[cfg(test)]
mod tests {
    use kubediff_history::{Batch, Body, ChangeRecord, Cluster, Observation, Settings, What};

    use super::*;

    /// A history with updates that are long past.
    fn history(path: &std::path::Path, count: u64) -> SharedHistory {
        let cluster = Cluster { uid: "1".to_owned(), name: None };
        let history = SharedHistory::open(path, &cluster, &Settings::default()).unwrap();
        let mut batch = Batch::default();
        for rv in 1..=count {
            let mut record = ChangeRecord { rv: Some(rv.to_string()), ..ChangeRecord::default() };
            (record.object.uid, record.object.resource) = ("1".to_owned(), "configmaps".to_owned());
            let body = Body::redacted(format!(r#"{{"metadata":{{"uid":"1","resourceVersion":"{rv}"}}}}"#));
            batch.observe(Observation { record, body, what: What::Change, replaces: None });
        }
        let last = history.lock().commit(&batch).unwrap();
        history.grown(last);
        history
    }

    #[test]
    fn routes_do_not_wait_for_a_fold_that_is_far_behind() {
        let folder = tempfile::tempdir().unwrap();
        let history = history(&folder.path().join("history.db"), 1_200);
        let stop = CancellationToken::new();
        let mut folding = Folding::open(&history, &stop).unwrap().unwrap();
        stop.cancel();
        folding.fold(&history, &stop).unwrap();
        assert!(folding.is_far && folding.fold.through() < Number(1_200), "{}", folding.fold.through());
        assert_eq!(*history.decided().borrow(), 1_200);
        folding.fold(&history, &CancellationToken::new()).unwrap();
        assert!(!folding.is_far);
        assert_eq!((folding.fold.through(), folding.fold.decided()), (Number(1_200), Number(1_200)));
    }

    #[test]
    fn a_fold_that_is_to_stop_reads_no_more_records() {
        let folder = tempfile::tempdir().unwrap();
        let history = history(&folder.path().join("history.db"), 3);
        let stop = CancellationToken::new();
        let mut folding = Folding::open(&history, &stop).unwrap().unwrap();
        folding.fold(&history, &stop).unwrap();
        // The history has the place of this fold now, and a new fold would recall the records before it.
        history.lock().fold(&folding.fold.changes()).unwrap();
        stop.cancel();
        assert!(Folding::open(&history, &stop).unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn routes_wait_a_minute_for_a_fold_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let history = history(&path, 3);
        std::fs::remove_file(path).unwrap();
        let (mut decided, stop) = (history.decided(), CancellationToken::new());
        let (begun, running) = (Instant::now(), tokio::spawn(run(history, stop.clone())));
        decided.wait_for(|decided| *decided == 3).await.unwrap();
        assert!((FAR..FAR + AGAIN + OFTEN).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        stop.cancel();
        running.await.unwrap();
    }
}
