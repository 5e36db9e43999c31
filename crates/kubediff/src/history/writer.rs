//! Writes what is seen into a history.

mod allowance;
mod gone;
mod past;
mod reached;
mod stored;

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kubediff_history::{Batch, Body, ChangeRecord, Error, ObjectId, Observation, Reader, Scope, What};
use serde_json::Value;

use crate::changes::change::metadata;
use crate::changes::states::state;
use crate::follow::{Inbox, Kind, RawChange, Resources, Synced, Within};
use crate::history::notes;
use crate::history::shared::{SCRUBBED, SharedHistory, WRITE_AGAIN};
use crate::model::position;
use crate::text::terminal::say;
use crate::{Change, Compared, Epoch, Gap, Origin, Profile, Redacted, Secrets, Sighting, Tally, Verb};
use allowance::Allowance;
use gone::Gone;
use past::Past;
pub(crate) use reached::Reached;
use stored::Stored;

/// Why nothing was watched before a process began.
pub(crate) const NOT_RUNNING: &str = "kubediff did not run";
/// A batch of this many entries is committed.
const ENTRIES: usize = 1_000;
/// A batch of this many bytes is committed, even if it has fewer entries.
const BYTES: usize = 8 << 20;
/// Single changes are committed at once, but not more often than this: a commit costs more than most changes.
const COMMIT_INTERVAL: Duration = Duration::from_millis(200);
/// The shortest time between two commits of noise alone: a start after a crash finds noise again.
const NOISE_COMMIT_INTERVAL: Duration = Duration::from_secs(2);
/// The most bytes that the history takes of one object.
const OBJECT: usize = 64 << 20;
/// Resources that are listed within this time of the first one share its gap, which becomes longer for them.
const SAME_GAP: Duration = Duration::from_secs(5);
/// A commit waits so long for the lists that follow the first one: a gap that is stored becomes no longer, and another one follows it. A
/// resource that a new history lists within this time of its first list counts as watched from its beginning.
const FIRST_LISTS: Duration = Duration::from_secs(1);
/// The history of a cluster, with what waits to be committed.
pub(crate) struct HistoryWriter {
    history: SharedHistory,
    secrets: Secrets,
    /// Since when records are to be scrubbed, once the batch is stored.
    unscrubbed: Option<Timestamp>,
    reader: Reader,
    batch: Batch,
    bytes: usize,
    /// Whether the batch has anything but noise.
    is_urgent: bool,
    committed: Instant,
    past: Past,
    /// Since when the history is complete, once a list is, and how much later another one may be without a gap.
    began: Option<(Timestamp, Duration)>,
    /// The name of the cluster, for the record of a change.
    cluster: Option<String>,
    within: Within,
    /// Objects whose resource is not completely listed yet, by target and uid.
    firsts: HashMap<String, HashMap<String, RawChange>>,
    /// The gap that a restart made.
    restart: Option<RestartGap>,
    /// The resources that are followed.
    names: BTreeSet<String>,
    /// The resources that were listed once.
    synced: BTreeSet<String>,
    /// The resources that the former process had lost, and this one had not: until what happened meanwhile is recorded.
    made_up: BTreeSet<String>,
    /// The note of those that are not.
    unlisted: Option<String>,
    /// How far their watches are recorded.
    reached: Reached,
    events: Allowance,
    /// Why nothing was watched before this run.
    why: String,
    /// Whether another process watched until this one recorded: then a gap is only of the targets that this one lists again.
    took_over: bool,
    gone: Gone,
}

