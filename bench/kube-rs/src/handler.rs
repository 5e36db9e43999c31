//! The handler: it counts notifications.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::{Resource, ResourceExt};
use tokio::sync::Notify;

use crate::delays::{Delays, SENT_AT};

/// The namespace of the objects that `until` asks for.
const ASKED_NAMESPACE: &str = "bench";

#[derive(Default)]
pub(crate) struct Handler {
    heard: Mutex<Heard>,
    changed: Notify,
    hasher: RandomState,
}

#[derive(Default)]
pub(crate) struct Heard {
    /// The version of each object by the hash of its key: kube-rs does not deliver the old object.
    versions: HashMap<u64, u64>,
    pub(crate) updates: usize,
    pub(crate) delays: Delays,
}

impl Handler {
    pub(crate) fn hear<K: Resource>(&self, object: &K) {
        let namespace = object.meta().namespace.as_deref().unwrap_or_default();
        let version = object.meta().resource_version.as_deref().and_then(|it| it.parse().ok()).unwrap_or(0);
        let hash = self.hash_of(namespace, object.meta().name.as_deref().unwrap_or_default());
        let mut heard = self.lock();
        let before = heard.versions.insert(hash, version);
        if before.is_some_and(|before| before != version) {
            heard.updates += 1;
            if let Some(sent) = object.annotations().get(SENT_AT).and_then(|it| it.parse().ok()) {
                heard.delays.add_since(sent);
            }
        }
        if before.is_none() || namespace == ASKED_NAMESPACE {
            self.changed.notify_one();
        }
    }

    pub(crate) fn forget<K: Resource>(&self, object: &K) {
        let namespace = object.meta().namespace.as_deref().unwrap_or_default();
        let hash = self.hash_of(namespace, object.meta().name.as_deref().unwrap_or_default());
        self.lock().versions.remove(&hash);
    }

    pub(crate) async fn until_version(&self, namespace: &str, name: &str, version: u64) {
        let hash = self.hash_of(namespace, name);
        while self.lock().versions.get(&hash).is_none_or(|it| *it < version) {
            self.changed.notified().await;
        }
    }

    pub(crate) async fn until_objects(&self, count: usize) {
        while self.lock().versions.len() < count {
            self.changed.notified().await;
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hash_of(&self, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((namespace, name))
    }
}
