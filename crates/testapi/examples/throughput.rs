//! How fast the server is: `cargo run --release -p testapi --example throughput`.
//!
//! Creates and loads 100,000 pods of 9 KB, lists them in JSON and in protobuf, and patches some. Then one writer
//! changes objects of 1 KB by merge patches, as fast as it can, while ten watches read every event: first in the
//! process, then over HTTP.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints figures, and stops at a surprise")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use serde_json::json;
use testapi::{Api, Gvr, Patch, TestApi, sample};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const PODS: usize = 100_000;
const OBJECTS: usize = 1_000;
const CHANGES: usize = 100_000;
const WATCHES: usize = 10;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let api = load();
    for encoding in ["application/json", "application/vnd.kubernetes.protobuf"] {
        list(&api, encoding).await;
    }
    patch_large(&api);
    drop(api);

    let server = TestApi::builder().history(CHANGES).start().await.unwrap();
    let api = server.api().clone();
    let bytes = make_objects(&api);
    for over_http in [false, true] {
        let path = format!("/api/v1/configmaps?watch=true&resourceVersion={}", api.revision());
        let mut watches = Vec::new();
        for _ in 0..WATCHES {
            watches.push(match over_http {
                true => watch_over_http(server.port(), &path).await,
                false => watch_in_process(&api, &path).await,
            });
        }
        let start = Instant::now();
        let writer = api.clone();
        let written = tokio::task::spawn_blocking(move || {
            change_objects(&writer);
            start.elapsed()
        });
        let mut read = 0;
        for watch in watches {
            read += watch.await.unwrap();
        }
        let (written, all) = (written.await.unwrap(), start.elapsed());
        println!(
            "{CHANGES} changes of {bytes} bytes: {:.0}/s, read by {WATCHES} watches {}: {:.0}/s, {:.0} MB/s",
            rate(CHANGES, written),
            if over_http { "over HTTP" } else { "in the process" },
            rate(CHANGES, all),
            read as f64 / 1e6 / all.as_secs_f64()
        );
    }
    server.stop().await;
}

fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn load() -> Api {
    let pods = Gvr::new("v1", "pods");
    let api = Api::default();
    let start = Instant::now();
    api.load_text(&pods, (0..PODS).map(|index| sample::pod_text(0, index, 100))).unwrap();
    println!("{PODS} pods made and loaded in {:.2?}", start.elapsed());
    api
}

/// Lists all pods at once.
async fn list(api: &Api, encoding: &str) {
    let start = Instant::now();
    let request = Request::get("/api/v1/pods").header("accept", encoding).body(Bytes::new()).unwrap();
    let mut body = api.handle(request).await.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().data_ref().map_or(0, Bytes::len);
    }
    println!("{PODS} pods as {encoding}: {} MB in {:.2?}", bytes / 1_000_000, start.elapsed());
}

/// Changes some of the pods.
fn patch_large(api: &Api) {
    let pods = Gvr::new("v1", "pods");
    let some = api.list(&pods, Some("shop-0")).unwrap();
    let start = Instant::now();
    for round in 0..5 {
        for pod in &some {
            let labels = json!({ "metadata": { "labels": { "round": format!("r{round}") } } });
            let name = pod["metadata"]["name"].as_str().unwrap();
            api.patch(&pods, "shop-0", name, &Patch::Merge(labels)).unwrap();
        }
    }
    println!("pods of 9 KB patched: {:.0}/s", rate(5 * some.len(), start.elapsed()));
}

/// Objects of some 1 KB, with managedFields. Returns how large one is.
fn make_objects(api: &Api) -> usize {
    let maps = Gvr::new("v1", "configmaps");
    let mut bytes = 0;
    for at in 0..OBJECTS {
        let settings = (0..6).map(|at| {
            (format!("setting-{at}"), "some text that a setting may have, and more of it ".repeat(2).into())
        });
        let data: serde_json::Map<_, _> = settings.collect();
        let made =
            json!({ "metadata": { "name": format!("map-{at}"), "namespace": "default" }, "data": data });
        bytes = api.create(&maps, made).unwrap().to_string().len();
    }
    bytes
}

fn change_objects(api: &Api) {
    let maps = Gvr::new("v1", "configmaps");
    for change in 0..CHANGES {
        let by = Patch::Merge(json!({ "data": { "setting-3": format!("change {change}") } }));
        api.patch(&maps, "default", &format!("map-{}", change % OBJECTS), &by).unwrap();
    }
}

async fn watch_in_process(api: &Api, path: &str) -> JoinHandle<usize> {
    let response = api.handle(Request::builder().uri(path).body(Bytes::new()).unwrap()).await;
    tokio::spawn(async move {
        let mut body = response.into_body();
        let (mut lines, mut bytes) = (0, 0);
        while lines < CHANGES {
            let chunk = body.frame().await.unwrap().unwrap().into_data().unwrap();
            lines += memchr::memchr_iter(b'\n', &chunk).count();
            bytes += chunk.len();
        }
        bytes
    })
}

async fn watch_over_http(port: u16, path: &str) -> JoinHandle<usize> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 256 << 10];
        let (mut lines, mut bytes, mut last) = (0, 0, 0);
        while lines < CHANGES {
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the watch has ended after {lines} changes");
            // The lines of HTTP end with "\r\n", those of events with "\n".
            for end in memchr::memchr_iter(b'\n', &buffer[..read]) {
                let before = if end == 0 { last } else { buffer[end - 1] };
                lines += usize::from(before != b'\r');
            }
            last = buffer[read - 1];
            bytes += read;
        }
        bytes
    })
}
