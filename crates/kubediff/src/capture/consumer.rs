//! Takes the inbox empty: compares, shows, records. It has a thread of its own, because writing blocks as long as the reader
//! of the output does not read, and as long as the disk does not answer.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::backlog::Item as _;
use crate::capture::held::{Due, Held};
use crate::capture::screen::Screen;
use crate::changes::recording::Entry;
use crate::changes::states::States;
use crate::follow::{Inbox, InboxItem, Next, RawChange};
use crate::history::writer::{Comparing, HistoryWriter};
use crate::text::terminal::say;
use crate::{Change, Compared, Profile, Session, Tally};

/// Changes that arrive within this time are taken in one batch, because waking the thread costs more than taking a change.
const GATHER_WAIT: Duration = Duration::from_millis(200);

/// Where changes go.
pub(crate) struct Consumer {
    pub(crate) screen: Option<Screen>,
    pub(crate) recorder: Option<HistoryWriter>,
    /// The counts, for readers in between.
    pub(crate) session: Arc<Mutex<Session>>,
    pub(crate) profile: Profile,
    /// The name of the cluster, for the record of a change.
    pub(crate) cluster: Option<String>,
    /// The changes to show as soon as they are recorded.
    pub(crate) unrecorded: Vec<Entry>,
    /// Entries that wait until the Secrets of their texts are known.
    pub(crate) held: Held<InboxItem>,
}

/// Why not everything could be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConsumeError {
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The history cannot be written.
    #[error(transparent)]
    History(#[from] kubediff_history::Error),
}

impl Consumer {
    /// Takes everything until the inbox is closed and empty, or something cannot be written. Blocks the thread.
    pub(crate) fn run(&mut self, inbox: &Arc<Inbox>) -> Result<(), ConsumeError> {
        let mut told = 0;
        let mut gathered = Instant::now();
        loop {
            match inbox.next(self.held.patience(Instant::now())) {
                Next::Entry(waiting) => self.arrived(waiting, inbox)?,
                Next::Nothing => {}
                Next::Closed if self.held.is_empty() => break,
                // No Secret will come any more.
                Next::Closed => self.held.end(),
            }
            while let Some(due) = self.held.pop(Instant::now()) {
                self.go_on(due, inbox)?;
            }
            inbox.holds(!self.held.is_empty());
            if let Some(recorder) = &mut self.recorder {
                if !recorder.is_full() && inbox.is_empty() && !recorder.patience().is_zero() {
                    inbox.gather(GATHER_WAIT.saturating_sub(gathered.elapsed()));
                    gathered = Instant::now();
                }
                if recorder.is_full() || inbox.rests(recorder.patience()) {
                    recorder.commit(inbox)?;
                    self.show_recorded()?;
                }
            }
            let merged = inbox.merged();
            self.counts().merged = merged;
            if self.screen.is_some() && merged > told && inbox.is_empty() {
                say(&format!(
                    "the reader has caught up; {} merged into others, which say so",
                    were(merged - told)
                ));
                told = merged;
            }
        }
        self.counts().merged = inbox.merged();
        if let Some(recorder) = &mut self.recorder {
            recorder.commit(inbox)?;
            self.show_recorded()?;
        }
        Ok(())
    }

    /// Takes an entry at once, or lets it wait.
    fn arrived(&mut self, waiting: InboxItem, inbox: &Inbox) -> Result<(), ConsumeError> {
        let is_shown = |raw: &RawChange| !self.profile.noise.leaves_out(&raw.kind.gvk);
        let is_after =
            |raw: &RawChange| self.recorder.as_ref().is_some_and(|recorder| recorder.is_after(raw));
        let states = match &waiting {
            InboxItem::Change(raw) if is_shown(raw) => read(raw),
            InboxItem::First(raw) if is_after(raw) && is_shown(raw) => read(raw),
            _ => None,
        };
        let is_unsure = match (&waiting, &states) {
            (InboxItem::Change(raw) | InboxItem::First(raw), Some(States { old, new: Some(new) })) => {
                self.profile.secrets.is_unsure(&raw.kind.gvk, old.as_ref(), new)
            }
            _ => false,
        };
        if is_unsure || !self.held.is_empty() {
            let bytes = waiting.bytes();
            self.held.push(waiting, bytes, is_unsure, Instant::now());
            return Ok(());
        }
        match (waiting, states) {
            (InboxItem::Change(raw), Some(states)) => self.change(raw, states),
            (waiting, _) => self.take(waiting, inbox),
        }
    }

    /// Takes an entry that has waited.
    fn go_on(&mut self, due: Due<InboxItem>, inbox: &Inbox) -> Result<(), ConsumeError> {
        match due {
            Due::Waited(waiting) => self.take(waiting, inbox),
            Due::Early(waiting) => {
                if let InboxItem::Change(raw) | InboxItem::First(raw) = &waiting
                    && let Some(States { old, new: Some(new) }) = read(raw)
                {
                    self.profile.secrets.learn_unsure(&raw.kind.gvk, old.as_ref(), &new);
                }
                self.take(waiting, inbox)
            }
        }
    }

