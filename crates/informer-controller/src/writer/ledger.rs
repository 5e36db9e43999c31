//! The writes of one reconciliation, and its requests without an answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use informer::{Labels, ObjectKey, ResourceType, Uid};
use informer_core::control::{CacheStates, OwnWrite};
use serde_json::Value;

use super::Seen;
use super::answer::Answer;
use super::attempt::Attempt;
use crate::caches::Caches;

/// The effect of a write in the caches.
#[derive(Debug, Clone)]
pub(super) enum Expected {
    /// The object as written, which is the answer. With these labels, if the request says.
    Object {
        labels: Option<Labels>,
    },
    /// The object as written, of which the answer is one part.
    Part,
    /// The deletion of this incarnation, or its beginning if the answer is the object.
    Deletion {
        uid: Option<Uid>,
    },
    /// The answer does not tell: the server is asked.
    Unknown,
    Nothing,
}

impl Expected {
    /// The object that the body of a request is.
    pub(super) fn of_body(body: &Value) -> Self {
        Self::Object { labels: Some(labels(&body["metadata"])) }
    }
}

/// The writes of a reconciliation.
pub(super) struct Ledger {
    caches: Arc<Caches>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the number of the request; empty once it has failed for certain.
    requests: Vec<Vec<OwnWrite>>,
    /// The last writes of this reconciliation, by resource and key; `None` for an object that it deleted.
    newest: Vec<(ResourceType, ObjectKey, Option<Written>)>,
    ended: bool,
}

/// An object as this reconciliation has written it last.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) seen: Seen,
    /// As the server answered, if that was the whole object.
    pub(super) json: Option<Arc<str>>,
}

/// The writes of a reconciliation.
pub(crate) type Writes = Vec<OwnWrite>;

/// The number of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry(usize);

impl Ledger {
    pub(super) fn new(caches: Arc<Caches>) -> Self {
        Self { caches, state: Mutex::default() }
    }

    pub(super) fn caches(&self) -> &Caches {
        &self.caches
    }

    /// A request is about to be sent: from now on it may have been carried out. `None` if the reconciliation has ended, so that
    /// nobody would wait for the result.
    pub(super) fn begin(&self, attempt: Attempt<'_>, expected: &Expected) -> Option<Entry> {
        let Attempt { resource, namespace, name, .. } = attempt;
        let uncertain = |cache| OwnWrite::Uncertain {
            cache,
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        let writes = match expected {
            Expected::Nothing => Vec::new(),
            Expected::Object { labels: Some(labels) } => {
                self.concerned(resource, attempt.key().ok().as_ref(), labels).map(uncertain).collect()
            }
            _ => self.caches.of(resource).map(uncertain).collect(),
        };
        let mut state = self.state();
        if state.ended {
            return None;
        }
        state.requests.push(writes);
        Some(Entry(state.requests.len() - 1))
    }

    /// The caches that a write of an object concerns: also those that this reconciliation has written it into before.
    fn concerned(
        &self,
        resource: &ResourceType,
        key: Option<&ObjectKey>,
        labels: &Labels,
    ) -> impl Iterator<Item = usize> {
        let before: Vec<_> = {
            let state = self.state();
            let written = state.requests.iter().flatten().filter_map(|write| match write {
                OwnWrite::Written { cache, key: of, .. } if Some(of) == key => Some(*cache),
                _ => None,
            });
            written.collect()
        };
        let holding: Vec<_> = self.caches.holding(resource, key, labels).collect();
        // Another resource may have an object of the same key.
        let is_new = |cache: &usize| before.contains(cache) && !holding.contains(cache);
        let before: Vec<_> = self.caches.of(resource).filter(is_new).collect();
        holding.into_iter().chain(before)
    }

    /// The server has not carried out the request.
    pub(super) fn refused(&self, entry: Entry) {
        self.set(entry, Vec::new());
    }

    /// The server has carried out the request and returned the object, a part of it, or a status after a deletion.
    pub(super) fn answered(&self, entry: Entry, attempt: Attempt<'_>, expected: Expected, answer: &Answer) {
        let Attempt { resource, namespace, name, .. } = attempt;
        let is_object = answer.is_object();
        let name = answer.name().or(name);
        let Some(key) = name.and_then(|name| ObjectKey::new(namespace, name).ok()) else { return };
        let (is_part, uid) = match expected {
            Expected::Nothing | Expected::Unknown => return,
            Expected::Object { .. } => (false, None),
            Expected::Part => (true, None),
            Expected::Deletion { uid } => (false, uid),
        };
        let (uid, version) = (answer.uid().cloned().or(uid), answer.version().cloned());
        let holds = |cache| self.caches.object(cache, &key).is_some();
        match (&version, &uid) {
            // A part has no labels: a cache that lacks the object may select it, so the server is asked.
            (Some(_), _) if is_part && !self.caches.of(resource).all(holds) => {}
            (Some(version), _) if is_object => {
                let written = |cache| OwnWrite::Written { cache, key: key.clone(), version: version.clone() };
                let concerned = self.concerned(resource, Some(&key), answer.labels());
                let is_told = |cache: &usize| self.caches.is_told(*cache, &key, |by| answer.hash(by, &key));
                self.set(entry, concerned.filter(is_told).map(written).collect());
            }
            (_, Some(uid)) => {
                let gone = |cache| OwnWrite::Gone { cache, key: key.clone(), uid: uid.clone() };
                self.set(entry, self.caches.of(resource).map(gone).collect());
            }
            // The answer says nothing that could be awaited. The object is asked for when its next reconciliation begins.
            _ => return,
        }
        let mut state = self.state();
        let is_it =
            |(of, one, _): &(ResourceType, ObjectKey, Option<Written>)| is_same(of, resource) && *one == key;
        let before = state.newest.iter().position(is_it).and_then(|at| state.newest.swap_remove(at).2);
        let json = if is_part { before.and_then(|before| before.json) } else { Some(answer.json().clone()) };
        let written = is_object.then_some(Written { seen: Seen { uid, version }, json });
        state.newest.push((resource.clone(), key, written));
    }

    /// The last write of the object by this reconciliation: `Some(None)` if that deleted it, `None` if there is no write.
    pub(super) fn newest(&self, resource: &ResourceType, key: &ObjectKey) -> Option<Option<Written>> {
        let state = self.state();
        let written = state.newest.iter().find(|(of, one, _)| is_same(of, resource) && one == key);
        written.map(|(_, _, written)| written.clone())
    }

    /// Refuses further requests.
    pub(super) fn close(&self) {
        self.state().ended = true;
    }

    pub(super) fn end(&self) -> Writes {
        self.close();
        std::mem::take(&mut self.state().requests).into_iter().flatten().collect()
    }

    fn set(&self, entry: Entry, writes: Vec<OwnWrite>) {
        // After the end nobody reads what a request that was in flight has written: it stays uncertain.
        if let Some(request) = self.state().requests.get_mut(entry.0) {
            *request = writes;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The versions of a resource are one resource.
fn is_same(one: &ResourceType, other: &ResourceType) -> bool {
    one.group == other.group && one.plural == other.plural
}

fn labels(metadata: &Value) -> Labels {
    let labels = metadata["labels"].as_object();
    let pairs = labels.into_iter().flatten();
    Labels::new(pairs.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))))
}
