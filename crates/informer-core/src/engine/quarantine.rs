//! Objects whose newest version is undecodable (contract W8).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{ObjectKey, Scope, SourceId};

/// An object whose newest version is undecodable. The cache has the last good version, if any.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Quarantined {
    /// Which.
    pub key: ObjectKey,
    /// The reason, without any of its content.
    pub reason: String,
}

/// The undecodable objects of one cache.
#[derive(Debug, Default)]
pub struct Quarantine {
    /// Whether there are any: what each event asks.
    is_used: AtomicBool,
    held: Mutex<HashMap<ObjectKey, Entry>>,
    /// Scopes with an undecodable object of unknown key since their last list.
    lost: Mutex<HashSet<Scope>>,
}

/// What has become of something unreadable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It is the first one that is held.
    First,
    /// It is held, too.
    Further,
    /// Only that there was something in its scope is remembered.
    Lost,
}

/// The undecodable objects of a list.
#[derive(Default)]
pub(super) struct Undecodable {
    pub(super) keys: HashSet<ObjectKey>,
    /// There was more, that is not remembered.
    pub(super) some_lost: bool,
}

#[derive(Debug)]
struct Entry {
    source: SourceId,
    reason: String,
}

/// A transform with a bug can make every object undecodable; each is reported, but no more than this are kept.
const MOST_HELD: usize = 4096;

impl Quarantine {
    /// An object of a source, which covers `scope`, is undecodable. Its key may be unknown.
    pub(super) fn put(&self, source: SourceId, scope: &Scope, key: Option<ObjectKey>, reason: String) -> Put {
        let mut held = lock(&self.held);
        match key {
            Some(key) if held.len() < MOST_HELD || held.contains_key(&key) => {
                let put = if held.is_empty() { Put::First } else { Put::Further };
                held.insert(key, Entry { source, reason });
                self.is_used.store(true, Ordering::Release);
                put
            }
            _ => {
                lock(&self.lost).insert(scope.clone());
                Put::Lost
            }
        }
    }

    /// A good version has come, or the object is gone, unless that is of the past.
    pub(super) fn release(&self, key: &ObjectKey, is_past: impl FnOnce() -> bool) {
        if self.is_used.load(Ordering::Acquire) && !is_past() {
            let mut held = lock(&self.held);
            held.remove(key);
            self.is_used.store(!held.is_empty(), Ordering::Release);
        }
    }

    /// A list of this source is applied: what it had was good, or is in `unreadable`, or was [lost](Put::Lost); what it
    /// had not is gone.
    pub(super) fn listed(&self, source: SourceId, scope: &Scope, unreadable: &Undecodable) {
        if self.is_used.load(Ordering::Acquire) {
            let mut held = lock(&self.held);
            held.retain(|key, entry| entry.source != source || unreadable.keys.contains(key));
            self.is_used.store(!held.is_empty(), Ordering::Release);
        }
        if !unreadable.some_lost {
            lock(&self.lost).remove(scope);
        }
    }

    /// Whether something in a scope is not in the cache as it is on the server.
    pub(super) fn covers_any(&self, scope: &Scope) -> bool {
        lock(&self.lost).contains(scope) || lock(&self.held).keys().any(|key| scope.contains(key))
    }

    /// How many objects are remembered.
    pub fn len(&self) -> usize {
        lock(&self.held).len()
    }

    /// Whether no object is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that are remembered, by key.
    pub fn all(&self) -> Vec<Quarantined> {
        let held = lock(&self.held);
        let all =
            held.iter().map(|(key, held)| Quarantined { key: key.clone(), reason: held.reason.clone() });
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::Store;

    use super::*;

    fn key(number: usize) -> Option<ObjectKey> {
        ObjectKey::new(Some("shop"), &format!("p{number}")).ok()
    }

    #[test]
    fn p2_more_than_is_remembered_is_not_forgotten_before_a_list() {
        let source = Store::new().add_source(Scope::All);
        let quarantine = Quarantine::default();
        let put = |number| quarantine.put(source, &Scope::All, key(number), String::new());
        assert_eq!(put(0), Put::First);
        for number in 1..MOST_HELD {
            assert_eq!(put(number), Put::Further);
        }
        assert_eq!(put(MOST_HELD), Put::Lost);
        assert_eq!(put(1), Put::Further);
        for key in (0..=MOST_HELD).filter_map(key) {
            quarantine.release(&key, || false);
        }
        // The last of them may have been good before the others.
        assert_eq!(quarantine.len(), 0);
        assert!(quarantine.covers_any(&Scope::All));
        quarantine.listed(source, &Scope::All, &Undecodable::default());
        assert!(!quarantine.covers_any(&Scope::All));
    }

    #[test]
    fn p2_what_a_list_itself_loses_stays_lost() {
        let mut store = Store::new();
        let [shop, other] = ["shop", "other"].map(|name| Scope::Namespace(name.into()));
        let [of_shop, of_other] = [&shop, &other].map(|scope| store.add_source(scope.clone()));
        let quarantine = Quarantine::default();
        assert_eq!(quarantine.put(of_shop, &shop, None, String::new()), Put::Lost);
        assert!(!quarantine.covers_any(&other));
        let unreadable = Undecodable { some_lost: true, ..Undecodable::default() };
        quarantine.listed(of_shop, &shop, &unreadable);
        quarantine.listed(of_other, &other, &Undecodable::default());
        assert!(quarantine.covers_any(&shop));
        quarantine.listed(of_shop, &shop, &Undecodable::default());
        assert!(!quarantine.covers_any(&shop));
    }
}
