//! Reads of a cache of small pods, without a server: alone, and beside a writer and somebody who lists all the time.

mod slowest;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    let pods = Arc::new(Pods { informer, by_node, by_ip, count });
    // Not on this thread, which drives the informer.
    let reader = tokio::task::spawn_blocking(move || {
        let alone = pods.alone(time)?;
        let (slowest, updates) = pods.beside_others(time * 3, &events)?;
        Ok::<_, Failure>(json!({
            "event": "reads",
            "nanoseconds": alone,
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
    fn alone(&self, time: Duration) -> Result<Value, Failure> {
        let lister = self.informer.lister();
        // Decodes each, which stays so.
        let all = lister.list()?.len();
        let chosen = lister.labels(SELECTOR)?;
        let selected = chosen.list()?.len();
        let on_node = self.by_node.get(&node(7)).len();
        if all != self.count || selected != 100.min(self.count) || on_node != selected {
            return Err(format!("{all} pods, {selected} selected, {on_node} on a node").into());
        }
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
        let is_over = || over.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(3);
                let mut version = self.count;
                while !is_over() {
                    version += 1;
                    let pod = pod(random.usize(..self.count), version);
                    let event = format!("{{\"type\":\"MODIFIED\",\"object\":{pod}}}\n");
                    if events.blocking_send(event.into()).is_err() {
                        break;
                    }
                }
                (version - self.count) as u64
            });
            let lister = scope.spawn(|| {
                while !is_over() {
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
            slowest.time(|| black_box(lister.get(key).is_ok()));
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
