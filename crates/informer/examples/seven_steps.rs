//! The classic seven steps: client, shared factory, informer, handler, start, wait for sync, list by lister.
//!
//! `cargo run -p informer --example seven_steps`

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::sync::Arc;
use std::time::Duration;

use informer::{Deleted, Handler, Previous, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;

struct Log;

impl Handler<Pod> for Log {
    async fn on_add(&mut self, pod: Arc<Pod>, is_in_initial_list: bool) {
        let since = if is_in_initial_list { "from the start" } else { "new" };
        println!("added {} ({since})", name(&pod));
    }

    async fn on_update(&mut self, _old: Previous<Pod>, pod: Arc<Pod>) {
        println!("updated {}", name(&pod));
    }

    async fn on_delete(&mut self, deleted: Deleted<Pod>) {
        println!("deleted {}", deleted.key());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = kube_client::Config::infer().await?;
    let factory = SharedInformerFactory::new(config)?;
    let pods = factory.informer::<Pod>();
    let log = pods.add_handler(Log)?;
    factory.start();
    factory.wait_for_sync(Duration::from_secs(30)).await?;
    log.synced().await;

    let mut names: Vec<_> = pods.lister().namespace("default").list()?.iter().map(|pod| name(pod)).collect();
    names.sort();
    println!("{} pods in default: {}", names.len(), names.join(", "));
    factory.shutdown().await;
    Ok(())
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}
