//! The right to record a cluster, which one process has at a time; others stand by.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use informer::ResourceVersion;
use kubediff_history::{Error, Reader, Standby};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ServeError;
use crate::follow::{Inbox, Recorded, Standing, Within};
use crate::history::notes;
use crate::history::shared::SharedHistory;
use crate::text::terminal::say;

/// How often the term is asked for, and how often a standby says that it is there and looks at what is recorded.
const ASK: Duration = Duration::from_millis(500);
const LOOK: u32 = 2;
/// The time after which a process that sees nothing lends its term.
const BLIND: Duration = Duration::from_secs(10);

/// Why something was not watched, where this process has taken over and had missed something.
const TAKEN_OVER: &str = "another process took over, and had missed something by then";
const WENT_BACK: &str = "the database lost acknowledged records";

/// Why nothing was watched before a process records again that had lost its term by this error.
pub(super) fn why_again(error: &Error) -> &'static str {
    match error {
        Error::WentBack { .. } => WENT_BACK,
        _ => "another process recorded, and has ended",
    }
}

/// The same for a process that has stood by, whether or not the history lacks records that it had meanwhile.
pub(super) fn why_missed(went_back: bool) -> &'static str {
    if went_back { WENT_BACK } else { TAKEN_OVER }
}

/// A process that stands by.
pub(super) struct Candidate {
    pub(super) standby: Standby,
    pub(super) inbox: Arc<Inbox>,
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) within: Within,
    /// The id of the hashes' key.
    pub(super) key: String,
    /// The name of the process that records.
    pub(super) holder: watch::Sender<String>,
}

impl Candidate {
    /// Waits until this process has the term.
    ///
    /// # Errors
    ///
    /// When it must not have it.
    pub(super) async fn claim(mut self) -> Result<SharedHistory, ServeError> {
        let mut ticks = tokio::time::interval(ASK);
        let (mut turn, mut said) = (0, false);
        loop {
            ticks.tick().await;
            let looks = turn % LOOK == 0;
            let asked = tokio::task::spawn_blocking(move || {
                let asked = self.ask(looks);
                (self, asked)
            });
            let (candidate, asked) = asked.await.map_err(ServeError::Ended)?;
            self = candidate;
            turn += 1;
            match asked {
                Ok(Some(history)) => return Ok(history),
                Ok(None) if std::mem::take(&mut said) => say("the database answers again"),
                Ok(None) => {}
                Err(ServeError::History(error)) if error.is_passing() => {
                    if !std::mem::replace(&mut said, true) {
                        say(&informer::error_chain(&error));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn ask(&mut self, looks: bool) -> Result<Option<SharedHistory>, ServeError> {
        // A process that sees nothing must not keep one that may see from recording.
        let sees = self.standing.borrow().why_not_ready().is_none();
        if looks {
            self.look()?;
            // One that would have to list again is not better than one that begins.
            if sees
                && self.inbox.shadow().1 == 0
                && let Some(holder) = self.standby.register()?
            {
                self.holder.send_replace(holder);
            }
        }
        let claimed = if sees { self.standby.claim()? } else { None };
        Ok(claimed.map(SharedHistory::of).transpose()?)
    }

    fn look(&mut self) -> Result<(), ServeError> {
        let reader = self.standby.reader();
        if let Some(recorded) = reader.notes()?.remove(notes::KEY).filter(|key| *key != self.key) {
            return Err(ServeError::OtherKey { recorded, own: self.key.clone() });
        }
        self.inbox.recorded(&recorded(reader, &self.within)?);
        Ok(())
    }
}

/// How far a history is recorded.
pub(super) fn recorded(reader: &mut Reader, within: &Within) -> Result<Recorded, Error> {
    // In this order: what is recorded of the watches meanwhile is only more.
    let notes = reader.notes()?;
    let positions = reader.positions()?;
    let last = reader.last()?.map_or(0, |(number, _)| number.0);
    let text = |name: &str| notes.get(name).map(String::as_str).unwrap_or_default();
    let lines = |name: &str| text(name).lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let noted = |prefix: &'static str| {
        let noted = notes.iter().filter(|(_, since)| !since.is_empty());
        noted
            .filter_map(move |(name, _)| Some(name.strip_prefix(prefix)?.to_owned()))
            .collect::<BTreeSet<_>>()
    };
    Ok(Recorded {
        positions: positions
            .into_iter()
            .map(|(name, version)| (name, ResourceVersion::new(&version)))
            .collect(),
        last,
        ahead: lines(notes::AHEAD),
        followed: &lines(notes::NAMES) - &noted(notes::LEFT),
        lost: &noted(notes::OPEN) | &lines(notes::UNLISTED),
        watched_until: text(notes::WATCHED_UNTIL).parse().ok(),
        is_elsewhere: serde_json::from_str::<Within>(text(notes::WITHIN)).ok().as_ref() != Some(within),
    })
}

/// Lends the term while nothing is watched: a standby that sees may have it.
pub(super) async fn lend(
    history: SharedHistory,
    mut standing: watch::Receiver<Standing>,
    stop: CancellationToken,
) {
    let watching = async {
        while standing.wait_for(|standing| !standing.is_watching()).await.is_ok() {
            let is_soon = tokio::time::timeout(BLIND, standing.wait_for(Standing::is_watching)).await.is_ok();
            if !is_soon {
                hold(&history, false).await;
                let is_back = standing.wait_for(Standing::is_watching).await.is_ok();
                hold(&history, is_back).await;
            }
        }
    };
    let _ = stop.run_until_cancelled(watching).await;
}

/// Whether another process stands by.
pub(super) async fn is_awaited(history: &SharedHistory) -> bool {
    let history = history.clone();
    tokio::task::spawn_blocking(move || history.lock().is_awaited()).await.unwrap_or_default()
}

async fn hold(history: &SharedHistory, keeps: bool) {
    let history = history.clone();
    // It may be writing.
    let _ = tokio::task::spawn_blocking(move || history.lock().hold(keeps)).await;
}
