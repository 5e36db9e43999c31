//! Reads of a cache of small pods, without a server: alone, and beside a writer and somebody who lists all the time.

mod slowest;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use informer::{FirstListChoice, Index, Informer, Layout, SharedInformerFactory, StreamingListChoice};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Sender};

use crate::Failure;
use crate::lookups::mean;
use crate::transport::Canned;
use slowest::Slowest;

const LIMIT: Duration = Duration::from_secs(120);
/// Events under way to the informer.
const EVENTS: usize = 64;
const SELECTOR: &str = "app=app-7";

/// What is read.
struct Pods {
    informer: Informer<Pod>,
    by_node: Index<Pod, String>,
    by_ip: Index<Pod, String>,
    count: usize,
    /// The last that a pod got.
    version: AtomicUsize,
}

pub async fn measure(count: usize, time: Duration) -> Result<Value, Failure> {
    let (events, received) = mpsc::channel(EVENTS);
    let transport = Canned::new(list(count), received);
    let factory = SharedInformerFactory::builder_with_transport(transport)
        .layout(Layout::Decoded)
        .first_list(FirstListChoice::Consistent)
        .streaming_list(StreamingListChoice::Never)
        .build()?;
    let informer = factory.informer::<Pod>();
    let by_namespace = informer.add_index(|pod: &Pod| pod.metadata.namespace.clone());
    let by_node = informer.add_index(|pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()));
    let by_ip = informer.add_index(|pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone()));
    factory.start();
    factory.wait_for_sync(LIMIT).await?;
    let pods = Arc::new(Pods { informer, by_node, by_ip, count, version: AtomicUsize::new(count) });
    // Not on this thread, which drives the informer.
    let reader = tokio::task::spawn_blocking(move || {
        pods.check()?;
        let alone = pods.means(time)?;
        let beside_writer = pods.beside_writer(time, &events)?;
        let (slowest, updates) = pods.beside_others(time * 3, &events)?;
        pods.check()?;
        Ok::<_, Failure>(json!({
            "event": "reads",
            "nanoseconds": alone,
            "nanosecondsBesideWriter": beside_writer,
            "slowestGetNanoseconds": slowest.get.as_nanos() as u64,
            "slowestUnpreemptedGetNanoseconds": slowest.unpreempted_get.as_nanos() as u64,
            "updatesMeanwhile": updates,
        }))
    });
    let answer = reader.await?;
    drop(by_namespace);
    answer
}

impl Pods {
    /// Compares the answers that are timed with what there is. Decodes each pod, which stays so.
    fn check(&self) -> Result<(), Failure> {
        let lister = self.informer.lister();
        let all = lister.list()?.len();
        let is_found = |index: &usize| {
            let name = format!("pod-{index}");
            let is_it = |pod: &Pod| pod.metadata.name.as_deref() == Some(&name);
            let hits = self.by_ip.get(&ip(*index));
            let is_by_ip = hits.len() == 1 && hits.iter().flatten().all(|pod| is_it(pod));
            lister.get(&key(*index)).is_ok_and(|pod| is_it(&pod)) && is_by_ip
        };
        let found = (0..self.count).filter(is_found).count();
        let selected = lister.labels(SELECTOR)?.list()?.len();
        let on_node = self.by_node.get(&node(7)).len();
        let group = self.count.saturating_sub(700).min(100);
        if [all, found, selected, on_node] == [self.count, self.count, group, group] {
            return Ok(());
        }
        Err(format!("{all} pods, {found} found, {selected} selected, {on_node} on a node").into())
    }

