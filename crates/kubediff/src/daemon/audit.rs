//! Users beside changes: audit events come by a file or a listener, and are joined to what is recorded.

mod tail;
mod webhook;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubediff_history::{
    ChangeRecord, Error, Filter, Number, Origin, Page, Reader, Record, Scope, User, Verb,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::ServeError;
use crate::audit::{Join, KEPT, Look, Read, Seen};
use crate::config::{AuditSettings, Loaded};
use crate::history::shared::SharedHistory;
use crate::text::terminal::say;

/// Batches of events that wait at most. A sender of more is told to send them again.
const WAITING: usize = 32;
/// How often is looked for what has become known.
const PACE: Duration = Duration::from_millis(250);
/// A record waits so long for its user before it is sent.
const PATIENCE: SignedDuration = SignedDuration::from_secs(2);
/// Records that are read at once.
const PAGE: usize = 2_000;
/// The path of the time at which somebody has asked for a deletion.
const ENDS: &str = "metadata.deletionTimestamp";

/// What has become of events since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) writes: u64,
    pub(super) malformed: u64,
    pub(super) passed_over: u64,
}

/// The ways on which events come. Dropping it ends them.
pub(super) struct Sources {
    events: mpsc::Receiver<Read>,
    keeps_addresses: bool,
    counts: watch::Sender<Counts>,
    step: fn(&mut Naming, Vec<Read>, &SharedHistory) -> Result<(), Error>,
    _tail: Option<AbortOnDropHandle<()>>,
    _webhook: Option<webhook::Webhook>,
}

impl Sources {
    /// Opens them.
    ///
    /// # Errors
    ///
    /// When the address of the listener is taken, or its certificate or token cannot be read.
    pub(super) async fn open(settings: &AuditSettings, loaded: &Loaded) -> Result<Self, ServeError> {
        let (sender, events) = mpsc::channel(WAITING);
        let webhook = match &settings.webhook {
            Some(webhook) => Some(webhook::Webhook::open(webhook, loaded, sender.clone()).await?),
            None => None,
        };
        let tail = settings.log.as_ref().map(|log| {
            let log = loaded.folder().join(log);
            AbortOnDropHandle::new(tokio::spawn(tail::run(log, sender)))
        });
        let (keeps_addresses, counts, step) = (settings.addresses, watch::Sender::default(), Naming::step);
        Ok(Self { events, keeps_addresses, counts, step, _tail: tail, _webhook: webhook })
    }

    pub(super) fn counts(&self) -> watch::Receiver<Counts> {
        self.counts.subscribe()
    }
}

/// Joins events to what is recorded, until it is to stop.
pub(super) async fn run(sources: Option<Sources>, history: SharedHistory, stop: CancellationToken) {
    let Some(mut sources) = sources else { return };
    history.wait_for_users();
    let mut newest = history.newest();
    let (mut naming, mut failed) = (Naming::default(), None);
    loop {
        let mut reads = Vec::new();
        let pass = async {
            tokio::select! {
                _ = sources.events.recv_many(&mut reads, WAITING) => {}
                Ok(()) = newest.changed() => {}
            }
            // Events and changes come together.
            tokio::time::sleep(PACE).await;
        };
        let waits = naming.waits();
        let passes = async { if waits { drop(tokio::time::timeout(PACE, pass).await) } else { pass.await } };
        if stop.run_until_cancelled(passes).await.is_none() {
            return;
        }
        while let Ok(read) = sources.events.try_recv() {
            reads.push(read);
        }
        newest.mark_unchanged();
        if !sources.keeps_addresses {
            reads.iter_mut().flat_map(|read| &mut read.writes).for_each(|write| write.user.address = None);
        }
        naming.join.stop = stop.clone();
        let (shared, step) = (history.clone(), sources.step);
        let stepped = tokio::task::spawn_blocking(move || {
            let outcome = step(&mut naming, reads, &shared).map_err(|error| error.to_string());
            (naming, outcome)
        });
        let outcome;
        (naming, outcome) = stepped.await.unwrap_or_else(|_| {
            // What it has read may be why: that goes.
            let counts = *sources.counts.borrow();
            (Naming { counts, ..Naming::default() }, Err("a step has panicked".to_owned()))
        });
        sources.counts.send_if_modified(|counts| naming.counts.differ(counts));
        match outcome {
            Ok(()) => failed = None,
            Err(error) => {
                // What is recorded meanwhile is sent without its users.
                history.tell(Number(*newest.borrow()));
                if failed.as_ref() != Some(&error) {
                    say(&format!("changes do not get their users from the audit log: {error}"));
                }
                failed = Some(error);
            }
        }
    }
}

impl Counts {
    /// Takes these counts. Says whether they are others, and what there is to say.
    fn differ(self, before: &mut Self) -> bool {
        let is_first = |was: u64, is: u64| was == 0 && is > 0;
        if is_first(before.malformed, self.malformed) {
            say(
                "what came on the way of audit events was none, and is passed over: expected Event of audit.k8s.io/v1, in JSON",
            );
        }
        if is_first(before.passed_over, self.passed_over) {
            let count = self.passed_over;
            say(&format!(
                "more audit events come than wait for changes at a time: {count} are passed over, and some changes stay without a user"
            ));
        }
        std::mem::replace(before, self) != self
    }
}