impl HistoryWriter {
    /// # Errors
    ///
    /// When the history cannot be read.
    pub(crate) fn new(
        history: SharedHistory,
        cluster: Option<String>,
        secrets: Secrets,
        within: Within,
        now: Timestamp,
        why: &str,
    ) -> Result<Self, Error> {
        let mut reader = history.lock().reader()?;
        let past = Past::read(&mut reader)?;
        let began = reader.complete_since()?.filter(|_| past.has_any()).map(|since| (since, Duration::ZERO));
        let mut batch = Batch::default();
        let key = secrets.key_id();
        let unscrubbed = reader.notes()?.get(notes::UNSCRUBBED).and_then(|since| since.parse().ok());
        // Before anything is learnt: a restart knows what the run before knew.
        for foreign in secrets.restore(&reader.prints()?) {
            batch.print(None, foreign);
        }
        secrets.news();
        if matches!(Epoch::since(past.key, key), Epoch::New { .. }) {
            batch.gap(past.watched_until.unwrap_or(now), now, None, notes::OTHER_KEY);
        }
        batch.note(notes::KEY, key.to_string());
        batch.note(notes::SELECTORS, past.selectors_to_note(&within));
        batch.note(notes::WITHIN, serde_json::to_string(&within).unwrap_or_default());
        if let Some(left_out) = past.left_out_by(&within) {
            batch.note(notes::LEFT_OUT, left_out_note(&left_out));
        }
        let (firsts, names, synced) = (HashMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut recorder = Self {
            history,
            secrets,
            unscrubbed: None,
            reader,
            batch,
            bytes: 0,
            is_urgent: true,
            committed: Instant::now(),
            past,
            began,
            cluster,
            within,
            firsts,
            restart: None,
            names,
            synced,
            made_up: BTreeSet::new(),
            unlisted: None,
            reached: Reached::default(),
            events: Allowance::new(Instant::now()),
            why: why.to_owned(),
            took_over: false,
            gone: Gone::default(),
        };
        // A path to hide may be new, and the run before may have been killed before it was done.
        recorder.scrub_since(unscrubbed.unwrap_or(now));
        Ok(recorder)
    }

    /// As a process that stood by until now, and goes on with what it has seen since this time.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    pub(crate) fn taking_over(mut self, since: Timestamp) -> Result<Self, Error> {
        self.took_over = true;
        self.gone = Gone::since(&mut self.reader, since)?;
        Ok(self)
    }

    /// Whether it is time to commit.
    pub(crate) fn is_full(&self) -> bool {
        self.batch.len() >= ENTRIES || self.bytes >= BYTES
    }

    /// How long what is to be committed may wait for more.
    pub(crate) fn patience(&self) -> Duration {
        let is_new = self.restart.as_ref().is_some_and(|gap| gap.began.elapsed() < FIRST_LISTS);
        let pace = match self.is_urgent {
            true if is_new && !self.past.names.is_subset(&self.synced) => FIRST_LISTS,
            true => COMMIT_INTERVAL,
            false => NOISE_COMMIT_INTERVAL,
        };
        pace.saturating_sub(self.committed.elapsed())
    }

    /// Stores everything that was given until now. Blocks while the disk is full or another program has locked the file, until the
    /// inbox is closed.
    ///
    /// # Errors
    ///
    /// When the history cannot be written. Nothing is lost: the next start finds the differences.
    pub(crate) fn commit(&mut self, inbox: &Inbox) -> Result<(), Error> {
        let mut waits: Option<(Timestamp, &str)> = None;
        // With or before the records in which these values are hidden.
        for (namespace, print) in self.secrets.news() {
            if namespace.is_some() && self.unscrubbed.is_none() && self.history.unscrubbed.borrow().is_none()
            {
                self.scrub_since(Timestamp::now());
            }
            self.batch.print(namespace, print);
        }
        // With the next records, or with the sign of life.
        if !self.batch.is_empty() {
            // All that has left the inbox is in the batch, or before it.
            let (positions, ahead) = self.reached.news();
            positions.into_iter().for_each(|(name, version)| self.batch.reached(name, version));
            if let Some(ahead) = ahead {
                self.batch.note(notes::AHEAD, ahead);
            }
        }
        while !self.batch.is_empty() {
            // A database that says nothing any more says so late.
            let begun = Timestamp::now();
            match self.store() {
                Ok(()) => {}
                Err(error) if error.is_passing() && !inbox.closed_within(Duration::ZERO) => {
                    if waits.is_none() {
                        let cause = match error {
                            Error::Full { .. } => "the disk was full",
                            Error::Busy { .. } => "another program had locked the history",
                            _ => "the database was away",
                        };
                        waits = Some((begun, cause));
                        self.history.trouble.send_replace(Some(error.to_string()));
                        say(&format!("{error}; trying again"));
                    }
                    inbox.closed_within(WRITE_AGAIN);
                }
                Err(error) => return Err(error),
            }
            if let Some((since, cause)) = waits.take_if(|_| self.batch.is_empty()) {
                say("the history can be written again");
                self.history.trouble.send_replace(self.history.damage.get().cloned());
                let reason = format!("{cause}; changes of one object in this time may be merged");
                self.batch.gap(since, Timestamp::now(), None, reason);
            }
        }
        Ok(())
    }