    fn beside_writer(&self, time: Duration, events: &Sender<Bytes>) -> Result<Value, Failure> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write(events, &over));
            let means = self.means(time);
            over.store(true, Ordering::Relaxed);
            writer.join().map_err(|_| "the writer panicked")?;
            means
        })
    }

    /// Updates random pods; returns how many.
    fn write(&self, events: &Sender<Bytes>, over: &AtomicBool) -> u64 {
        let mut random = fastrand::Rng::with_seed(3);
        let mut updates = 0;
        while !over.load(Ordering::Relaxed) {
            let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
            let pod = pod(random.usize(..self.count), version);
            let event = format!("{{\"type\":\"MODIFIED\",\"object\":{pod}}}\n");
            if events.blocking_send(event.into()).is_err() {
                break;
            }
            updates += 1;
        }
        updates
    }

    fn means(&self, time: Duration) -> Result<Value, Failure> {
        let lister = self.informer.lister();
        let chosen = lister.labels(SELECTOR)?;
        let all = |name: fn(usize) -> String| -> Vec<String> { (0..self.count).map(name).collect() };
        let (keys, addresses, nodes) = (all(key), all(ip), all(|index| node(index / 100)));
        let mut random = fastrand::Rng::with_seed(1);
        let mut next = || random.usize(..self.count);
        Ok(json!({
            "get": mean(time, || { black_box(lister.get(&keys[next()]).is_ok()); }),
            "indexOne": mean(time, || { black_box(self.by_ip.get(&addresses[next()]).len()); }),
            "indexHundred": mean(time, || { black_box(self.by_node.get(&nodes[next()]).len()); }),
            "list": mean(time, || { black_box(lister.list().is_ok()); }),
            "selector": mean(time, || { black_box(chosen.list().is_ok()); }),
            "snapshot": mean(time, || { black_box(self.informer.snapshot().len()); }),
        }))
    }

    /// The slowest get of two readers, and how many updates the writer made.
    fn beside_others(&self, time: Duration, events: &Sender<Bytes>) -> Result<(Slowest, u64), Failure> {
        let keys: Vec<String> = (0..self.count).map(key).collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write(events, &over));
            let lister = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    black_box(self.informer.lister().list().is_ok());
                }
            });
            let keys = &*keys;
            let readers = [4, 5].map(|seed| scope.spawn(move || self.slowest_get(keys, seed, time)));
            let slowest = readers.map(|reader| reader.join().map_err(|_| "a reader panicked"));
            over.store(true, Ordering::Relaxed);
            let updates = writer.join().map_err(|_| "the writer panicked")?;
            lister.join().map_err(|_| "the lister panicked")?;
            let [first, second] = slowest;
            Ok((first?.or(second?), updates))
        })
    }

    fn slowest_get(&self, keys: &[String], seed: u64, time: Duration) -> Slowest {
        let lister = self.informer.lister();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut slowest = Slowest::new();
        let start = Instant::now();
        while start.elapsed() < time {
            let key = &keys[random.usize(..keys.len())];
            // What is got is dropped after that.
            drop(slowest.time(|| black_box(lister.get(key))));
        }
        slowest
    }
}

fn list(count: usize) -> Vec<u8> {
    let mut list = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{count}"}},"items":["#
    );
    for index in 0..count {
        if index > 0 {
            list.push(',');
        }
        list.push_str(&pod(index, index + 1));
    }
    list.push_str("]}");
    list.into_bytes()
}

/// As `bench/PROTOCOL.md` says.
fn pod(index: usize, version: usize) -> String {
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"namespace":"ns-{}","name":"pod-{index}","uid":"00000000-0000-4000-8000-{index:012}","resourceVersion":"{version}","labels":{{"app":"app-{}","tier":"tier-{}"}}}},"spec":{{"nodeName":"{}","containers":[{{"name":"main","image":"web:1"}}]}},"status":{{"podIP":"{}","phase":"Running"}}}}"#,
        index % 20,
        index / 100,
        index % 3,
        node(index / 100),
        ip(index),
    )
}

fn key(index: usize) -> String {
    format!("ns-{}/pod-{index}", index % 20)
}

fn node(number: usize) -> String {
    format!("node-{number}")
}

fn ip(index: usize) -> String {
    format!("10.{}.{}.{}", index / 65_536, index / 256 % 256, index % 256)
}
