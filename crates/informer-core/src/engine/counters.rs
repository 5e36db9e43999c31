//! Counters on the data path: relaxed atomics, read on demand.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::reader::{Part, Reading};
use crate::reflector::{self, Cause, Request};
use crate::wire::EventType;
use crate::{SourceId, Time};

/// A number that several threads add to. It orders no other memory access.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to the number.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Sets the number.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one engine.
#[derive(Debug)]
pub struct Counters {
    /// Items of lists, unchanged ones included.
    pub list_items: Counter,
    /// List items and events that were left out, because their objects are not in the share.
    pub outside_share: Counter,
    /// Undecodable objects and events.
    pub unreadable: Counter,
    lists: Counter,
    pages: Counter,
    streaming_lists: Counter,
    watches: Counter,
    probes: Counter,
    added: Counter,
    modified: Counter,
    deleted: Counter,
    bookmarks: Counter,
    errors: Counter,
    /// Updates are rare enough for a lock.
    relists: Mutex<BTreeMap<&'static str, u64>>,
    sources: Mutex<HashMap<SourceId, Tally>>,
}

/// The records of one source.
#[derive(Debug, Default)]
struct Tally {
    /// Whether its objects were listed before, by this process or by the one that saved them.
    listed_before: bool,
    /// Why the last request or stream ended.
    last_cause: Option<&'static str>,
    updated: Option<Time>,
}

/// The number of requests, by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RequestCounts {
    /// Lists, each counted with its first page.
    pub lists: u64,
    /// Further pages of lists.
    pub pages: u64,
    /// Streaming lists.
    pub streaming_lists: u64,
    /// Watches.
    pub watches: u64,
    /// Lists of one object that find out which version the server has reached, after a watch fell silent.
    pub probes: u64,
}

/// The number of watch events, by type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EventCounts {
    /// `ADDED`.
    pub added: u64,
    /// `MODIFIED`.
    pub modified: u64,
    /// `DELETED`.
    pub deleted: u64,
    /// `BOOKMARK`.
    pub bookmarks: u64,
    /// `ERROR`.
    pub errors: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            list_items: Counter::default(),
            outside_share: Counter::default(),
            unreadable: Counter::default(),
            lists: Counter::default(),
            pages: Counter::default(),
            streaming_lists: Counter::default(),
            watches: Counter::default(),
            probes: Counter::default(),
            added: Counter::default(),
            modified: Counter::default(),
            deleted: Counter::default(),
            bookmarks: Counter::default(),
            errors: Counter::default(),
            // Every cause has an entry from the start; otherwise the first re-list for a cause would not show as an increase.
            relists: Mutex::new(Cause::NAMES.into_iter().map(|name| (name, 0)).collect()),
            sources: Mutex::default(),
        }
    }
}

impl Counters {
    pub(super) fn read(&self, reading: &Reading) {
        match reading.part {
            Part::Item => self.list_items.add(1),
            Part::Event(EventType::Added) => self.added.add(1),
            Part::Event(EventType::Modified) => self.modified.add(1),
            Part::Event(EventType::Deleted) => self.deleted.add(1),
            Part::Event(EventType::Bookmark) => self.bookmarks.add(1),
            Part::Event(EventType::Error) => self.errors.add(1),
            Part::Other => {}
        }
        self.outside_share.add(u64::from(reading.is_outside));
        // Undecodable deletions, and events without a decodable key, do not get into quarantine, where the others are
        // counted. So they are counted here.
        if reading.unreadable.is_some() || matches!(reading.input, reflector::Input::Undecodable(_)) {
            self.unreadable.add(1);
        }
    }

    pub(super) fn source_added(&self, source: SourceId, resumes: bool) {
        let tally = Tally { listed_before: resumes, ..Tally::default() };
        lock(&self.sources).insert(source, tally);
    }

    pub(super) fn source_removed(&self, source: SourceId) {
        lock(&self.sources).remove(&source);
    }

    pub(super) fn sent(&self, source: SourceId, request: &Request, begins_list: bool) {
        let counter = match request {
            Request::Watch(watch) if !watch.initial_events => return self.watches.add(1),
            Request::List(list) if list.continue_token.is_some() => return self.pages.add(1),
            Request::List(_) if !begins_list => return self.probes.add(1),
            Request::Watch(_) => &self.streaming_lists,
            Request::List(_) => &self.lists,
        };
        counter.add(1);
        if let Some(tally) = lock(&self.sources).get_mut(&source)
            && std::mem::replace(&mut tally.listed_before, true)
            && let Some(cause) = tally.last_cause
        {
            *lock(&self.relists).entry(cause).or_default() += 1;
        }
    }

    pub(super) fn disconnected(&self, source: SourceId, cause: &Cause) {
        if let Some(tally) = lock(&self.sources).get_mut(&source) {
            tally.last_cause = Some(cause.name());
        }
    }

    /// Notes that this source brought the cache up to date.
    pub(super) fn updated(&self, source: SourceId, now: Time) {
        if let Some(tally) = lock(&self.sources).get_mut(&source) {
            tally.updated = Some(now);
        }
    }

    /// How long ago the cache was last brought up to date; of several sources, the longest time.
    pub fn last_update_age(&self, now: Time) -> Option<Duration> {
        lock(&self.sources).values().filter_map(|tally| tally.updated).map(|at| now.since(at)).max()
    }

    /// The number of re-lists by their cause.
    pub fn relists(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.relists).clone()
    }

    /// The numbers of requests.
    pub fn requests(&self) -> RequestCounts {
        RequestCounts {
            lists: self.lists.get(),
            pages: self.pages.get(),
            streaming_lists: self.streaming_lists.get(),
            watches: self.watches.get(),
            probes: self.probes.get(),
        }
    }

    /// The numbers of events.
    pub fn events(&self) -> EventCounts {
        EventCounts {
            added: self.added.get(),
            modified: self.modified.get(),
            deleted: self.deleted.get(),
            bookmarks: self.bookmarks.get(),
            errors: self.errors.get(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