    /// A value became known at this time, or was about to.
    fn scrub_since(&mut self, known: Timestamp) {
        let since = known.checked_sub(SCRUBBED).unwrap_or(Timestamp::MIN);
        self.batch.note(notes::UNSCRUBBED, since.to_string());
        self.unscrubbed = Some(since);
    }

    fn store(&mut self) -> Result<(), Error> {
        let mut history = self.history.lock();
        let number = history.commit(&self.batch)?;
        let passed_over = history.passed_over();
        drop(history);
        // Damage is trouble from now on, and recording goes on.
        let _ = self.history.noticing(passed_over);
        self.batch = Batch::default();
        (self.bytes, self.is_urgent, self.committed) = (0, false, Instant::now());
        self.history.grown(number);
        if let Some(since) = self.unscrubbed.take() {
            self.history.unscrubbed.send_replace(Some(since));
        }
        Ok(())
    }

    /// Everything was watched until this time.
    pub(crate) fn alive(&mut self, at: Timestamp) {
        for target in std::mem::take(&mut self.made_up) {
            self.batch.note(notes::open(&target), "");
        }
        let unlisted: Vec<&str> = self.names.difference(&self.synced).map(String::as_str).collect();
        let unlisted = unlisted.join("\n");
        if self.unlisted.as_ref() != Some(&unlisted) {
            self.batch.note(notes::UNLISTED, &*unlisted);
            self.unlisted = Some(unlisted);
        }
        self.batch.note(notes::WATCHED_UNTIL, at.to_string());
    }

    /// A gap has begun. It is recorded when it ends, also if this process does not see that.
    pub(crate) fn lost(&mut self, target: &str, since: Timestamp, cause: &str) {
        // The gap that is noted began before.
        if self.made_up.remove(target) || self.past.has_open(target) {
            return;
        }
        self.batch.note(notes::open(target), format!("{since} {cause}"));
        self.is_urgent = true;
    }

    /// Something was not watched for a time.
    pub(crate) fn gap(&mut self, gap: &Gap) {
        let to = gap.to.unwrap_or_else(Timestamp::now);
        self.is_urgent = true;
        for resource in &gap.resources {
            self.batch.note(notes::open(resource), "");
        }
        // A resource that the server does not let us watch is never part of it.
        let mut watched = self.synced.intersection(&self.names).peekable();
        let all = self.synced.len() > 1
            && watched.peek().is_some()
            && watched.all(|name| gap.resources.contains(name));
        if all {
            self.batch.gap(gap.from, to, None, &*gap.cause);
            return;
        }
        for resource in &gap.resources {
            self.batch.gap(gap.from, to, Some(resource), &*gap.cause);
        }
    }

    /// Records the result of a comparison.
    pub(crate) fn observe(&mut self, raw: &RawChange, compared: &Compared) {
        self.found(&raw.kind, raw.at, raw.origin, compared);
    }

