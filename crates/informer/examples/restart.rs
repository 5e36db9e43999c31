//! Prints what has happened to the config maps of a namespace since this program last ran: additions, changes and
//! deletions. Then it ends, and the next run continues from there.
//!
//! `cargo run -p informer --example restart -- default /tmp/seen`

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::error::Error;
use std::time::Duration;

use informer::{Change, Object, ResourceType, SharedInformerFactory};
use k8s_openapi::api::core::v1::ConfigMap;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let namespace = arguments.next().ok_or("which namespace?")?;
    let directory = arguments.next().ok_or("in which directory is what was seen?")?;

    let config = informer::kube::Config::infer().await?;
    let factory =
        SharedInformerFactory::builder(config).saved_in(directory).build()?.in_namespace(&namespace);
    let maps = factory.informer_of::<Object>(ResourceType::of::<ConfigMap>());
    let mut changes = maps.changes()?;
    factory.start();
    maps.wait_for_sync(Duration::from_secs(30)).await?;

    // If the saved version has expired, the changes come with the initial list. Otherwise they follow it, and are complete
    // when no more come for a while.
    while let Ok(Some(change)) = tokio::time::timeout(Duration::from_secs(2), changes.recv()).await {
        match change {
            // An object as it was in the last run, or any object in the first run.
            Change::Added { new, initial: true, .. } => println!("known {}", new.key().name()),
            Change::Added { new, .. } => println!("added {}", new.key().name()),
            Change::Updated { new, .. } => println!("changed {}", new.key().name()),
            Change::Deleted(deleted) => println!("deleted {}", deleted.key().name()),
            _ => {}
        }
    }
    // The shutdown saves the cache.
    factory.shutdown().await;
    Ok(())
}
