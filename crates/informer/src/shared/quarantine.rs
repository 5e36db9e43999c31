//! Objects whose newest version could not be read (contract W8).

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use informer_core::{ObjectKey, Scope, SourceId};

use super::lock;

/// An object whose newest version could not be read. The cache has the last one that could, if there was any.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Quarantined {
    /// Which.
    pub key: ObjectKey,
    /// What is wrong with it, without any of its content.
    pub reason: String,
}

/// The unreadable objects of one cache.
#[derive(Default)]
pub(crate) struct Quarantine {
    /// Whether there are any: what each event asks.
    is_used: AtomicBool,
    held: Mutex<HashMap<ObjectKey, Held>>,
}

struct Held {
    source: SourceId,
    reason: String,
}

/// A transform with a bug can make every object unreadable; each is reported, but no more than this are remembered.
const MOST_HELD: usize = 4096;

impl Quarantine {
    /// Whether it is the first one.
    pub(super) fn put(&self, source: SourceId, key: ObjectKey, reason: String) -> bool {
        let mut held = lock(&self.held);
        let first = held.is_empty();
        if held.len() < MOST_HELD || held.contains_key(&key) {
            held.insert(key, Held { source, reason });
            self.is_used.store(true, Ordering::Release);
        }
        first
    }

    /// A good version has come, or the object is gone.
    pub(super) fn release(&self, key: &ObjectKey) {
        if self.is_used.load(Ordering::Acquire) {
            let mut held = lock(&self.held);
            held.remove(key);
            self.is_used.store(!held.is_empty(), Ordering::Release);
        }
    }

    /// A list of this source is applied: what it had was good, or is in `unreadable`; what it had not is gone.
    pub(super) fn listed(&self, source: SourceId, unreadable: &HashSet<ObjectKey>) {
        if self.is_used.load(Ordering::Acquire) {
            let mut held = lock(&self.held);
            held.retain(|key, entry| entry.source != source || unreadable.contains(key));
            self.is_used.store(!held.is_empty(), Ordering::Release);
        }
    }

    /// Whether one of them is in a scope.
    pub(super) fn covers_any(&self, scope: &Scope) -> bool {
        self.is_used.load(Ordering::Acquire) && lock(&self.held).keys().any(|key| scope.contains(key))
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.held).len()
    }

    /// By key.
    pub(crate) fn all(&self) -> Vec<Quarantined> {
        let held = lock(&self.held);
        let all =
            held.iter().map(|(key, held)| Quarantined { key: key.clone(), reason: held.reason.clone() });
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    }
}
