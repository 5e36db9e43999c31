//! Looks up pods by IP: an index finds them without a scan of all pods, and stays correct while pods come and go.
//!
//! Several pods may have one IP: pods on the host network have their node's IP.
//!
//! `cargo run -p informer --example pods_by_ip -- 10.0.0.7`

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use informer::SharedInformerFactory;
use k8s_openapi::api::core::v1::Pod;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let wanted: Vec<IpAddr> = std::env::args().skip(1).map(|ip| ip.parse()).collect::<Result<_, _>>()?;

    let config = informer::kube::Config::infer().await?;
    let factory = SharedInformerFactory::new(config)?;
    let pods = factory.informer::<Pod>();
    // The index is added before the start, so it is complete as soon as the cache is. It could also be added later.
    let by_ip = pods.add_index(|pod| ip_of(pod));
    factory.start();
    factory.wait_for_sync(Duration::from_secs(30)).await?;

    // One snapshot serves all look-ups: a pod that gets another IP meanwhile is not found twice.
    let snapshot = pods.snapshot();
    let used = by_ip.keys(&snapshot).len();
    println!("{} pods use {used} IPs", snapshot.len());
    for ip in wanted {
        let mut names: Vec<_> = by_ip.lookup(&snapshot, &ip).map(|pod| pod.key().to_string()).collect();
        names.sort();
        println!("{ip}: {}", if names.is_empty() { "nobody".to_owned() } else { names.join(", ") });
    }
    factory.shutdown().await;
    Ok(())
}

/// The keys of the index are IPs, not strings: one IPv6 address has many spellings.
fn ip_of(pod: &Pod) -> Option<IpAddr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}
