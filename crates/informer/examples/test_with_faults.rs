//! How to test a program with an informer: against `testapi`, an API server in the same process, with a fault.
//!
//! `cargo test -p informer --example test_with_faults`

use std::error::Error;

use futures_util::StreamExt;
use informer::{BackoffConfig, Change, SharedInformerFactory};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_client::api::{Patch, PatchParams};
use kube_client::{Api, Client, Config};

/// The program under test: it keeps a copy of each config map of the namespace `shop` in the namespace `backup`.
async fn keep_copies(config: Config, backoff: BackoffConfig) -> Result<(), Box<dyn Error + Send + Sync>> {
    let copies = Api::<ConfigMap>::namespaced(Client::try_from(config.clone())?, "backup");
    let factory = SharedInformerFactory::builder(config)
        .reflector(|reflector| reflector.backoff = backoff)
        .build()?
        .in_namespace("shop");
    let maps = factory.informer::<ConfigMap>();
    let mut changes = maps.changes()?;
    factory.start();
    while let Some(change) = changes.next().await {
        let (Change::Added { new: map, .. } | Change::Updated { new: map, .. }) = change else { continue };
        let name = map.metadata.name.clone().unwrap_or_default();
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        let copy = ConfigMap { metadata, data: map.data.clone(), ..ConfigMap::default() };
        copies.patch(&name, &PatchParams::apply("keep-copies"), &Patch::Apply(&copy)).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    keep_copies(Config::infer().await?, BackoffConfig::default()).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use testapi::faults::{Fault, Refusal};
    use testapi::{Gvr, TestApi, Verb};

    use super::*;

    /// A short backoff. With the default one, a test waits for seconds after each failure.
    const SHORT: BackoffConfig = BackoffConfig {
        first: Duration::from_millis(5),
        longest: Duration::from_millis(50),
        jitter: 0.0,
        reset_after: Duration::from_secs(1),
    };

    fn config_map(namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": namespace, "name": name }, "data": { "of": name },
        })
    }

    #[tokio::test]
    async fn copies_are_kept_although_the_watch_breaks_and_its_history_is_gone() -> Result<(), Box<dyn Error>>
    {
        let server = TestApi::builder().object(config_map("shop", "a")).start().await?;
        let maps = Gvr::new("v1", "configmaps");
        server.api().create(&maps, config_map("backup", "other"))?;
        let program = tokio::spawn(keep_copies(server.config(), SHORT));

        // `wait_for` sees each version of the object as it is written, and fails after ten seconds.
        server.api().wait_for(&maps, "backup", "a", |copy| copy["data"]["of"] == "a").await?;

        // All connections break, and the version from which the watch would resume has expired.
        let expired = server.faults().on(Verb::Watch.of("configmaps")).once(Fault::Refuse(Refusal::Expired));
        server.disconnect_all();
        expired.hit().await;
        server.api().create(&maps, config_map("shop", "b"))?;
        server.api().wait_for(&maps, "backup", "b", |copy| copy["data"]["of"] == "b").await?;

        program.abort();
        server.stop().await;
        Ok(())
    }
}