/// Records and events, as far as they have been read. They outlast a history that does not answer for a while.
#[derive(Default)]
struct Naming {
    /// A connection, unless it has just failed.
    reader: Option<Reader>,
    join: Join,
    through: Option<Number>,
    counts: Counts,
    /// Users that are not stored yet.
    decided: BTreeMap<Number, User>,
    /// Changes with a user of a former process, which knew more of their time.
    named: BTreeSet<Number>,
    /// The records that wait to be sent, and when they were seen.
    unnamed: VecDeque<(Number, Timestamp)>,
}

impl Naming {
    /// Whether something may become known without news.
    fn waits(&self) -> bool {
        !self.unnamed.is_empty() || !self.decided.is_empty() || self.join.is_waiting()
    }

    fn step(&mut self, reads: Vec<Read>, history: &SharedHistory) -> Result<(), Error> {
        let now = Timestamp::now();
        for read in reads {
            self.counts.malformed += read.malformed;
            self.counts.writes += read.writes.len() as u64;
            read.writes.into_iter().for_each(|write| self.join.write(write, now));
        }
        // Taken before reading: whatever has this number or a smaller one is found.
        let newest = Number(*history.newest().borrow());
        let mut reader = self.reader.take().map_or_else(|| history.lock().reader(), Ok)?;
        let through = match &mut self.through {
            Some(through) => through,
            // Events of the last minute's records may come after the start.
            none => none.insert(Number(reader.first_since(now - KEPT)?.0.saturating_sub(1))),
        };
        loop {
            let page = Page::oldest(PAGE).after(*through).until(newest);
            let found = reader.records(&Filter { in_words: true, ..Filter::default() }, &page)?;
            for record in found.records {
                if self.join.stop.is_cancelled() {
                    return Ok(());
                }
                let number = record.number();
                if let Record::Change(change) = record
                    && change.origin == Origin::Watch
                {
                    let at = change.observed_at;
                    self.named.extend(change.user.is_some().then_some(number));
                    self.join.change(seen(*change, &mut reader)?, now);
                    self.unnamed.push_back((number, at));
                }
                *through = number;
            }
            if !found.more {
                break;
            }
        }
        *through = newest.max(*through);
        let mut known = Known { reader: &mut reader, failed: None };
        let decided = self.join.decide(now, &mut known);
        if let Some(error) = known.failed {
            // A failed question may have led to the wrong user: these changes stay without one.
            return Err(error);
        }
        let is_better = |(number, user): &(Number, User)| !(user.probable && self.named.contains(number));
        self.decided.extend(decided.into_iter().filter(is_better));
        self.counts.passed_over = self.join.passed_over();
        let users: Vec<_> = std::mem::take(&mut self.decided).into_iter().collect();
        if !users.is_empty()
            && let Err(error) = history.lock().attribute(&users)
        {
            self.decided.extend(users);
            return Err(error);
        }
        self.reader = Some(reader);
        let is_named = |number: Number| users.binary_search_by_key(&number, |(number, _)| *number).is_ok();
        self.unnamed.retain(|(number, _)| !is_named(*number));
        while self.unnamed.front().is_some_and(|(_, at)| now.duration_since(*at) > PATIENCE) {
            self.unnamed.pop_front();
        }
        let first = self.unnamed.front().map(|(number, _)| Number(number.0 - 1));
        history.tell(first.unwrap_or(*through));
        Ok(())
    }
}

/// The traits of a change by which the join finds its request.
fn seen(change: ChangeRecord, reader: &mut Reader) -> Result<Seen, Error> {
    let number = change.number.unwrap_or_default();
    let was_ending = change.verb == Verb::Deleted
        && reader.version_of(number)?.is_some_and(|version| {
            version.body.value().pointer("/metadata/deletionTimestamp").is_some_and(|it| !it.is_null())
        });
    let is_status = |path: &String| path.starts_with("status");
    Ok(Seen {
        number,
        resource: change.object.qualified_resource(),
        in_status: change.paths.iter().any(is_status),
        elsewhere: !change.paths.iter().all(is_status),
        begins_to_end: change.verb == Verb::Updated && change.paths.iter().any(|path| path == ENDS),
        was_ending,
        namespace: change.object.namespace,
        name: change.object.name,
        uid: change.object.uid,
        verb: change.verb,
        rv_before: change.rv_before,
        at: change.observed_at,
        is_merged: change.merged > 1,
        managers: change.managers.into_iter().filter(|it| !it.probable).map(|it| it.manager).collect(),
    })
}

/// What the history knows.
struct Known<'a> {
    reader: &'a mut Reader,
    failed: Option<Error>,
}

impl Known<'_> {
    fn or_failed<T: Default>(&mut self, asked: Result<T, Error>) -> T {
        asked.unwrap_or_else(|error| {
            self.failed = Some(error);
            T::default()
        })
    }
}

impl Look for Known<'_> {
    fn labels(&mut self, of: Number) -> Vec<(String, String)> {
        let version = self.reader.version_of(of);
        let body = self.or_failed(version).map(|version| version.body.value()).unwrap_or_default();
        let labels = body["metadata"]["labels"].as_object().into_iter().flatten();
        labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }

    fn deleter(&mut self, seen: &Seen) -> Option<User> {
        let scope = Scope { uid: Some(seen.uid.clone()), ..Scope::default() };
        let filter = Filter { scope, paths: vec![ENDS.to_owned()], in_words: true, ..Filter::default() };
        let found = self.reader.records(&filter, &Page::newest(1));
        let found = found.map(|found| found.records);
        match self.or_failed(found).pop() {
            Some(Record::Change(change)) if change.verb == Verb::Updated => change.user,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
