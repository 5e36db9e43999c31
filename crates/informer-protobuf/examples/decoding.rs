//! The cost of decoding a pod: `cargo run --release -p informer-protobuf --example decoding [PART OF A LINE [CALLS]]`.
//!
//! A pod with two containers, as a server sends it; protobuf beside serde_json on the same pod's JSON. Each line is the fastest of
//! many short batches. With a number of calls, nothing is timed: `valgrind --tool=callgrind` with 200 and with 100 calls
//! shows what 100 of them cost.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "it measures, on a terminal")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use informer_protobuf::{Kind, from_slice, scan, to_json, without_managed_fields};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// The fields that a small program needs.
#[derive(Deserialize)]
#[expect(dead_code, reason = "reading is what is measured")]
struct Small {
    metadata: SmallMetadata,
    spec: SmallSpec,
    status: SmallStatus,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "reading is what is measured")]
struct SmallMetadata {
    name: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "reading is what is measured")]
struct SmallSpec {
    node_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "reading is what is measured")]
struct SmallStatus {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

/// Prints the fastest of many short batches, if the command line selects it: a busy machine interrupts long ones.
fn measure<T>(name: &str, mut read: impl FnMut() -> T) {
    if std::env::args().nth(1).is_some_and(|part| !name.contains(&part)) {
        return;
    }
    if let Some(calls) = std::env::args().nth(2).and_then(|calls| calls.parse().ok()) {
        (0_u32..calls).for_each(|_| drop(black_box(read())));
        return println!("{name}: {calls} calls");
    }
    let mut batch = |calls: u32| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(read());
        }
        start.elapsed().as_secs_f64() / f64::from(calls)
    };
    let calls = (0.000_2 / batch(10).min(batch(10))).clamp(1.0, 10_000.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let fastest = (0..1_000).map(|_| batch(calls as u32)).fold(f64::INFINITY, f64::min);
    println!("{name:<52} {:>9.0} ns", fastest * 1e9);
}

fn main() {
    let pod = Kind::of("v1", "Pod").unwrap();
    let raw = fuzzing::protobuf::objects::pod(&mut fastrand::Rng::with_seed(7));
    let raw = raw.as_slice();
    let json = to_json(pod, raw).unwrap();
    let json = json.as_slice();
    let spliced = without_managed_fields(raw).into_owned();
    let spliced = spliced.as_slice();
    let short = to_json(pod, spliced).unwrap();
    println!("protobuf {} bytes, JSON {} bytes", raw.len(), json.len());
    println!("without managedFields {} and {} bytes\n", spliced.len(), short.len());

    measure("scan", || scan(black_box(raw)).unwrap());
    measure("scan, and all labels", || scan(black_box(raw)).unwrap().labels().filter(Result::is_ok).count());
    measure("without_managed_fields", || without_managed_fields(black_box(raw)));
    measure("to_json", || to_json(pod, black_box(raw)).unwrap());
    measure("to_json, without managedFields", || to_json(pod, black_box(spliced)).unwrap());
    measure("from_slice, ignored", || from_slice::<IgnoredAny>(pod, black_box(raw)).unwrap());
    measure("from_slice, five fields", || from_slice::<Small>(pod, black_box(raw)).unwrap());
    measure("from_slice, Pod", || from_slice::<Pod>(pod, black_box(raw)).unwrap());
    measure("from_slice, Pod, without managedFields", || from_slice::<Pod>(pod, black_box(spliced)).unwrap());
    measure("generated code, Pod, without managedFields", || {
        informer_k8s_openapi::decode::<Pod>(pod, black_box(raw), true).unwrap()
    });
    measure("from_slice, Value", || from_slice::<Value>(pod, black_box(raw)).unwrap());
    println!();
    measure("serde_json, five fields", || serde_json::from_slice::<Small>(black_box(json)).unwrap());
    measure("serde_json, Pod", || serde_json::from_slice::<Pod>(black_box(json)).unwrap());
    measure("serde_json, Pod, without managedFields", || {
        serde_json::from_slice::<Pod>(black_box(&short)).unwrap()
    });
    measure("serde_json, Value", || serde_json::from_slice::<Value>(black_box(json)).unwrap());
}