    fn found(&mut self, kind: &Kind, at: Timestamp, origin: Origin, compared: &Compared) {
        match compared {
            Compared::Nothing => {}
            Compared::Event(change) => {
                let Some(object) = change.new.as_ref().or(change.old.as_ref()) else { return };
                let (id, verb, rv) = (change.object.clone(), change.verb, change.rv.clone());
                let record =
                    ChangeRecord { object: id, verb, rv, observed_at: at, origin, ..ChangeRecord::default() };
                // A deletion takes no room for long: retention removes the Event as a whole.
                if verb == Verb::Deleted || self.takes_event() {
                    self.put(record, object, What::Event, None);
                }
            }
            Compared::Noise(object) => {
                let is_event = kind.gvk.group.is_empty() && kind.gvk.kind == "Event";
                if !is_event || self.takes_event() {
                    self.state(kind, at, origin, object, What::Noise);
                }
            }
            Compared::Change(change) => {
                let object = change.new.as_ref().or(change.old.as_ref());
                let Some(object) = object.filter(|_| !self.gone.has(change)) else { return };
                match change.to_record() {
                    Ok(record) => {
                        let replaces = change.old.as_deref().filter(|_| change.verb == Verb::Recreated);
                        let replaces = metadata(replaces, "uid");
                        self.put(record, object, What::Change, replaces);
                    }
                    Err(error) => say(&format!("a change of {} is left out: {error}", change.object.name)),
                }
            }
        }
    }

    fn takes_event(&mut self) -> bool {
        let now = Instant::now();
        let takes = self.events.takes(now);
        if let Some(count) = self.events.take_left_out(now) {
            say(&format!(
                "more Events come than the history takes (50 a second, 5,000 at once): {count} more are left out"
            ));
        }
        takes
    }

    /// A state that is no change.
    fn state(
        &mut self,
        kind: &Kind,
        observed_at: Timestamp,
        origin: Origin,
        state: &Redacted<Value>,
        what: What,
    ) {
        let text = |name: &str| metadata(Some(state), name);
        let object = ObjectId {
            gvk: kind.gvk.clone(),
            resource: kind.resource.plural.clone(),
            namespace: text("namespace"),
            name: text("name").unwrap_or_default(),
            uid: text("uid").unwrap_or_default(),
        };
        let rv = text("resourceVersion");
        let record = ChangeRecord { object, rv, observed_at, origin, ..ChangeRecord::default() };
        self.put(record, state, what, None);
    }

    fn put(&mut self, record: ChangeRecord, state: &Redacted<Value>, what: What, replaces: Option<String>) {
        let (object, resource) = (&record.object, record.object.qualified_resource());
        let Ok(json) = serde_json::to_vec(state) else { return };
        if object.uid.is_empty() {
            return say(&format!("{resource} {} is left out of the history: it has no uid", object.name));
        }
        if json.len() > OBJECT {
            return say(&format!(
                "{resource} {} is left out of the history: it has over 64 MiB",
                object.name
            ));
        }
        self.bytes += json.len();
        self.is_urgent |= what != What::Noise;
        self.batch.observe(Observation { record, body: Body::redacted(json), what, replaces });
    }

    /// An object that was there when its resource was first listed. It waits for the rest of the list.
    pub(crate) fn first(&mut self, raw: RawChange) {
        if let Some(object) = raw.now() {
            let uid = object.uid().to_string();
            self.firsts.entry(raw.target_text()).or_default().insert(uid, raw);
        }
    }

    /// Whether an object of a first list has changed since the run before followed its resource.
    pub(crate) fn is_after(&self, raw: &RawChange) -> bool {
        let target = raw.target_text();
        let namespace = raw.key.namespace().filter(|_| self.within.namespaces.is_some());
        let watch = position::of_watch(&target, namespace);
        let followed = self.past.has(&target) || self.past.has(&raw.kind.resource.qualified_name());
        followed && raw.now().is_some_and(|now| self.past.is_before(&watch, now.resource_version()))
    }

