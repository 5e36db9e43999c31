//! How fast the server is without a network: `cargo run --release -p testapi --example throughput`.
//!
//! Loads 100,000 pods of 9 KB, then changes some of them as fast as it can while ten watches read every event.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints figures, and stops at a surprise")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use testapi::{Api, Gvr, Patch};

const PODS: usize = 100_000;
const CHANGES: usize = 10_000;
const WATCHES: usize = 10;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let pods = Gvr::new("v1", "pods");
    let api = Api::default();
    let size = pod(0).to_string().len();
    // To make them up takes longer than to load them, and is not what is measured.
    let mut loading = Duration::ZERO;
    for first in (0..PODS).step_by(CHANGES) {
        let some: Vec<Value> = (first..first + CHANGES).map(pod).collect();
        let start = Instant::now();
        api.load(&pods, some).unwrap();
        loading += start.elapsed();
    }
    println!("{PODS} pods of {size} bytes loaded in {loading:.2?}");

    let from = api.revision();
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let uri = format!("/api/v1/pods?watch=true&resourceVersion={from}");
        let response = api.handle(Request::builder().uri(uri).body(Bytes::new()).unwrap()).await;
        watches.push(tokio::spawn(async move {
            let mut body = response.into_body();
            let (mut lines, mut bytes) = (0, 0);
            while lines < CHANGES {
                let chunk = body.frame().await.unwrap().unwrap().into_data().unwrap();
                lines += memchr::memchr_iter(b'\n', &chunk).count();
                bytes += chunk.len();
            }
            bytes
        }));
    }
    let mut changed: Vec<Value> = (0..CHANGES).map(pod).collect();
    let start = Instant::now();
    let writer = api.clone();
    let task = tokio::spawn(async move {
        while !changed.is_empty() {
            let some = changed.split_off(changed.len().saturating_sub(100));
            writer.load(&Gvr::new("v1", "pods"), some).unwrap();
            tokio::task::yield_now().await;
        }
        start.elapsed()
    });
    let mut bytes = 0;
    for watch in watches {
        bytes += watch.await.unwrap();
    }
    let (written, all) = (task.await.unwrap(), start.elapsed());
    let rate = |time: Duration| CHANGES as f64 / time.as_secs_f64();
    println!(
        "{CHANGES} changes written in {written:.2?} ({:.0}/s), read by {WATCHES} watches in {all:.2?} ({:.0}/s, {:.0} MB/s)",
        rate(written),
        rate(all),
        bytes as f64 / 1e6 / all.as_secs_f64()
    );

    let start = Instant::now();
    for at in 0..2_000 {
        let labels = json!({ "metadata": { "labels": { "round": format!("r{at}") } } });
        api.patch(&pods, "default", &format!("pod-{at}"), &Patch::Merge(labels)).unwrap();
    }
    println!("2000 merge patches in {:.2?}", start.elapsed());
}

/// A pod of some 9 KB.
fn pod(number: usize) -> Value {
    let variable = |at: usize| json!({ "name": format!("VARIABLE_{at}"), "value": format!("value {number} of {at}, with some more text") });
    let variables: Vec<Value> = (0..120).map(variable).collect();
    json!({
        "metadata": { "name": format!("pod-{number}"), "namespace": "default", "labels": { "app": format!("app-{}", number % 100) } },
        "spec": { "nodeName": format!("node-{}", number % 500), "containers": [{ "name": "main", "image": "registry.example/app:1", "env": variables }] },
        "status": { "phase": "Running", "podIP": "10.0.0.1" },
    })
}
