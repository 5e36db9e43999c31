//! How long an informer waits for another one of its factory: config maps are created all the time, and each change is timed
//! from the write to the notification, before and while another informer gets its first list of many pods, for which it has a
//! typed index.
//!
//! ```text
//! cargo run --release -p informer --example longest_wait -- 100000
//! ```
//!
//! The server is `testapi`, in this process. Its work and everything else on the machine is part of the figures, so the waits
//! before the list are shown beside those during the list.

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::error::Error;
use std::time::{Duration, Instant};

use informer::{Change, Changes, Object, ResourceType, SharedInformerFactory, Status, WhenFull};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::json;
use testapi::{Api, Gvr, TestApi, sample};
use tokio::sync::mpsc;

/// The time between two writes.
const PACE: Duration = Duration::from_millis(2);
/// The length of the measurement before the list.
const BEFORE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).unwrap_or_else(|| "100000".to_owned()).parse()?;
    let server = TestApi::builder().start().await?;
    let pods = (0..count).map(|index| sample::pod_text(7, index, 10));
    server.api().load_text(&Gvr::new("v1", "pods"), pods)?;

    let factory = SharedInformerFactory::builder(server.config()).build()?;
    let maps = factory.informer_of::<Object>(ResourceType::of::<ConfigMap>());
    let changes = maps.subscribe().every_change(1_000_000, WhenFull::Coalesce).changes()?;
    factory.start();
    factory.wait_for_sync(Duration::from_secs(60)).await?;
    while !matches!(maps.status(), Status::Live { .. }) {
        tokio::task::yield_now().await;
    }
    let (written, writes) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write(server.api().clone(), written));
    let reader = tokio::spawn(read(changes, writes));

    let begun = Instant::now();
    tokio::time::sleep(BEFORE).await;
    let pods = factory.informer::<Pod>();
    let by_node = pods.add_index(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()));
    let listing = Instant::now();
    factory.start();
    factory.wait_for_sync(Duration::from_secs(600)).await?;
    let listed = Instant::now();

    writer.abort();
    let all = reader.await?;
    println!(
        "{} pods on {} nodes after {:.1} s",
        pods.len(),
        by_node.keys(&pods.snapshot()).len(),
        (listed - listing).as_secs_f64()
    );
    show("before the list", &all, begun, listing);
    show("during the list", &all, listing, listed);
    factory.shutdown().await;
    Ok(())
}

/// Creates config maps, and says when it began to create each.
async fn write(api: Api, written: mpsc::UnboundedSender<Instant>) {
    let mut ticks = tokio::time::interval(PACE);
    let maps = Gvr::new("v1", "configmaps");
    for number in 0.. {
        ticks.tick().await;
        let metadata = json!({ "namespace": "default", "name": format!("{number:08}") });
        let begun = Instant::now();
        if api.create(&maps, json!({ "metadata": metadata })).is_err() || written.send(begun).is_err() {
            return;
        }
    }
}

/// The time of each write, and of its notification, until the writer ends.
async fn read(
    mut changes: Changes<Object>,
    mut writes: mpsc::UnboundedReceiver<Instant>,
) -> Vec<(Instant, Instant)> {
    let mut all = Vec::new();
    while let Some(begun) = writes.recv().await {
        loop {
            match changes.recv().await {
                Some(Change::Added { initial: false, .. }) => break,
                Some(_) => {}
                None => return all,
            }
        }
        all.push((begun, Instant::now()));
    }
    all
}

fn show(when: &str, all: &[(Instant, Instant)], from: Instant, to: Instant) {
    let within: Vec<_> = all.iter().filter(|(_, told)| (from..to).contains(told)).collect();
    let mut waits: Vec<Duration> = within.iter().map(|(begun, told)| *told - *begun).collect();
    waits.sort();
    let gaps = within.windows(2).map(|two| two[1].1 - two[0].1);
    let millis = |wait: Option<Duration>| wait.unwrap_or_default().as_secs_f64() * 1e3;
    let part = |of: usize| waits.get(waits.len() * of / 1000).copied();
    println!(
        "{when}: {} changes; waits: median {:.2} ms, 99 % {:.2} ms, 99.9 % {:.2} ms, longest {:.2} ms; longest gap between two changes {:.2} ms",
        waits.len(),
        millis(part(500)),
        millis(part(990)),
        millis(part(999)),
        millis(waits.last().copied()),
        millis(gaps.max()),
    );
}
