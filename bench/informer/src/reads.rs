//! Reads of a cache of small pods, without a server: alone, and beside a writer and a thread that lists all the time.

#[path = "../../shared/slowest.rs"]
mod slowest;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use informer::{FirstListChoice, Index, Informer, Layout, SharedInformerFactory, StreamingListChoice};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Sender};

use crate::Failure;
use crate::mean::mean;
use crate::transport::Canned;
use slowest::Slowest;

const LIMIT: Duration = Duration::from_secs(120);
/// How many events may be on their way to the informer.
const EVENTS: usize = 64;
const SELECTOR: &str = "app=app-7";

/// The objects that are read.
struct Pods {
    informer: Informer<Pod>,
    /// An index that is maintained, as the peers do, and never read.
    _by_namespace: Index<Pod, String>,
    by_node: Index<Pod, String>,
    by_ip: Index<Pod, String>,
    count: usize,
    /// The last resourceVersion of a pod.
    version: AtomicUsize,
}

/// Reads all objects, in the layout for such programs.
pub async fn measure(count: usize, time: Duration) -> Result<Value, Failure> {
    let (pods, events) = Pods::new(count, Some(Layout::Decoded)).await?;
    // This thread drives the informer, so the reads run on others.
    let reader = tokio::task::spawn_blocking(move || {
        pods.check()?;
        let all = Drawn { count, step: 1 };
        let alone = pods.means(time, all)?;
        let beside_writer = pods.beside_writer(&events, || pods.means(time, all))?;
        let (slowest, updates) = pods.beside_others(time * 3, &events)?;
        pods.check()?;
        Ok::<_, Failure>(json!({
            "event": "reads",
            "nanoseconds": alone,
            "nanosecondsBesideWriter": beside_writer,
            "slowestGetNanoseconds": slowest.get.as_nanos() as u64,
            "slowestOwnGetNanoseconds": slowest.own_get.as_nanos() as u64,
            "updatesMeanwhile": updates,
        }))
    });
    reader.await?
}

/// Reads a few of many objects again and again, in the default layout.
pub async fn measure_hot(count: usize, hot: usize, time: Duration) -> Result<Value, Failure> {
    let (pods, events) = Pods::new(count, None).await?;
    let reader = tokio::task::spawn_blocking(move || {
        // They are spread evenly over all objects, and so over the memory.
        let hot = Drawn { count: hot, step: count / hot };
        pods.means_of_hot(time, hot);
        let alone = pods.means_of_hot(time, hot);
        let beside_writer = pods.beside_writer(&events, || Ok(pods.means_of_hot(time, hot)))?;
        pods.check()?;
        Ok::<_, Failure>(
            json!({ "event": "reads", "nanoseconds": alone, "nanosecondsBesideWriter": beside_writer }),
        )
    });
    reader.await?
}

/// The objects to read.
#[derive(Clone, Copy)]
struct Drawn {
    count: usize,
    step: usize,
}

impl Drawn {
    fn one(self, random: &mut fastrand::Rng) -> usize {
        random.usize(..self.count) * self.step
    }
}

impl Pods {
    async fn new(count: usize, layout: Option<Layout>) -> Result<(Self, Sender<Bytes>), Failure> {
        let (events, received) = mpsc::channel(EVENTS);
        let mut builder = SharedInformerFactory::builder_with_transport(Canned::new(list(count), received))
            .reflector(|reflector| {
                reflector.first_list = FirstListChoice::Consistent;
                reflector.streaming_list = StreamingListChoice::Never;
            });
        if let Some(layout) = layout {
            builder = builder.layout(layout);
        }
        let factory = builder.build()?;
        let informer = factory.informer::<Pod>();
        let by_namespace = informer.add_index(|pod| pod.metadata.namespace.clone());
        let by_node = informer.add_index(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()));
        let by_ip = informer.add_index(|pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone()));
        factory.start();
        factory.wait_for_sync(LIMIT).await?;
        let version = AtomicUsize::new(count);
        Ok((Self { informer, _by_namespace: by_namespace, by_node, by_ip, count, version }, events))
    }

    /// Compares the results of the measured operations with what the cache must hold. This decodes each pod, which
    /// stays decoded.
    fn check(&self) -> Result<(), Failure> {
        let lister = self.informer.lister();
        let all = lister.list().len();
        let is_found = |index: &usize| {
            let name = format!("pod-{index}");
            let is_it = |pod: &Pod| pod.metadata.name.as_deref() == Some(&name);
            let hits = self.by_ip.get(&ip(*index));
            let is_by_ip = hits.len() == 1 && hits.iter().all(|pod| is_it(pod));
            lister.get(key(*index)).is_ok_and(|pod| pod.is_some_and(|pod| is_it(&pod))) && is_by_ip
        };
        let found = (0..self.count).filter(is_found).count();
        let selected = lister.labels(SELECTOR)?.list().len();
        let on_node = self.by_node.get(&node(7)).len();
        let group = self.count.saturating_sub(700).min(100);
        if [all, found, selected, on_node] == [self.count, self.count, group, group] {
            return Ok(());
        }
        Err(format!("{all} pods, {found} found, {selected} selected, {on_node} on a node").into())
    }

    fn beside_writer(
        &self,
        events: &Sender<Bytes>,
        measure: impl FnOnce() -> Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write(events, &over));
            let means = measure();
            over.store(true, Ordering::Relaxed);
            writer.join().map_err(|_| "the writer panicked")?;
            means
        })
    }

    /// Updates random pods; returns the number of updates.
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

    /// Measures what programs do all the time.
    fn means_of_hot(&self, time: Duration, drawn: Drawn) -> Value {
        let lister = self.informer.lister();
        let (keys, addresses) = (self.all(key), self.all(ip));
        let mut random = fastrand::Rng::with_seed(1);
        let mut next = || drawn.one(&mut random);
        json!({
            "get": mean(time, || { black_box(lister.get(&keys[next()]).is_ok()); }),
            "indexOne": mean(time, || { black_box(self.by_ip.get(&addresses[next()]).len()); }),
        })
    }

    fn all(&self, name: fn(usize) -> String) -> Vec<String> {
        (0..self.count).map(name).collect()
    }

    fn means(&self, time: Duration, drawn: Drawn) -> Result<Value, Failure> {
        let mut means = self.means_of_hot(time, drawn);
        let lister = self.informer.lister();
        let chosen = lister.labels(SELECTOR)?;
        let nodes = self.all(|index| node(index / 100));
        let mut random = fastrand::Rng::with_seed(1);
        let mut next = || drawn.one(&mut random);
        let others = json!({
            "indexHundred": mean(time, || { black_box(self.by_node.get(&nodes[next()]).len()); }),
            "list": mean(time, || { black_box(lister.list().len()); }),
            "selector": mean(time, || { black_box(chosen.list().len()); }),
            "snapshot": mean(time, || { black_box(self.informer.snapshot().len()); }),
        });
        if let (Some(means), Value::Object(others)) = (means.as_object_mut(), others) {
            means.extend(others);
        }
        Ok(means)
    }

    /// The slowest get of two readers, and the number of updates that the writer made.
    fn beside_others(&self, time: Duration, events: &Sender<Bytes>) -> Result<(Slowest, u64), Failure> {
        let keys: Vec<String> = (0..self.count).map(key).collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write(events, &over));
            let lister = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    black_box(self.informer.lister().list().len());
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
            // The object is dropped after the time was taken.
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

/// The pod of this number, as `bench/PROTOCOL.md` defines it.
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