    /// The change, unless its object waits for the rest of the first list. It is part of that then.
    pub(crate) fn unless_first(&mut self, raw: RawChange) -> Option<RawChange> {
        let Some(firsts) = self.firsts.get_mut(&raw.target_text()) else { return Some(raw) };
        let before = raw.states().0.map(|old| old.uid().to_string());
        if before.and_then(|uid| firsts.remove(&uid)).is_none() {
            return Some(raw);
        }
        if let Some(uid) = raw.now().map(|now| now.uid().to_string()) {
            firsts.insert(uid, raw);
        }
        None
    }

    /// The first list of a target is complete: tells the changes since the history was last written.
    ///
    /// # Errors
    ///
    /// When the history cannot be read or written.
    pub(crate) fn synced(&mut self, synced: &Synced, comparing: &mut Comparing<'_>) -> Result<(), Error> {
        let kind = &synced.kind;
        let resource = kind.resource.qualified_name();
        let target = synced.target_text();
        let firsts = self.firsts.remove(&target).unwrap_or_default();
        let was_watched = self.past.has(&target) || (synced.name.is_some() && self.past.has(&resource));
        let again = !self.synced.insert(target.clone());
        if self.past.has_left(&target) {
            self.batch.note(notes::left(&target), "");
        }
        if synced.continues {
            // What the former process had lost, this one had not. The changes of that time are still to be recorded.
            self.made_up.extend(self.past.take_open(&target).map(|_| target.clone()));
        } else if self.took_over {
            self.batch.note(notes::open(&target), "");
        }
        if !synced.continues && !synced.is_new && !comparing.profile.noise.leaves_out(&kind.gvk) {
            let (began, grace) = *self.began.get_or_insert((synced.at, FIRST_LISTS));
            if was_watched {
                self.restart_gap(&target, synced.at, again);
            } else if synced.at.duration_since(began).unsigned_abs() > grace {
                self.batch.gap(began, synced.at, Some(&target), notes::NEVER_BEFORE);
            }
            self.first_list(synced, &resource, firsts, was_watched, comparing)?;
        }
        self.is_urgent = true;
        // Last: until here, a start after a crash has to look again.
        self.batch.reached(&*target, position::NOTHING);
        self.reached.watches(&synced.watermarks);
        self.past.followed(&target);
        Ok(())
    }

    fn first_list(
        &mut self,
        synced: &Synced,
        resource: &str,
        mut firsts: HashMap<String, RawChange>,
        was_watched: bool,
        comparing: &mut Comparing<'_>,
    ) -> Result<(), Error> {
        let kind = &synced.kind;
        let cluster = self.cluster.clone();
        let sighting = kind.sighting(cluster.as_deref(), synced.at, Origin::Restart);
        let mut scope = past::scope_of(resource);
        scope.name.clone_from(&synced.name);
        let mut names: HashMap<(Option<String>, String), String> = HashMap::new();
        for (uid, raw) in &firsts {
            let namespace = raw.key.namespace().map(str::to_owned);
            names.insert((namespace, raw.key.name().to_owned()), uid.clone());
        }
        // Stored objects were there, whether or not that list came to its end.
        let deletions = self.past.knows_deletions(&self.within);
        // Two stored objects may have one name, where a deletion was missed: the second one is passed over.
        let mut pages = self.stored(scope, kind.resource.namespaced);
        while let Some(page) = pages.next(&mut self.reader)? {
            for before in page {
                let name = (before.object.namespace.clone(), before.object.name.clone());
                let now = match names.get(&name) {
                    Some(uid) => {
                        let Some(raw) = firsts.remove(uid) else { continue };
                        if raw.now().is_some_and(|now| now.resource_version().to_string() == before.rv) {
                            continue;
                        }
                        let Some(now) = json(&raw) else { continue };
                        Some(now)
                    }
                    None if deletions && self.within.has(before.object.namespace.as_deref()) => None,
                    // It may exist where we do not look.
                    None => continue,
                };
                let compared = comparing.compare(&sighting, Some(before.body.value()), now);
                self.found(kind, synced.at, Origin::Restart, &compared);
                comparing.tell(compared);
            }
            self.commit_if_full(comparing.inbox)?;
        }
        for raw in firsts.into_values() {
            let Some(object) = json(&raw) else { continue };
            if was_watched && self.past.saw(raw.key.namespace(), &self.within) {
                let compared = comparing.compare(&sighting, None, Some(object));
                self.found(kind, synced.at, Origin::Restart, &compared);
                comparing.tell(compared);
            } else if let Some([_, Some(object)]) = comparing.redacted(&sighting, None, Some(object)) {
                self.state(kind, synced.at, Origin::List, &object, What::Known);
            }
            self.commit_if_full(comparing.inbox)?;
        }
        Ok(())
    }

