//! A member of shards in its own process, for tests that freeze and kill it. It answers each config map with `data.wanted` by
//! `data.done`, with its name and the number of the map of shards that it knows beside it. It writes this twice: first into
//! the config map whose name has `trace-` in front, whatever was written there before; then into the object itself, with the
//! resourceVersion as precondition. So a write that comes too late leaves a trace.
//!
//! Arguments: a kubeconfig, a namespace, an identity. It leaves with the end of its input.

#![allow(clippy::expect_used, reason = "only tests use this")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use informer::share::ShareBy;
use informer::{ObjectKey, ObjectRef, ResourceType, SharedInformerFactory};
use informer_controller::{Context, Controller, Failure, Outcome, with};
use informer_shards::{Shards, ShardsHandle};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::io::AsyncReadExt;

/// The lease of the tests: two seconds.
const LEASE: Duration = Duration::from_secs(2);
const RENEW_DEADLINE: Duration = Duration::from_millis(1_700);
const RETRY_PERIOD: Duration = Duration::from_millis(300);

#[tokio::main]
async fn main() {
    let [kubeconfig, namespace, identity] =
        [1, 2, 3].map(|at| std::env::args().nth(at).expect("an argument"));
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.expect("a configuration");
    let shards = Shards::builder(config.clone(), &namespace, "story")
        .by(ShareBy::Uid)
        .identity(&identity)
        .lease_duration(LEASE)
        .renew_deadline(RENEW_DEADLINE)
        .retry_period(RETRY_PERIOD)
        .build()
        .expect("shards");
    let handle = shards.handle();
    let stop = async {
        // Nobody writes there.
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    };
    let run = shards.until(stop).run(config.clone(), move |share| {
        let factory = SharedInformerFactory::builder(config.clone()).build()?.in_namespace(&namespace);
        let maps = factory.with_share(share.clone()).informer::<ConfigMap>();
        Ok((Controller::new("story", &maps), with(handle.clone(), reconcile)))
    });
    run.await.expect("an orderly end");
}

async fn reconcile(shards: Arc<ShardsHandle>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let value = |name: &str| map.data.as_ref().and_then(|data| data.get(name)).cloned();
    let Some(wanted) = value("wanted").filter(|wanted| value("done").as_ref() != Some(wanted)) else {
        return Ok(Outcome::Done);
    };
    let status = shards.status();
    let said = [
        ("done", wanted),
        ("writer", status.identity),
        ("generation", status.generation.unwrap_or_default().to_string()),
    ];
    let said: BTreeMap<String, String> = said.map(|(name, value)| (name.to_owned(), value)).into();
    let trace = ObjectKey::new(map.key().namespace(), &format!("trace-{}", map.key().name()))?;
    let trace = ObjectRef::<ConfigMap>::new(ResourceType::of::<ConfigMap>(), trace);
    context.writer().unlocked().patch(&trace, json!({ "data": said })).await?;
    let mut answer = ConfigMap::clone(map);
    answer.data.get_or_insert_default().extend(said);
    context.writer().replace(&answer).await?;
    Ok(Outcome::Done)
}
