//! The cost of Secrets and texts that are made for harm: memory and CPU, as issue 19 has its bounds.
//!
//! `cargo run --release -p kubectl-changes --example secrets`. User time of this process and its resident memory, on Linux.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kubediff::{Gvk, Secrets};
use serde_json::{Map, Value, json};

/// User time in milliseconds (a tick has 10), and resident memory in MiB.
fn used() -> (u64, u64) {
    let read = |file: &str| std::fs::read_to_string(file).unwrap();
    let stat = read("/proc/self/stat");
    let ticks: u64 = stat.rsplit(") ").next().unwrap().split(' ').nth(11).unwrap().parse().unwrap();
    let status = read("/proc/self/status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (ticks * 10, resident.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10)
}

fn measured(name: &str, times: u64, mut work: impl FnMut()) {
    let before = used();
    (0..times).for_each(|_| work());
    let after = used();
    let milliseconds = (after.0 - before.0) as f64 / times as f64;
    println!("{name}: {milliseconds:.1} ms of CPU each, {} MiB more", after.1.saturating_sub(before.1));
}

fn secret(name: usize, namespace: &str, values: impl IntoIterator<Item = String>) -> Value {
    let values = values.into_iter().enumerate();
    let data: Map<String, Value> =
        values.map(|(at, value)| (format!("k{at}"), BASE64.encode(value).into())).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "data": data, "metadata": {"name": format!("s{name}"), "namespace": namespace}})
}

fn config_map(text: String) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}, "data": {"k": text}})
}

fn main() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut password = |length: usize| (0..length).map(|_| random.alphanumeric()).collect::<String>();
    let (of_secrets, of_maps) = (Gvk::new("v1", "Secret"), Gvk::new("v1", "ConfigMap"));

    let secrets = Secrets::with_key([7; 32]);
    let objects: Vec<Value> =
        (0..5_000).map(|at| secret(at, &format!("ns{}", at % 50), (0..5).map(|_| password(20)))).collect();
    measured("5,000 Secrets of 5 values", 1, || objects.iter().for_each(|it| secrets.learn(&of_secrets, it)));

    // The attacks of case 7: eight bytes, two classes of them, and `b` n times, in a text of 900 KB, also with signs of escapes.
    let secrets = Secrets::with_key([7; 32]);
    secrets.learn(&of_secrets, &secret(0, "evil", (1..249).map(|n| format!("aaaaaaa1{}", "b".repeat(n)))));
    for part in ["aaaaaaa1bbbb", "aaaaaaa1bb%", "aaaaaaa1+bb", "aaaaaaa1b\t", "%2561aaaaaa1&amp;b"] {
        let map = config_map(part.repeat(900_000 / part.len()));
        measured(&format!("a ConfigMap of 900 KB of {part:?}"), 5, || {
            drop(secrets.redact(&of_maps, map.clone()))
        });
    }
    // A fourth attack: long values with common beginnings, in a text that begins so at each second byte.
    let secrets = Secrets::with_key([7; 32]);
    let alike = (0..250).map(|at| format!("{}{at}", "aB".repeat(10 * at + 4)));
    secrets.learn(&of_secrets, &secret(0, "evil", alike));
    let map = config_map("aB".repeat(450_000));
    measured("a ConfigMap of 900 KB that begins as 250 values", 5, || {
        drop(secrets.redact(&of_maps, map.clone()))
    });
    let secrets = Secrets::with_key([7; 32]);
    let many: Vec<Value> = (0..8).map(|at| secret(at, "evil", (0..60_000).map(|_| password(8)))).collect();
    measured("a Secret of 1 MB of values of 8 bytes", 8, || {
        many.iter().take(1).for_each(|it| secrets.learn(&of_secrets, it))
    });
    measured("5 MB of such Secrets", 1, || many.iter().for_each(|it| secrets.learn(&of_secrets, it)));
    let marks: String = (0..10_000).map(|at| format!("<hmac:{at:08x} 9 bytes> ")).collect();
    let map = config_map(marks);
    measured("10,000 made-up marks", 5, || drop(secrets.redact(&of_maps, map.clone())));
}
