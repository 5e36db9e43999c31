//! The history that a process writes, one thread at a time, and scrubs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kubediff_history::{Batch, Cluster, Error, History, Location, Mask, Number, Settings};
use tokio::sync::watch;

use crate::Secrets;
use crate::history::notes;
use crate::history::scrub::CAUSE;
use crate::text::terminal::say;

/// Records of so long before a value became known are scrubbed.
pub(super) const SCRUBBED: Duration = Duration::from_secs(15 * 60);

/// The time between two attempts while the disk is full or another program has locked the history.
pub(crate) const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// The writer of a history. Sinks note their progress through it, too.
#[derive(Clone)]
pub(crate) struct SharedHistory {
    history: Arc<Mutex<History>>,
    newest: watch::Sender<u64>,
    decided: watch::Sender<u64>,
    /// The records up to this number may be sent. They have their users, where somebody looks for these.
    told: watch::Sender<u64>,
    waits_for_users: Arc<AtomicBool>,
    /// Why nothing can be written at present, or that the history is damaged.
    pub(super) trouble: watch::Sender<Option<String>>,
    /// The first damage that was found.
    pub(super) damage: Arc<OnceLock<String>>,
    /// Since when records may have values that became known later.
    pub(super) unscrubbed: watch::Sender<Option<Timestamp>>,
    /// How many scrubs have come to their end.
    scrubs: Arc<AtomicU64>,
}

impl SharedHistory {
    /// # Errors
    ///
    /// When the file cannot be used, or is of another cluster.
    pub(crate) fn open(path: &Path, cluster: &Cluster, settings: &Settings) -> Result<Self, Error> {
        Self::at(&Location::File(path.to_owned()), cluster, settings)
    }

    /// # Errors
    ///
    /// As [`SharedHistory::open`]; in a database also while another process has the term.
    pub(crate) fn at(location: &Location, cluster: &Cluster, settings: &Settings) -> Result<Self, Error> {
        Self::of(History::at(location, cluster, settings)?)
    }

    /// # Errors
    ///
    /// When it cannot be read.
    pub(crate) fn of(history: History) -> Result<Self, Error> {
        let last = history.reader()?.last()?.map_or(0, |(number, _)| number.0);
        Ok(Self {
            history: Arc::new(Mutex::new(history)),
            newest: watch::Sender::new(last),
            decided: watch::Sender::default(),
            told: watch::Sender::new(last),
            waits_for_users: Arc::default(),
            trouble: watch::Sender::default(),
            damage: Arc::default(),
            unscrubbed: watch::Sender::default(),
            scrubs: Arc::default(),
        })
    }

    /// A record that was read at this number may be masked at a higher one.
    pub(crate) fn scrubs(&self) -> u64 {
        self.scrubs.load(Ordering::Acquire)
    }

    /// The only one who writes while this is held. Blocks.
    pub(crate) fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on what came of a question, or of work in the background. The first damage is trouble from then on.
    pub(crate) fn noticing<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        let damage = outcome.as_ref().err().filter(|error| error.is_damage());
        if let Some(error) = damage.filter(|error| self.damage.set(error.to_string()).is_ok()) {
            say(&format!(
                "{error}; recording goes on, and what is damaged can be neither read nor delivered"
            ));
            self.trouble.send_replace(Some(error.to_string()));
        }
        outcome
    }

    /// Why nothing can be written at present, or that the history is damaged, as it changes.
    pub(crate) fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    /// Since when records may have values that became known later, as it changes.
    pub(crate) fn unscrubbed(&self) -> watch::Receiver<Option<Timestamp>> {
        self.unscrubbed.subscribe()
    }

    /// Scrubs what is marked as unscrubbed: the last `most` records at most, and those since the mark. Others write between its
    /// steps. Blocks.
    pub(crate) fn scrub(&self, most: u32, secrets: &Secrets, stop: &dyn Fn() -> bool) -> Result<(), Error> {
        let Some(since) = self.unscrubbed.send_replace(None) else { return Ok(()) };
        let mut scrub = self.lock().scrub_since(since, most)?;
        while self.lock().scrub(&mut scrub, secrets)? {
            give_way();
            if stop() {
                // The note stays: the next start begins again.
                say("values that became known later stay in the history until the next start masks them");
                return Ok(());
            }
        }
        let mut history = self.lock();
        let mut batch = Batch::default();
        if self.unscrubbed.borrow().is_none() {
            batch.note(notes::UNSCRUBBED, "");
        }
        if scrub.masked() > 0 {
            say(&format!("values that became known later were masked in {} versions", scrub.masked()));
            batch.scrubbed(scrub, Timestamp::now(), "values of Secrets or paths to hide became known");
        }
        let number = history.commit(&batch)?;
        drop(history);
        self.scrubs.fetch_add(1, Ordering::Release);
        self.grown(number);
        Ok(())
    }

    /// Scrubs everything that is stored, as a command asks for it, and the last records once more: some of them were not stored yet.
    /// Others write between its steps. Blocks. Returns whether it came to its end.
    pub(crate) fn scrub_by(
        &self,
        mask: &dyn Mask,
        prints: &[(String, Vec<u8>)],
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let mut scrub = self.lock().scrub_of_all();
        while self.lock().scrub(&mut scrub, mask)? {
            give_way();
            if stop() {
                return Ok(false);
            }
        }
        let mut batch = Batch::default();
        for (namespace, print) in prints {
            batch.print(Some(namespace.clone()), print.clone());
        }
        say(&format!("{} versions were masked {CAUSE}", scrub.masked()));
        batch.scrubbed(scrub, Timestamp::now(), CAUSE);
        let number = self.lock().commit(&batch)?;
        self.scrubs.fetch_add(1, Ordering::Release);
        self.grown(number);
        self.unscrubbed.send_if_modified(|since| {
            let is_new = since.is_none();
            since.get_or_insert(Timestamp::now() - SCRUBBED);
            is_new
        });
        Ok(true)
    }

    pub(crate) fn grown(&self, number: Number) {
        grow(&self.newest, number);
        if !self.waits_for_users.load(Ordering::Acquire) {
            grow(&self.told, number);
        }
    }

    /// The records up to here have got their stories.
    pub(crate) fn decide(&self, upto: Number) {
        grow(&self.decided, upto);
    }

    /// The number up to which records have got their stories, as it grows.
    pub(crate) fn decided(&self) -> watch::Receiver<u64> {
        self.decided.subscribe()
    }

    /// From now on, records wait for their users before they are sent.
    pub(crate) fn wait_for_users(&self) {
        self.waits_for_users.store(true, Ordering::Release);
    }

    /// The records up to here have their users, or will not get them soon.
    pub(crate) fn tell(&self, upto: Number) {
        grow(&self.told, upto);
    }

    /// The number up to which records may be sent, as it grows.
    pub(crate) fn told(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    /// The number of the newest record, as it grows.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

fn grow(number: &watch::Sender<u64>, to: Number) {
    number.send_if_modified(|number| {
        let grows = to.0 > *number;
        *number = to.0.max(*number);
        grows
    });
}

/// Leaves the history to others that wait for it. Without a pause, the same thread would lock it again before they wake.
pub(crate) fn give_way() {
    std::thread::sleep(Duration::from_millis(1));
}
