//! The simulated API server: a collection of few objects with a version, a history that can be compacted, and backups.
//!
//! It answers like kube-apiserver (`resourceVersion`, `limit`, `continue`, `sendInitialEvents`, bookmarks, 410),
//! unless a step makes it answer wrongly.

mod answer;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use informer_core::Time;

use crate::doubt::{Cause, Doubt};
use crate::network::{Arrival, Link, LinkId};
use crate::plan::{Denial, Error, Fault, Lie, ServerSetup, Spoil};
use crate::render;
use crate::truth::{Change, Epoch, KEYS, Key, Record, State, Truth};

const BOOKMARKS_EVERY: Duration = Duration::from_secs(60);
/// The version grows by this much after a backup, so that a restored server is clearly behind.
const AFTER_BACKUP: u64 = 30;

/// After this many changes an object was in every state that a caller may want.
const LONGEST_WISH: u8 = 8;

pub(crate) struct Server {
    setup: ServerSetup,
    pub(crate) truth: Truth,
    pub(crate) version: u64,
    objects: [Option<State>; KEYS as usize],
    /// The history up to this version is compacted.
    compacted: u64,
    backup: Option<Backup>,
    uids: u32,
    values: u32,
    faults: VecDeque<Fault>,
    denial: Option<(Denial, Option<u8>)>,
    spoil: Option<Spoil>,
    forgets: bool,
    links: Vec<Link>,
    links_made: u64,
    /// Bytes of new connections arrive without a step.
    flows: bool,
    /// The number of its schema, which grows with each change.
    pub(crate) schema: u64,
    /// The version of the resource that it serves.
    served: u8,
    /// The resource is missing.
    is_undefined: bool,
}

struct Backup {
    past: Epoch,
    version: u64,
    compacted: u64,
    objects: [Option<State>; KEYS as usize],
}

impl Server {
    pub(crate) fn new(setup: ServerSetup, flows: bool) -> Self {
        let base = if setup.opaque { render::OPAQUE } else { 0 };
        let mut server = Self {
            version: base + u64::from(setup.first_version),

            truth: Truth::new(),
            objects: [None; KEYS as usize],
            compacted: 0,
            backup: None,
            uids: 0,
            values: 0,
            faults: VecDeque::new(),
            denial: None,
            spoil: None,
            forgets: false,
            links: Vec::new(),
            links_made: 0,
            flows,
            schema: 1,
            served: 1,
            is_undefined: false,
            setup,
        };
        for key in Key::all().take(usize::from(server.setup.objects)) {
            server.put(key);
        }
        server
    }

    pub(crate) fn put(&mut self, key: Key) {
        let before = self.get(key);
        self.values += 1;
        self.uids += u32::from(before.is_none());
        self.version += 1;
        let uid = before.map_or(self.uids, |before| before.uid);
        let state = State { uid, version: self.version, value: self.values };
        self.set(key, Some(state));
        let before = before.filter(|before| self.shows(before));
        let (state, change) = match before {
            None if !self.shows(&state) => return,
            None => (state, Change::Added),
            Some(_) if self.shows(&state) => (state, Change::Modified),
            // The object leaves the selection. The event has its last selected state, and the version of the change.
            Some(before) => (State { version: self.version, ..before }, Change::Deleted),
        };
        self.happened(Record { key, state, change });
    }

    /// Changes an object until it is selected and in a wanted state.
    pub(crate) fn show(&mut self, key: Key, is_wanted: impl Fn(&State) -> bool) {
        for _ in 0..LONGEST_WISH {
            self.put(key);
            if self.get(key).is_some_and(|state| self.shows(&state) && is_wanted(&state)) {
                return;
            }
        }
    }

    /// Whether the informer selects an object in this state.
    fn shows(&self, state: &State) -> bool {
        !self.setup.selects || render::label(state.value) == render::SELECTED
    }

    /// Changes an object at its version, without an event. Returns whether the object exists.
    pub(crate) fn revise(&mut self, key: Key) -> bool {
        let Some(before) = self.get(key).filter(|before| self.shows(before)) else { return false };
        // An even difference keeps the label.
        self.values += 2;
        let value = self.values + (self.values + before.value) % 2;
        self.values = value;
        self.set(key, Some(State { value, ..before }));
        self.truth.revise(key, value)
    }

    /// The smallest version.
    fn oldest(&self) -> u64 {
        if self.setup.opaque { render::OPAQUE + 1 } else { 1 }
    }

    pub(crate) fn delete(&mut self, key: Key) {
        let Some(before) = self.get(key) else { return };
        self.version += 1;
        self.set(key, None);
        if !self.shows(&before) {
            return;
        }
        self.happened(Record {
            key,
            state: State { version: self.version, ..before },
            change: Change::Deleted,
        });
    }

