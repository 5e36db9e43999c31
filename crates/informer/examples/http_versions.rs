//! The costs of HTTP/1.1 and HTTP/2: syncs all pods once, or many selections of config maps, and prints the cost.
//!
//! ```text
//! cargo run --release -p informer --example http_versions -- 1 pods
//! cargo run --release -p informer --example http_versions -- 2 watches 100
//! ```
//!
//! The cluster is that of kubectl's current context. The figures come from `/proc`, so this runs on Linux only.

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::time::{Duration, Instant};

use informer::{Http2, HttpVersion, Informer, Object, ResourceType, SharedInformerFactory, Status};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};

const USAGE: &str = "usage: http_versions 1|2 pods | http_versions 1|2 watches NUMBER";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (version, what) = arguments.split_first().ok_or(USAGE)?;
    let version = match *version {
        "1" => HttpVersion::Http1,
        "2" => HttpVersion::Http2(Http2::default()),
        _ => return Err(USAGE.into()),
    };
    let config = informer::kube::Config::infer().await?;
    let factory = SharedInformerFactory::builder(config).http_version(version).build()?;
    let informers: Vec<Informer<Object>> = match what {
        ["pods"] => vec![factory.informer_of(ResourceType::of::<Pod>())],
        ["watches", number] => (0..number.parse::<u32>()?)
            .map(|number| factory.with_labels(format!("selection={number}")))
            .map(|selected| Ok(selected?.informer_of(ResourceType::of::<ConfigMap>())))
            .collect::<Result<_, informer::InvalidSelector>>()?,
        _ => return Err(USAGE.into()),
    };

    let (before, begun) = (Used::now()?, Instant::now());
    factory.start();
    factory.wait_for_sync(Duration::from_secs(120)).await?;
    while !informers.iter().all(|informer| matches!(informer.status(), Status::Live { .. })) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (wall, after) = (begun.elapsed(), Used::now()?);
    let objects: usize = informers.iter().map(Informer::len).sum();
    println!(
        "{objects} objects, {} watches: {} ms wall, {} ms CPU, {} KB before, {} KB more, {} KB at most, {} connections",
        informers.len(),
        wall.as_millis(),
        after.cpu_ms - before.cpu_ms,
        before.resident_kb,
        after.resident_kb.saturating_sub(before.resident_kb),
        after.peak_kb,
        after.sockets,
    );
    factory.shutdown().await;
    Ok(())
}

/// The resources that this process has used so far.
struct Used {
    cpu_ms: u64,
    resident_kb: u64,
    peak_kb: u64,
    sockets: usize,
}

impl Used {
    fn now() -> Result<Self, Box<dyn std::error::Error>> {
        // The fields after the name, which is in parentheses; user and system time are counted in 10 ms (proc(5)).
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        let status = std::fs::read_to_string("/proc/self/status")?;
        let kb = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        let targets = std::fs::read_dir("/proc/self/fd")?
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        // The socket pairs by which runtimes wake themselves for signals do not count.
        let tcp = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(std::fs::read_to_string);
        let tcp: Vec<String> = tcp.into_iter().flatten().collect();
        let is_tcp = |inode: &str| {
            let mut lines = tcp.iter().flat_map(|table| table.lines());
            lines.any(|line| line.split_whitespace().nth(9) == Some(inode))
        };
        let sockets = targets.filter(|target| {
            let inode = target.to_str().and_then(|name| name.strip_prefix("socket:[")?.strip_suffix(']'));
            inode.is_some_and(is_tcp)
        });
        Ok(Self {
            cpu_ms: ticks * 10,
            resident_kb: kb("VmRSS:").unwrap_or_default(),
            peak_kb: kb("VmHWM:").unwrap_or_default(),
            sockets: sockets.count(),
        })
    }
}
