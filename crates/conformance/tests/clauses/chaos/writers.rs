//! Writers that change the pods: many at a time, at random, undeterred by a server that goes away.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use conformance::within;
use fastrand::Rng;
use futures_util::future::join_all;
use informer::{ResourceVersion, Uid};
use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{Patch, PatchParams};
use kube_client::{Api, Client, Error};
use kube_core::ResourceExt;
use serde_json::json;
use tokio::sync::watch;

pub(super) const NAMESPACES: [&str; 3] = ["east", "north", "south"];
const WRITERS: usize = 16;
const PODS: usize = 2_000;
/// The operations of each writer after it has made its share of the pods.
const OPERATIONS: usize = 175;
const RETRY: Duration = Duration::from_millis(50);

/// How many operations are done.
#[derive(Clone, Default)]
pub(super) struct Progress(watch::Sender<usize>);

/// The answered writes. A write whose connection broke is not recorded here, because its result is unknown.
#[derive(Default)]
pub(super) struct Written {
    /// Each incarnation that was created, with its first version.
    pub(super) created: HashMap<Uid, ResourceVersion>,
    /// The newest version.
    pub(super) last: ResourceVersion,
    changes: usize,
    deletions: usize,
    retries: usize,
}

struct Writer {
    client: Client,
    random: Rng,
    progress: Progress,
    written: Written,
}

impl Progress {
    pub(super) async fn reached(&self, operations: usize) {
        let mut done = self.0.subscribe();
        let reached = async { done.wait_for(|done| *done >= operations).await.map(drop) };
        within("the writers' progress", reached).await.expect("writers");
    }
}

/// Starts all writers; the future resolves when they are done, with a last pod that comes after everything else.
pub(super) fn start(
    client: &Client,
    seed: u64,
    progress: &Progress,
) -> impl Future<Output = Written> + use<> {
    let writers = (0..WRITERS).map(|number| {
        let random = Rng::with_seed(seed + number as u64);
        let (client, progress) = (client.clone(), progress.clone());
        let writer = Writer { client, random, progress, written: Written::default() };
        tokio::spawn(writer.write(number))
    });
    let writers: Vec<_> = writers.collect();
    let (client, progress) = (client.clone(), progress.clone());
    async move {
        let mut all = Written::default();
        for written in join_all(writers).await {
            all.add(written.expect("no panic"));
        }
        let mut last = Writer { client, random: Rng::with_seed(seed), progress, written: all };
        last.create(NAMESPACES[0], "last").await;
        last.written
    }
}

impl Writer {
    async fn write(mut self, number: usize) -> Written {
        for pod in (number..PODS).step_by(WRITERS) {
            self.create(NAMESPACES[pod % NAMESPACES.len()], &format!("pod-{pod}")).await;
        }
        for _ in 0..OPERATIONS {
            // Anybody's pod, so that writers meet.
            let pod = self.random.usize(..PODS);
            let (namespace, name) = (NAMESPACES[pod % NAMESPACES.len()], format!("pod-{pod}"));
            match self.random.u8(..100) {
                0..55 => self.change(namespace, &name).await,
                55..70 => self.delete(namespace, &name).await,
                70..85 => self.create(namespace, &name).await,
                _ => {
                    self.delete(namespace, &name).await;
                    self.create(namespace, &name).await;
                }
            }
        }
        self.written
    }

    async fn create(&mut self, namespace: &str, name: &str) {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": name, "labels": { "tier": self.tier() } },
            "spec": { "containers": [{ "name": "main", "image": "none" }] },
        }))
        .expect("a pod");
        let pods = self.pods(namespace);
        if let Some(pod) = self.persist(|| async { pods.create(&Default::default(), &pod).await }).await {
            let version: ResourceVersion = pod.resource_version().as_deref().unwrap_or_default().into();
            if !version.is_older_than(&self.written.last) {
                self.written.last = version.clone();
            }
            self.written.created.insert(Uid::new(&pod.uid().unwrap_or_default()), version);
        }
    }

    async fn change(&mut self, namespace: &str, name: &str) {
        let note = self.random.u64(..).to_string();
        let metadata = json!({ "labels": { "tier": self.tier() }, "annotations": { "note": note } });
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let pods = self.pods(namespace);
        let changed =
            self.persist(|| async { pods.patch(name, &PatchParams::default(), &patch).await }).await;
        self.written.changes += usize::from(changed.is_some());
    }

    async fn delete(&mut self, namespace: &str, name: &str) {
        let pods = self.pods(namespace);
        let deleted = self.persist(|| async { pods.delete(name, &Default::default()).await }).await;
        self.written.deletions += usize::from(deleted.is_some());
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn tier(&mut self) -> &'static str {
        if self.random.bool() { "web" } else { "db" }
    }

    /// Tries until the server has answered: `None` where there was nothing to do, or another writer was faster.
    async fn persist<T, F: Future<Output = Result<T, Error>>>(
        &mut self,
        operation: impl Fn() -> F,
    ) -> Option<T> {
        let mut pause = tokio::time::interval(RETRY);
        let done = loop {
            pause.tick().await;
            match operation().await {
                Ok(done) => break Some(done),
                Err(Error::Api(status)) if matches!(status.code, 404 | 409) => break None,
                Err(_) => self.written.retries += 1,
            }
        };
        self.progress.0.send_modify(|operations| *operations += 1);
        done
    }
}

impl Written {
    fn add(&mut self, other: Self) {
        self.created.extend(other.created);
        if self.last.is_unset() || self.last.is_older_than(&other.last) {
            self.last = other.last;
        }
        self.changes += other.changes;
        self.deletions += other.deletions;
        self.retries += other.retries;
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { created, changes, deletions, retries, .. } = self;
        let created = created.len();
        write!(f, "{created} created, {changes} changed, {deletions} deleted, {retries} tried again")
    }
}
