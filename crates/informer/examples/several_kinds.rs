//! One factory, several kinds: started together and awaited together, each with its own cache.
//!
//! `cargo run -p informer --example several_kinds -- default/web`

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::error::Error;
use std::time::Duration;

use informer::{Informer, SharedInformerFactory};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, Service};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let key = std::env::args().nth(1).ok_or("which object? say NAMESPACE/NAME")?;

    let config = informer::kube::Config::infer().await?;
    let factory = SharedInformerFactory::new(config)?;
    let pods: Informer<Pod> = factory.informer();
    let replica_sets: Informer<ReplicaSet> = factory.informer();
    let services: Informer<Service> = factory.informer();
    factory.start();
    factory.wait_for_sync(Duration::from_secs(30)).await?;

    // From here on no read asks the server: the caches are current and stay so.
    match pods.lister().get(&key)? {
        Some(pod) => {
            println!("pod {key}: {:?}", pod.status.as_ref().and_then(|status| status.phase.as_ref()))
        }
        None => println!("pod {key}: not found"),
    }
    match replica_sets.lister().get(&key)? {
        Some(set) => println!("replica set {key}: {:?} replicas", set.spec.replicas),
        None => println!("replica set {key}: not found"),
    }
    match services.lister().get(&key)? {
        Some(service) => {
            println!("service {key}: {:?}", service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_ref()))
        }
        None => println!("service {key}: not found"),
    }
    factory.shutdown().await;
    Ok(())
}