    /// Sets the resources to follow: records the deletions of all objects of resources that the server has no more.
    ///
    /// # Errors
    ///
    /// When the history cannot be read or written.
    pub(crate) fn resources(
        &mut self,
        resources: &Resources,
        comparing: &mut Comparing<'_>,
    ) -> Result<(), Error> {
        let at_start = self.names.is_empty();
        let names: BTreeSet<String> = resources.names.iter().cloned().collect();
        let former = if at_start { &self.past.names } else { &self.names };
        let is_served = |target: &str| resources.served.contains(target.split('/').next().unwrap_or(target));
        // A resource that an incomplete discovery lacks may still be there.
        let (gone, unknown): (Vec<String>, Vec<String>) =
            former.difference(&names).cloned().partition(|target| resources.complete || is_served(target));
        self.names = names.into_iter().chain(unknown).collect();
        let noted: Vec<&str> = self.names.iter().map(String::as_str).collect();
        self.batch.note(notes::NAMES, noted.join("\n"));
        let origin = if at_start { Origin::Restart } else { Origin::List };
        let now = Timestamp::now();
        if !gone.is_empty() {
            // Deletions that were seen are not found again.
            self.commit(comparing.inbox)?;
        }
        for target in gone {
            let left = if at_start { self.past.watched_until.unwrap_or(now) } else { now };
            self.batch.note(notes::left(&target), left.to_string());
            self.past.forget(&target, left);
            self.synced.remove(&target);
            if is_served(&target) || !self.past.knows_deletions(&self.within) {
                continue;
            }
            let mut pages = self.stored(past::scope_of(&target), true);
            if self.within.namespaces.is_some() {
                // Objects without a namespace go with their resource, too.
                pages.namespaces.push(Some(String::new()));
            }
            while let Some(page) = pages.next(&mut self.reader)? {
                for before in page {
                    let kind = Kind::stored(&before.object);
                    let hidden = comparing.profile.noise.leaves_out(&kind.gvk);
                    if hidden || !self.within.has(before.object.namespace.as_deref()) {
                        continue;
                    }
                    let sighting = kind.sighting(self.cluster.as_deref(), now, origin);
                    let compared = comparing.compare(&sighting, Some(before.body.value()), None);
                    self.found(&kind, now, origin, &compared);
                    comparing.tell(compared);
                }
                self.commit_if_full(comparing.inbox)?;
            }
        }
        Ok(())
    }

