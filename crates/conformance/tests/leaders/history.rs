//! The history of the story's objects, as a watch shows it.

use std::collections::BTreeMap;
use std::pin::pin;

use conformance::{Rig, within};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{ListParams, WatchEvent, WatchParams};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The generations that wrote each object, in the order of its versions.
type Writes = BTreeMap<String, Vec<u32>>;

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

    /// Waits until both objects have been written in this term.
    pub(crate) async fn has(&self, generation: u32) {
        let mut writes = self.writes.clone();
        let both = |writes: &Writes| {
            ["guarded", "unguarded"]
                .iter()
                .all(|&name| writes.get(name).is_some_and(|writes| writes.contains(&generation)))
        };
        within("a write", writes.wait_for(both)).await.unwrap();
    }

    /// The generations whose writes came after one of a later generation, once for each such write.
    pub(crate) fn overlaps(&self, object: &str) -> Vec<u32> {
        let writes = self.writes.borrow();
        let mut latest = 0;
        let late = writes.get(object).into_iter().flatten().filter(|&&generation| {
            latest = latest.max(generation);
            generation < latest
        });
        late.copied().collect()
    }
}

fn note(writes: &mut Writes, map: &ConfigMap) {
    let written = map.data.as_ref().and_then(|data| data.get("generation"));
    let generation = written.expect("a writer").parse().unwrap();
    writes.entry(map.metadata.name.clone().unwrap_or_default()).or_default().push(generation);
}
