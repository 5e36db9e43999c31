//! Prints the pods of a cluster, and the phase of one of them.

use std::error::Error;
use std::time::Duration;

use informer::SharedInformerFactory;
use informer::kube::Config;
use k8s_openapi::api::core::v1::Pod;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let factory = SharedInformerFactory::new(Config::infer().await?)?;
    let pods = factory.informer::<Pod>().lister();
    factory.start();
    factory.wait_for_sync(Duration::from_secs(30)).await?;

    for pod in pods.list() {
        println!("{}", pod.key());
    }
    if let Some(pod) = pods.namespace("shop").get("cart")? {
        println!("cart: {:?}", pod.status.as_ref().and_then(|status| status.phase.as_ref()));
    }
    Ok(())
}