    /// The time in which kubediff did not run, or did not look at this target. In one run the former one counts once.
    fn restart_gap(&mut self, target: &str, now: Timestamp, again: bool) {
        if let Some((from, reason)) = self.past.all_open().filter(|_| !self.took_over) {
            self.begin_restart(from, now, reason);
            for target in self.past.close_all() {
                self.batch.note(notes::open(&target), "");
            }
            return;
        }
        if let Some((from, reason)) = self.past.take_open(target) {
            self.batch.gap(from.min(now), now, Some(target), reason);
            self.batch.note(notes::open(target), "");
            return;
        }
        if let Some(left) = self.past.take_left(target) {
            self.batch.gap(left.min(now), now, Some(target), "the resource was not served, or not selected");
            return;
        }
        let Some(from) = self.past.watched_until.filter(|_| !again) else { return };
        if self.took_over {
            self.batch.gap(from.min(now), now, Some(target), &*self.why);
            return;
        }
        match &mut self.restart {
            None => self.begin_restart(from, now, self.why.clone()),
            Some(gap) if now.duration_since(gap.first).unsigned_abs() >= SAME_GAP => {
                self.batch.gap(from.min(now), now, Some(target), &*self.why);
            }
            Some(gap) if gap.until < now => {
                self.batch.gap(gap.until, now, None, gap.reason.clone());
                gap.until = now;
            }
            Some(_) => {}
        }
    }

    fn begin_restart(&mut self, from: Timestamp, now: Timestamp, reason: String) {
        if let Some((since, reason)) = self.past.left_out_until(&self.within) {
            self.batch.gap(since.min(now), now, None, reason);
            let still = self.past.left_out_by(&self.within).map(|(_, former)| left_out_note(&(from, former)));
            self.batch.note(notes::LEFT_OUT, still.unwrap_or_default());
        }
        self.batch.gap(from.min(now), now, None, reason.clone());
        self.committed = Instant::now();
        self.restart = Some(RestartGap { first: now, until: now, reason, began: self.committed });
    }

    fn commit_if_full(&mut self, inbox: &Inbox) -> Result<(), Error> {
        if self.is_full() { self.commit(inbox) } else { Ok(()) }
    }

    /// The objects that the history has as existing, where we look.
    fn stored(&self, scope: Scope, namespaced: bool) -> Stored {
        let namespaces = match &self.within.namespaces {
            Some(names) if namespaced => names.iter().cloned().map(Some).collect(),
            _ => vec![None],
        };
        Stored::new(scope, namespaces)
    }
}

fn left_out_note((since, within): &(Timestamp, Within)) -> String {
    format!("{since} {}", serde_json::to_string(within).unwrap_or_default())
}

/// The gap of a restart. It ends for each resource when that is listed.
struct RestartGap {
    /// When the first resource was listed.
    first: Timestamp,
    until: Timestamp,
    reason: String,
    began: Instant,
}

/// The inputs for comparing states of a restart, and the output of the changes.
pub(crate) struct Comparing<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) tally: Tally,
    pub(crate) inbox: &'a Inbox,
    /// Gets each change that is recorded.
    pub(crate) changes: &'a mut dyn FnMut(Box<Change>),
}

impl Comparing<'_> {
    /// A stored state and the one now.
    fn compare(&mut self, sighting: &Sighting<'_>, stored: Option<Value>, now: Option<Value>) -> Compared {
        let Some([stored, now]) = self.redacted(sighting, stored, now) else { return Compared::Nothing };
        Change::between_redacted(sighting, stored, now, 1, self.profile, &mut self.tally)
    }

    /// The states without secrets; `None` when their kind is left out.
    fn redacted(
        &mut self,
        sighting: &Sighting<'_>,
        mut stored: Option<Value>,
        now: Option<Value>,
    ) -> Option<[Option<Redacted<Value>>; 2]> {
        self.profile.secrets.align(stored.as_mut(), now.as_ref());
        self.profile.redact(sighting.gvk, stored, now, 1, &mut self.tally)
    }

    fn tell(&mut self, compared: Compared) {
        if let Compared::Change(change) = compared {
            (self.changes)(change);
        }
    }
}

/// The object as it is; `None` when it is undecodable.
fn json(raw: &RawChange) -> Option<Value> {
    let json = raw.now()?.json();
    let object = json.ok().and_then(|json| state(&json).ok());
    if object.is_none() {
        say(&format!("an object of {} is left out: it is undecodable", raw.kind.resource.qualified_name()));
    }
    object
}
