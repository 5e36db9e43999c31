//! What one reconciliation has written, and which of its requests have no answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use informer::{Labels, ObjectKey, ResourceType, ResourceVersion, Uid};
use serde_json::Value;

use super::Seen;
use crate::caches::{Caches, OwnWrite};

/// The writes of a reconciliation.
pub(super) struct Ledger {
    caches: Arc<Caches>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the number of the request; empty once it has failed for certain.
    requests: Vec<Vec<OwnWrite>>,
    /// What this reconciliation wrote last, by resource and key.
    newest: Vec<(ResourceType, ObjectKey, Seen)>,
    ended: bool,
}

/// What a reconciliation wrote.
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

    /// A request is about to be sent: from now on it may have been carried out. `labels` are those that the object will have,
    /// if the request says. `None` if the reconciliation has ended, so that nobody would wait for the result.
    pub(super) fn begin(
        &self,
        resource: &ResourceType,
        namespace: Option<&str>,
        name: Option<&str>,
        labels: Option<&Labels>,
    ) -> Option<Entry> {
        let uncertain = |cache| OwnWrite::Uncertain {
            cache,
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        let writes = match labels {
            Some(labels) => {
                let key = name.and_then(|name| ObjectKey::new(namespace, name).ok());
                self.caches.holding(resource, key.as_ref(), labels).map(uncertain).collect()
            }
            None => self.caches.of(resource).map(uncertain).collect(),
        };
        let mut state = self.state();
        if state.ended {
            return None;
        }
        state.requests.push(writes);
        Some(Entry(state.requests.len() - 1))
    }

    /// The server has not carried out the request.
    pub(super) fn refused(&self, entry: Entry) {
        self.set(entry, Vec::new());
    }

    /// The server has carried out the request and returned the object, or a status after a deletion.
    pub(super) fn answered(
        &self,
        entry: Entry,
        resource: &ResourceType,
        namespace: Option<&str>,
        name: Option<&str>,
        answer: &Value,
    ) {
        let is_object = answer["kind"].as_str() != Some("Status");
        let metadata = if is_object { &answer["metadata"] } else { &answer["details"] };
        let name = metadata["name"].as_str().or(name);
        let Some(key) = name.and_then(|name| ObjectKey::new(namespace, name).ok()) else { return };
        let uid = Uid::new(metadata["uid"].as_str().unwrap_or_default());
        let version = ResourceVersion::new(metadata["resourceVersion"].as_str().unwrap_or_default());
        let writes: Vec<_> = if is_object {
            let labels = labels(metadata);
            let written = |cache| OwnWrite::Written { cache, key: key.clone(), version: version.clone() };
            self.caches.holding(resource, Some(&key), &labels).map(written).collect()
        } else {
            let gone = |cache| OwnWrite::Gone { cache, key: key.clone(), uid: uid.clone() };
            self.caches.of(resource).map(gone).collect()
        };
        self.set(entry, writes);
        let mut state = self.state();
        state.newest.retain(|(of, one, _)| (of, one) != (resource, &key));
        if is_object {
            let seen = Seen { uid: Some(uid), version: Some(version) };
            state.newest.push((resource.clone(), key, seen));
        }
    }

    /// The version that this reconciliation wrote last.
    pub(super) fn newest(&self, resource: &ResourceType, key: &ObjectKey) -> Option<Seen> {
        let state = self.state();
        let written = state.newest.iter().find(|(of, one, _)| (of, one) == (resource, key));
        written.map(|(_, _, seen)| seen.clone())
    }

    pub(super) fn end(&self) -> Writes {
        let mut state = self.state();
        state.ended = true;
        std::mem::take(&mut state.requests).into_iter().flatten().collect()
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

pub(super) fn labels(metadata: &Value) -> Labels {
    let labels = metadata["labels"].as_object();
    let pairs = labels.into_iter().flatten();
    Labels::new(pairs.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))))
}
