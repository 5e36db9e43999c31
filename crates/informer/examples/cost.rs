//! The costs of caches of your cluster: starts an informer on every resource that it may list. It prints how many objects
//! there are, how large they are, what our caches take, and what those of client-go and kube-rs would take.
//!
//! It reads, and changes nothing. Resources that you may not list are named and left out.
//!
//! `cargo run --release -p informer --example cost`, or with names of resources: `-- pods secrets`

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::error::Error;
use std::time::{Duration, Instant};

use informer::kube::Config;
use informer::{DiscoveryError, Informer, Object, ResourceType, SharedInformerFactory};

/// Memory above an empty program for each byte of an object's JSON, measured with pods of 9.2 KB. docs/BENCHMARKS.md has
/// figures within a tenth of these. Small objects cost client-go and kube-rs more than this says.
const CLIENT_GO_TYPED: f64 = 1.75;
const CLIENT_GO_DYNAMIC: f64 = 6.9;
const KUBE_RS_TYPED: f64 = 8.0;

/// The numbers of one resource.
#[derive(Default)]
struct Cost {
    objects: usize,
    json: usize,
    held: usize,
    received: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let factory = SharedInformerFactory::new(Config::infer().await?)?;
    let resources = resources(&factory, &wanted).await?;

    let (before, begun) = (resident_bytes(), Instant::now());
    let informers: Vec<Informer<Object>> =
        resources.into_iter().map(|resource| factory.informer_of(resource)).collect();
    factory.start();
    // Denied resources are named below; the others count.
    if let Err(not_synced) = factory.wait_for_sync_or_denial(Duration::from_secs(300)).await {
        println!("{not_synced}");
    }
    let (took, after) = (begun.elapsed(), resident_bytes());

    println!("{:<50} {:>9} {:>12} {:>12} {:>9}", "RESOURCE", "OBJECTS", "JSON EACH", "HELD EACH", "HELD");
    let (mut all, mut denied) = (Cost::default(), Vec::new());
    for informer in &informers {
        if !informer.is_synced() {
            denied.push(informer.resource().to_string());
            continue;
        }
        let cost = cost(informer);
        if cost.objects > 0 {
            line(&informer.resource().to_string(), &cost);
        }
        all = all.and(cost);
    }
    line("all", &all);
    if !denied.is_empty() {
        println!("not listed: {}", denied.join(", "));
    }

    println!("\nsynced in {:.2} s, {} received", took.as_secs_f64(), size(all.received as f64));
    if let (Some(before), Some(after)) = (before, after) {
        println!("this process grew by {}", size(after.saturating_sub(before) as f64));
    }
    // The figures of client-go and kube-rs are of whole processes as well.
    let grown = before.zip(after).map_or(0, |(before, after)| after.saturating_sub(before));
    let ours = grown.max(all.held as u64).max(1);
    for (who, ratio) in [
        ("client-go's typed informers", CLIENT_GO_TYPED),
        ("client-go's dynamic informers", CLIENT_GO_DYNAMIC),
        ("kube-rs' typed reflectors", KUBE_RS_TYPED),
    ] {
        let theirs = all.json as f64 * ratio;
        let times = theirs / ours as f64;
        println!("{who} would take about {} ({times:.0} times ours)", size(theirs));
    }
    factory.shutdown().await;
    Ok(())
}

fn cost(informer: &Informer<Object>) -> Cost {
    let snapshot = informer.snapshot();
    // An undecodable object counts as zero bytes.
    let json = snapshot.objects().filter_map(|object| object.json().ok().map(|json| json.len())).sum();
    Cost {
        objects: informer.len(),
        json,
        held: informer.held_bytes(),
        received: informer.metrics().received_bytes,
    }
}

/// All resources that can be listed and watched, each in its preferred version.
async fn resources(
    factory: &SharedInformerFactory,
    wanted: &[String],
) -> Result<Vec<ResourceType>, DiscoveryError> {
    let catalog = factory.catalog().await?;
    let mut found = match wanted {
        [] => catalog.resources().cloned().collect(),
        names => catalog.named(&names.join(","))?,
    };
    found.sort();
    Ok(found)
}

fn line(what: &str, cost: &Cost) {
    let each = |bytes: usize| size(bytes as f64 / cost.objects.max(1) as f64);
    let (json, held) = (each(cost.json), each(cost.held));
    println!("{what:<50} {:>9} {json:>12} {held:>12} {:>9}", cost.objects, size(cost.held as f64));
}

fn size(bytes: f64) -> String {
    match bytes {
        ..1e3 => format!("{bytes:.0} B"),
        ..1e6 => format!("{:.1} KB", bytes / 1e3),
        ..1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.2} GB", bytes / 1e9),
    }
}

/// The resident memory of this process, on systems that report it (Linux).
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

impl Cost {
    fn and(self, other: Self) -> Self {
        Self {
            objects: self.objects + other.objects,
            json: self.json + other.json,
            held: self.held + other.held,
            received: self.received + other.received,
        }
    }
}
