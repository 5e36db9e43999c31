//! A watch shows which member wrote the objects of the story and their traces.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use conformance::{Rig, within};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{ListParams, WatchEvent, WatchParams};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::OBJECTS;

/// One answer of a member to an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    pub(crate) done: String,
    pub(crate) writer: String,
    /// The number of the map of shards that the member knew.
    pub(crate) generation: u64,
}

/// A write of a former owner.
#[derive(Debug)]
pub(crate) struct Overlap {
    pub(crate) object: String,
    pub(crate) late: Write,
    pub(crate) newer: Write,
}

/// Traces have this in front of the name of their object.
pub(crate) const TRACE: &str = "trace-";

/// The answers to each object, in the order of its versions.
type Writes = BTreeMap<String, Vec<Write>>;

pub(crate) struct History {
    writes: watch::Receiver<Writes>,
    _watching: AbortOnDropHandle<()>,
}

impl History {
    /// Watches the objects of the test's namespace from now on.
    pub(crate) async fn watch(rig: &Rig) -> Self {
        let maps = rig.config_maps();
        let version = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        let (sender, writes) = watch::channel(Writes::new());
        let watching = tokio::spawn(async move {
            let events = maps.watch(&WatchParams::default(), &version).await.unwrap();
            let mut events = pin!(events);
            while let Some(event) = events.next().await {
                match event.unwrap() {
                    WatchEvent::Modified(map) => sender.send_modify(|writes| note(writes, &map)),
                    WatchEvent::Bookmark(_) => {}
                    // The namespace's own.
                    WatchEvent::Added(map) => {
                        assert_eq!(map.metadata.name.as_deref(), Some("kube-root-ca.crt"));
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
        Self { writes, _watching: AbortOnDropHandle::new(watching) }
    }

    /// Waits until this is done for every object.
    pub(crate) async fn all_done(&self, wanted: &str) {
        let mut writes = self.writes.clone();
        let all = |writes: &Writes| {
            let objects = writes.iter().filter(|(name, _)| !name.starts_with(TRACE));
            objects.filter(|(_, all)| all.iter().any(|write| write.done == wanted)).count() == OBJECTS
        };
        within("all objects being reconciled", writes.wait_for(all)).await.unwrap();
    }

    /// The writers of this, each once, in order.
    pub(crate) fn writers(&self, wanted: &str) -> BTreeSet<String> {
        let writes = self.writes.borrow();
        let done = writes.values().flatten().filter(|write| write.done == wanted);
        done.map(|write| write.writer.clone()).collect()
    }

    /// The writes of former owners, of objects and traces.
    pub(crate) fn overlaps(&self) -> Vec<Overlap> {
        self.writes.borrow().iter().flat_map(|(object, all)| overlaps(object, all)).collect()
    }
}

/// The writes of former owners of one object: those after a write of another member who knew a newer map, and those with which
/// two members take turns under one map. (A member that loses an object may know the new map and still end what it does.)
pub(crate) fn overlaps(object: &str, all: &[Write]) -> Vec<Overlap> {
    let mut overlaps = Vec::new();
    for (at, late) in all.iter().enumerate() {
        let (before, _) = all.split_at(at);
        let by_same = |one: &Write| (&one.writer, one.generation) == (&late.writer, late.generation);
        let first = before.iter().position(by_same).unwrap_or(at);
        let is_newer = |(index, other): &(usize, &Write)| {
            let takes_turns = other.generation == late.generation && *index > first;
            other.writer != late.writer && (other.generation > late.generation || takes_turns)
        };
        let newer = before.iter().enumerate().rfind(is_newer);
        overlaps.extend(newer.map(|(_, newer)| Overlap {
            object: object.to_owned(),
            late: late.clone(),
            newer: newer.clone(),
        }));
    }
    overlaps
}

/// Notes an answer. The test's own writes change what is wanted, and repeat the former answer.
fn note(writes: &mut Writes, map: &ConfigMap) {
    let data = map.data.clone().unwrap_or_default();
    let [Some(done), Some(writer), Some(generation)] =
        ["done", "writer", "generation"].map(|name| data.get(name).cloned())
    else {
        return;
    };
    let write = Write { done, writer, generation: generation.parse().unwrap() };
    let all = writes.entry(map.metadata.name.clone().unwrap_or_default()).or_default();
    if all.last() != Some(&write) {
        all.push(write);
    }
}
