//! The classic seven steps: client, shared factory, informer, handler, start, wait for sync, list by lister.
//!
//! `cargo run -p informer --example seven_steps`

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::time::Duration;

use informer::{Change, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = informer::kube::Config::infer().await?;
    let factory = SharedInformerFactory::new(config)?;
    let pods = factory.informer::<Pod>();
    let handler = pods.on_change(|change| async move {
        match change {
            Change::Added { new, initial: true, .. } => {
                println!("added {} (from the start)", new.key().name())
            }
            Change::Added { new, .. } => println!("added {} (new)", new.key().name()),
            Change::Updated { new, .. } => println!("updated {}", new.key().name()),
            Change::Deleted(deleted) => println!("deleted {}", deleted.key()),
            _ => {}
        }
    })?;
    factory.start();
    factory.wait_for_sync(Duration::from_secs(30)).await?;
    handler.synced().await;

    let in_default = pods.lister().namespace("default").list();
    let mut names: Vec<_> = in_default.iter().map(|pod| pod.key().name()).collect();
    names.sort_unstable();
    println!("{} pods in default: {}", names.len(), names.join(", "));
    factory.shutdown().await;
    Ok(())
}
