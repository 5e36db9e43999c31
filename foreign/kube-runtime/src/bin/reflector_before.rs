//! Prints the pods of a cluster, and the phase of one of them.

use std::error::Error;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let (pods, writer) = reflector::store::<Pod>();
    let events =
        watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff().reflect(writer);
    tokio::spawn(events.for_each(async |_| {}));
    pods.wait_until_ready().await?;

    for pod in pods.state() {
        println!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    }
    if let Some(pod) = pods.get(&ObjectRef::new("cart").within("shop")) {
        println!("cart: {:?}", pod.status.as_ref().and_then(|status| status.phase.as_ref()));
    }
    Ok(())
}
