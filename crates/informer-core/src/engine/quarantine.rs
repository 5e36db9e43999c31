//! Objects whose newest version is undecodable (contract W8).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{ObjectKey, Scope, SourceId};

/// An object whose newest version is undecodable. The cache has the last good version, if any.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Quarantined {
    /// The undecodable object.
    pub key: ObjectKey,
    /// The reason, without any of the object's content.
    pub reason: String,
}

/// The undecodable objects of one cache.
#[derive(Debug, Default)]
pub struct Quarantine {
    /// Whether any objects are held, so that an event of another object need not take the lock.
    is_used: AtomicBool,
    held: Mutex<HashMap<ObjectKey, Entry>>,
    /// Scopes whose last list, or an event since, had an undecodable object that is not held.
    lost: Mutex<HashSet<Scope>>,
}

/// The result of putting an undecodable object into the quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It is the first object held.
    First,
    /// It is held along with others.
    Further,
    /// It is not held. Only its scope is remembered.
    Lost,
}

/// The undecodable objects of a list.
#[derive(Default)]
pub(super) struct Undecodable {
    pub(super) keys: HashSet<ObjectKey>,
    /// Whether there were more that are not held.
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
    /// Puts an undecodable object of a source, which covers `scope`, into the quarantine. Its key may be unknown.
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

    /// Releases an object: a good version arrived, or the object was deleted. Does nothing if that event is older than the
    /// cached state.
    pub(super) fn release(&self, key: &ObjectKey, is_past: impl FnOnce() -> bool) {
        if self.is_used.load(Ordering::Acquire) && !is_past() {
            let mut held = lock(&self.held);
            held.remove(key);
            self.is_used.store(!held.is_empty(), Ordering::Release);
        }
    }

    /// A list of this source was applied. It had a good version of each object that the source has in quarantine, or did not
    /// have the object, so these objects are released. Objects in `unreadable` are not. If nothing in the list was
    /// [lost](Put::Lost), its scope is no longer remembered.
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

    /// Whether the cache differs from the server in some object of a scope, because it is undecodable.
    pub(super) fn covers_any(&self, scope: &Scope) -> bool {
        lock(&self.lost).contains(scope) || lock(&self.held).keys().any(|key| scope.contains(key))
    }

    /// The number of objects held.
    pub fn len(&self) -> usize {
        lock(&self.held).len()
    }

    /// Whether no object is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects held, sorted by key.
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
        // The quarantine does not know the key of the lost object, so releasing keys does not end its loss.
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