    fn happened(&mut self, record: Record) {
        self.truth.record(record);
        if std::mem::take(&mut self.forgets) {
            return;
        }
        for link in &mut self.links {
            send(link, &record, &mut self.spoil);
        }
    }

    pub(crate) fn get(&self, key: Key) -> Option<State> {
        self.objects.get(usize::from(key.0)).copied().flatten()
    }

    fn set(&mut self, key: Key, state: Option<State>) {
        if let Some(place) = self.objects.get_mut(usize::from(key.0)) {
            *place = state;
        }
    }

    pub(crate) fn elsewhere(&mut self, versions: u8) {
        self.version += u64::from(versions);
    }

    /// Raises the version above this one.
    pub(crate) fn pass(&mut self, version: u64) {
        self.version = self.version.max(version) + 1;
    }

    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
    }

    pub(crate) fn back_up(&mut self) {
        let (past, version) = (self.truth.present(), self.version);
        self.backup = Some(Backup { past, version, compacted: self.compacted, objects: self.objects });
        self.version += AFTER_BACKUP;
        self.bookmark();
    }

    pub(crate) fn restore(&mut self) {
        let Some(backup) = &self.backup else { return };
        self.version = backup.version;
        self.compacted = backup.compacted;
        self.objects = backup.objects;
        self.truth.restore(backup.past.clone());
        self.restart();
    }

    pub(crate) fn restart(&mut self) {
        self.links.iter_mut().for_each(Link::break_off);
    }

    pub(crate) fn bookmark(&mut self) {
        let (version, idle) = (self.version, self.setup.idle_bookmarks);
        for link in &mut self.links {
            bookmark(link, version, idle);
        }
    }

    /// The definition of the resource changes, which ends its watches.
    pub(crate) fn change_schema(&mut self) {
        self.schema += 1;
        self.links.iter_mut().filter(|link| link.watch.is_some()).for_each(Link::finish);
    }

    /// The resource is served as another version only.
    pub(crate) fn serve_another_version(&mut self) {
        self.served = 3 - self.served;
        self.change_schema();
    }

    pub(crate) fn undefine(&mut self) {
        self.is_undefined = true;
        self.change_schema();
    }

    pub(crate) fn define(&mut self) {
        self.is_undefined = false;
    }

    /// The version of the resource, as discovery has it.
    pub(crate) fn discovered(&self) -> Option<u8> {
        (!self.is_undefined && self.can_answer()).then_some(self.served)
    }

    /// The documents of the index of schemas.
    pub(crate) fn schemas(&self) -> HashMap<String, String> {
        ["api/v1", "api/v2"].map(|path| (path.to_owned(), self.schema.to_string())).into()
    }

    /// Whether it answers what every user may ask for.
    pub(crate) fn can_answer(&self) -> bool {
        use Denial::{Down, Unauthorized, Unavailable};
        !matches!(self.denial, Some((Down | Unauthorized | Unavailable, None)))
    }

    pub(crate) fn fault(&mut self, fault: Fault, times: u8) {
        self.faults.extend((0..times).map(|_| fault));
    }

    pub(crate) fn deny(&mut self, denial: Denial, namespace: Option<u8>) {
        self.denial = Some((denial, namespace));
    }

    pub(crate) fn allow(&mut self) {
        self.denial = None;
    }

    pub(crate) fn spoil(&mut self, spoil: Spoil) {
        self.spoil = Some(spoil);
    }

    pub(crate) fn forget(&mut self) {
        self.forgets = true;
    }

    /// Ends every fault. From now on bytes arrive without a step.
    pub(crate) fn heal(&mut self) {
        self.faults.clear();
        self.denial = None;
        self.is_undefined = false;
        self.spoil = None;
        self.forgets = false;
        self.flows = true;
        self.links.iter_mut().for_each(|link| link.flows = true);
    }

    pub(crate) fn error(&mut self, id: LinkId, error: Error) {
        if let Some(link) = self.link(id).filter(|link| link.watch.is_some()) {
            link.push_last_word(&render::error_event(error));
        }
    }

    /// Sends something wrong on a watch.
    pub(crate) fn lie(&mut self, id: LinkId, lie: Lie) {
        // An informer cannot know which of two opaque versions is older.
        if self.setup.opaque {
            return;
        }
        let (version, epoch) = (self.version, self.truth.epoch());
        let old = match lie {
            Lie::Old(key, back) => {
                let records = self.truth.of(epoch, key);
                records.len().checked_sub(usize::from(back) + 1).and_then(|at| records.get(at)).copied()
            }
            _ => None,
        };
        let sent = self.link(id).and_then(|link| Some(link.watch.as_ref()?.sent)).unwrap_or_default();
        let is_there = matches!(lie, Lie::Old(key, _) if self.truth.at(epoch, key, sent).is_some());
        let Some(link) = self.link(id) else { return };
        let Some(watch) = &link.watch else { return };
        match lie {
            Lie::Twice => {
                let line = watch.last_line.clone();
                link.push(&line);
            }
            Lie::Old(key, _) => {
                let is_asked = link.namespace.is_none_or(|namespace| namespace == key.namespace());
                if let Some(old) = old.filter(|_| is_asked) {
                    link.push(&render::event(&old, None));
                    link.said.push((key, old.state));
                    // A deleted object comes back, and an undecodable one seems decodable. The next change of the
                    // object ends that.
                    let cause = if is_there { Cause::Excuse(old.state.version) } else { Cause::Lie };
                    link.doubts.push((key, Doubt { until: version + 1, cause, is_held: false, lists: 0 }));
                }
            }
            Lie::OldBookmark(back) => {
                let older = watch.sent.saturating_sub(u64::from(back)).max(1);
                link.push(&render::bookmark(older, false));
            }
        }
    }

    pub(crate) fn link(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.id == id)
    }

    pub(crate) fn close(&mut self, id: LinkId) {
        self.links.retain(|link| link.id != id);
    }

    pub(crate) fn speaks_protobuf(&self) -> bool {
        self.setup.protobuf
    }

    pub(crate) fn take(&mut self, id: LinkId, most: usize) -> Option<Arrival> {
        self.link(id)?.take(most)
    }

    /// When a watch next sends something although no object changes.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let watches = self.links.iter().filter_map(|link| link.watch.as_ref());
        let of_watches = watches.map(|watch| {
            watch.bookmark_at.min(watch.ends_at).min(watch.initial_end_at.unwrap_or(watch.ends_at))
        });
        of_watches.chain(self.links.iter().filter_map(Link::gives_up_at)).min()
    }

    pub(crate) fn tick(&mut self, now: Time) {
        let (version, idle) = (self.version, self.setup.idle_bookmarks);
        for link in &mut self.links {
            link.tick(now);
            let Some(watch) = &mut link.watch else { continue };
            if watch.initial_end_at.is_some_and(|at| at <= now) {
                watch.initial_end_at = None;
                watch.sent = version.max(watch.sent);
                let end = render::bookmark(watch.sent, true);
                link.push(&end);
            }
            let Some(watch) = &mut link.watch else { continue };
            if watch.ends_at <= now {
                link.finish();
            } else if watch.bookmark_at <= now {
                watch.bookmark_at = now + BOOKMARKS_EVERY;
                bookmark(link, version, idle);
            }
        }
    }
}

