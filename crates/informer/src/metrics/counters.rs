//! What is counted on the way of the data: relaxed atomics, read whenever somebody looks.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use informer_core::reflector::Cause;
use informer_core::wire::EventType;
use informer_core::{SourceId, Time};
use tokio::time::Instant;

use super::{EventCounts, RequestCounts};
use crate::shared::lock;

/// One number that several tasks add to. It orders nothing else.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn add_nanos(&self, time: Duration) {
        self.add(nanos(time));
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one informer.
pub(crate) struct Counters {
    pub(crate) lists: Counter,
    pub(crate) pages: Counter,
    pub(crate) streaming_lists: Counter,
    pub(crate) watches: Counter,
    pub(crate) probes: Counter,
    pub(crate) list_items: Counter,
    pub(crate) unreadable: Counter,
    pub(crate) saves: Counter,
    pub(crate) failed_saves: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) decode_nanos: Counter,
    added: Counter,
    modified: Counter,
    deleted: Counter,
    bookmarks: Counter,
    errors: Counter,
    /// Rare enough for a lock.
    relists: Mutex<BTreeMap<&'static str, u64>>,
    sources: Mutex<HashMap<SourceId, Arc<Freshness>>>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            lists: Counter::default(),
            pages: Counter::default(),
            streaming_lists: Counter::default(),
            watches: Counter::default(),
            probes: Counter::default(),
            list_items: Counter::default(),
            unreadable: Counter::default(),
            saves: Counter::default(),
            failed_saves: Counter::default(),
            received_bytes: Counter::default(),
            decode_nanos: Counter::default(),
            added: Counter::default(),
            modified: Counter::default(),
            deleted: Counter::default(),
            bookmarks: Counter::default(),
            errors: Counter::default(),
            // From the start on, or the first of a kind would not show as an increase.
            relists: Mutex::new(Cause::NAMES.into_iter().map(|name| (name, 0)).collect()),
            sources: Mutex::default(),
        }
    }
}

impl Counters {
    pub(crate) fn event(&self, kind: EventType) {
        let counter = match kind {
            EventType::Added => &self.added,
            EventType::Modified => &self.modified,
            EventType::Deleted => &self.deleted,
            EventType::Bookmark => &self.bookmarks,
            EventType::Error => &self.errors,
        };
        counter.add(1);
    }

    pub(crate) fn relist(&self, cause: &'static str) {
        *lock(&self.relists).entry(cause).or_default() += 1;
    }

    pub(crate) fn source_added(&self, source: SourceId, freshness: Arc<Freshness>) {
        lock(&self.sources).insert(source, freshness);
    }

    pub(crate) fn source_removed(&self, source: SourceId) {
        lock(&self.sources).remove(&source);
    }

    pub(super) fn last_update_age(&self) -> Option<Duration> {
        lock(&self.sources).values().filter_map(|freshness| freshness.age()).max()
    }

    pub(super) fn relists(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.relists).clone()
    }

    pub(super) fn requests(&self) -> RequestCounts {
        RequestCounts {
            lists: self.lists.get(),
            pages: self.pages.get(),
            streaming_lists: self.streaming_lists.get(),
            watches: self.watches.get(),
            probes: self.probes.get(),
        }
    }

    pub(super) fn events(&self) -> EventCounts {
        EventCounts {
            added: self.added.get(),
            modified: self.modified.get(),
            deleted: self.deleted.get(),
            bookmarks: self.bookmarks.get(),
            errors: self.errors.get(),
        }
    }
}

/// When a source last brought the cache up to date.
pub(crate) struct Freshness {
    started: Instant,
    updated: Moment,
}

impl Freshness {
    pub(crate) fn new(started: Instant) -> Self {
        Self { started, updated: Moment::default() }
    }

    /// `now` is the time since the start, which whoever calls this has at hand: a clock is dearer than a counter.
    pub(crate) fn updated(&self, now: Time) {
        self.updated.set(now.since(Time::ZERO));
    }

    fn age(&self) -> Option<Duration> {
        self.updated.get().map(|updated| self.started.elapsed().saturating_sub(updated))
    }
}

/// Measures the calls of one handler, which come one at a time.
pub(crate) struct CallMeter {
    made: Instant,
    calls: Counter,
    nanos: Counter,
    began: Moment,
}

impl Default for CallMeter {
    fn default() -> Self {
        Self {
            made: Instant::now(),
            calls: Counter::default(),
            nanos: Counter::default(),
            began: Moment::default(),
        }
    }
}

impl CallMeter {
    pub(crate) fn begin(&self) {
        self.began.set(self.made.elapsed());
    }

    pub(crate) fn end(&self) {
        let Some(took) = self.under_way() else { return };
        self.began.clear();
        self.nanos.add_nanos(took);
        self.calls.add(1);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.get()
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.nanos.get())
    }

    pub(crate) fn under_way(&self) -> Option<Duration> {
        self.began.get().map(|began| self.made.elapsed().saturating_sub(began))
    }
}

/// A time since some start, or none.
#[derive(Default)]
struct Moment(Counter);

impl Moment {
    fn set(&self, since_start: Duration) {
        // 0 is none.
        self.0.set(nanos(since_start).saturating_add(1));
    }

    fn clear(&self) {
        self.0.set(0);
    }

    fn get(&self) -> Option<Duration> {
        self.0.get().checked_sub(1).map(Duration::from_nanos)
    }
}

/// Enough for 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