    fn take(&mut self, waiting: InboxItem, inbox: &Inbox) -> Result<(), ConsumeError> {
        match waiting {
            InboxItem::Change(raw) => match read(&raw) {
                Some(states) => self.change(raw, states),
                None => Ok(()),
            },
            InboxItem::First(raw) => {
                self.profile.secrets.learn_name(raw.key.name());
                if let Some(recorder) = &mut self.recorder {
                    recorder.first(raw);
                }
                Ok(())
            }
            InboxItem::Synced(synced) => {
                if is_of_secrets(&synced.target_text()) {
                    self.held.blind(false);
                }
                self.with_recorder(inbox, |recorder, comparing| recorder.synced(&synced, comparing))
            }
            InboxItem::Resources(resources) => {
                if !resources.names.iter().any(|name| is_of_secrets(name)) {
                    self.held.blind(false);
                }
                self.with_recorder(inbox, |recorder, comparing| recorder.resources(&resources, comparing))
            }
            InboxItem::Lost(target, since, cause) => {
                if is_of_secrets(&target) {
                    self.held.blind(true);
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.lost(&target, since, &cause);
                }
                Ok(())
            }
            InboxItem::Alive(at) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.alive(at);
                }
                Ok(())
            }
            InboxItem::Gap(mut gap) => {
                gap.cluster.clone_from(&self.cluster);
                if gap.resources.iter().any(|target| is_of_secrets(target)) {
                    self.held.blind(false);
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.gap(&gap);
                }
                self.show(Entry::Gap(gap))
            }
            InboxItem::Asked(gvk) => {
                self.profile.noise.show_kind(&gvk);
                Ok(())
            }
        }
    }

    /// Lets the recorder compare the present objects with the stored ones, and queues the changes to be shown, or counts them.
    fn with_recorder(
        &mut self,
        inbox: &Inbox,
        work: impl FnOnce(&mut HistoryWriter, &mut Comparing<'_>) -> Result<(), kubediff_history::Error>,
    ) -> Result<(), ConsumeError> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        let (session, unrecorded, is_shown) = (&self.session, &mut self.unrecorded, self.screen.is_some());
        let cluster = &self.cluster;
        let mut changes = |mut change: Box<Change>| {
            if is_shown {
                change.cluster.clone_from(cluster);
                unrecorded.push(Entry::Change(change));
            } else {
                session.lock().unwrap_or_else(PoisonError::into_inner).record(&change);
            }
        };
        let tally = Tally::default();
        let mut comparing = Comparing { profile: &self.profile, tally, inbox, changes: &mut changes };
        work(recorder, &mut comparing)?;
        let tally = comparing.tally;
        self.counts().tally.add(&tally);
        Ok(())
    }

    fn change(&mut self, raw: RawChange, states: States) -> Result<(), ConsumeError> {
        // A change before its resource is listed belongs to the first list.
        let raw = match &mut self.recorder {
            Some(recorder) => recorder.unless_first(raw),
            None => Some(raw),
        };
        let Some(raw) = raw else { return Ok(()) };
        let compared = self.compare(&raw, states);
        if let Some(recorder) = &mut self.recorder {
            recorder.observe(&raw, &compared);
        }
        match compared {
            Compared::Change(change) => self.show(Entry::Change(change)),
            Compared::Event(_) | Compared::Noise(_) | Compared::Nothing => Ok(()),
        }
    }

    /// Shows an entry now, or when it is recorded: a shown entry is in the history, whatever happens to the process.
    fn show(&mut self, taken: Entry) -> Result<(), ConsumeError> {
        if let (Entry::Change(change), None) = (&taken, &self.screen) {
            self.counts().record(change);
            return Ok(());
        }
        self.unrecorded.push(taken);
        if self.recorder.is_some() { Ok(()) } else { self.show_recorded() }
    }

    fn show_recorded(&mut self) -> Result<(), ConsumeError> {
        for taken in std::mem::take(&mut self.unrecorded) {
            match (taken, &mut self.screen) {
                (Entry::Change(change), Some(screen)) => {
                    screen.change(&change)?;
                    self.counts().record(&change);
                }
                (Entry::Gap(gap), Some(screen)) => {
                    screen.gap(&gap)?;
                    self.counts().gaps.push(gap);
                }
                // Nobody reads a summary, which would grow for ever.
                (_, None) => {}
            }
        }
        Ok(())
    }

    fn counts(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compare(&mut self, raw: &RawChange, states: States) -> Compared {
        let sighting = raw.kind.sighting(self.cluster.as_deref(), raw.at, raw.origin);
        let mut tally = Tally::default();
        let compared = Change::between(&sighting, states, raw.merged, &self.profile, &mut tally);
        self.counts().tally.add(&tally);
        compared
    }
}

/// Whether a target is `secrets` or one of them.
fn is_of_secrets(target: &str) -> bool {
    target.split('/').next() == Some("secrets")
}

/// The states of a change; `None` when one is undecodable.
fn read(raw: &RawChange) -> Option<States> {
    let (old, new) = raw.states();
    let read = || -> Result<States, Box<dyn Error>> {
        let old = old.map(|old| old.json()).transpose()?;
        let new = new.map(|new| new.json()).transpose()?;
        Ok(States::read(old.as_deref(), new.as_deref())?)
    };
    read()
        .inspect_err(|error| {
            say(&format!("an object of {} is left out: {error}", raw.kind.resource.qualified_name()))
        })
        .ok()
}

/// `1 change was`, `2 changes were`.
fn were(count: u64) -> String {
    if count == 1 { "1 change was".to_owned() } else { format!("{count} changes were") }
}