fn bookmark(link: &mut Link, version: u64, idle: bool) {
    let Some(watch) = link.watch.as_mut().filter(|watch| watch.initial_end_at.is_none()) else { return };
    // A server that is behind the watch sends no bookmark.
    if version > watch.sent || idle && version == watch.sent {
        watch.sent = version;
        link.push(&render::bookmark(version, false));
    }
}

/// Sends an event on the watch, if the watch covers it and does not have it yet.
fn send(link: &mut Link, record: &Record, spoil: &mut Option<Spoil>) {
    let Some(watch) = &mut link.watch else { return };
    let version = record.state.version;
    if version <= watch.sent || link.namespace.is_some_and(|namespace| namespace != record.key.namespace()) {
        return;
    }
    watch.sent = version;
    let is_held = !watch.is_list;
    let spoil = spoil.take();
    let line = render::event(record, spoil);
    watch.last_line.clone_from(&line);
    link.said.push((record.key, record.state));
    match spoil.map(|spoil| skipped(record.change, spoil)) {
        None => link.push(&line),
        Some(Some(cause)) => {
            link.doubts.push((record.key, Doubt { until: version, cause, is_held, lists: 0 }));
            link.push(&line);
        }
        Some(None) => link.push_last_word(&line),
    }
}

/// The doubt that a damaged event leaves. `None` if the event must lead to a list: a deletion, or an event without a
/// key (W17).
fn skipped(change: Change, spoil: Spoil) -> Option<Cause> {
    match (spoil, change) {
        // An object of another kind is skipped, even its deletion (W8).
        (Spoil::Kind, _) => Some(Cause::Damage),
        (_, Change::Deleted) | (Spoil::Nameless | Spoil::Type, _) => None,
        (Spoil::Version, _) => Some(Cause::Damage),
        (Spoil::Half, _) => Some(Cause::Half),
    }
}
