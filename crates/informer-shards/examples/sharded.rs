//! Keeps a secret for each config map with the label `secret=yes`, by several processes that divide the config maps.
//!
//! `cargo run -p informer-shards --example sharded`, as often as you like. Each process has a part of the config maps in
//! memory, and their secrets; when one comes or goes, the others give or take.

#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;

use futures_util::StreamExt;
use informer::kube::{Config, Resource};
use informer::share::{Share, ShareBy};
use informer::{Informer, SharedInformerFactory};
use informer_controller::{Context, Controller, Failure, Outcome, Reconcile, stop_signal, with};
use informer_shards::{BoxError, Shards, ShardsBuilder};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The secret has the name of its config map, so a second creation fails.
async fn reconcile(
    secrets: std::sync::Arc<Informer<Secret>>,
    context: Context<ConfigMap>,
) -> Result<Outcome, Failure> {
    // The secret of a config map that is gone is deleted with it: its owner is.
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if context.owned(&secrets).is_empty() {
        let metadata = ObjectMeta {
            namespace: map.metadata.namespace.clone(),
            name: map.metadata.name.clone(),
            owner_references: map.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        };
        context.writer().create(&Secret { metadata, ..Secret::default() }).await?;
    }
    Ok(Outcome::Done)
}

/// The controller of a share: its informers have nothing else.
fn controller(
    config: Config,
    share: &Share,
) -> Result<(Controller<ConfigMap>, impl Reconcile<ConfigMap> + use<>), BoxError> {
    let factory = SharedInformerFactory::new(config)?;
    let maps = factory.with_labels("secret=yes")?.with_share(share.clone()).informer::<ConfigMap>();
    let secrets = factory.with_share(share.of(ShareBy::ControllerUid)).informer::<Secret>();
    Ok((Controller::new("sharded", &maps).owns(&secrets), with(secrets, reconcile)))
}

/// Runs one member until `stop` is ready.
async fn member(
    config: Config,
    options: impl FnOnce(ShardsBuilder) -> ShardsBuilder,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let shards = options(Shards::builder(config.clone(), "default", "sharded").by(ShareBy::Uid)).build()?;
    let mut changes = Box::pin(shards.status_changes());
    let telling = async move {
        while let Some(status) = changes.next().await {
            let (generation, part) = (status.generation.unwrap_or(0), 100.0 * status.acts_on.fraction());
            println!("map {generation}: {part:.0} % of {} members", status.members.len());
        }
    };
    let writes = config.clone();
    tokio::select! {
        ended = shards.until(stop).run(writes, move |share| controller(config.clone(), share)) => ended?,
        () = telling => {}
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    member(Config::infer().await?, |options| options, stop_signal()).await
}

#[cfg(test)]
#[path = "../../informer-controller/examples/process/mod.rs"]
mod process;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use testapi::{Gvr, TestApi};
    use tokio::sync::oneshot;

    use super::process::Process;
    use super::*;

    fn map(name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": "default", "name": name, "labels": { "secret": "yes" } },
        })
    }

    /// A member with short leases, and what ends it.
    fn start(server: &TestApi, name: &'static str) -> (oneshot::Sender<()>, impl Future<Output = bool>) {
        let (stop, stopped) = oneshot::channel::<()>();
        let config = server.config();
        let options = move |options: ShardsBuilder| {
            options
                .identity(name)
                .lease_duration(Duration::from_secs(3))
                .renew_deadline(Duration::from_secs(2))
                .retry_period(Duration::from_millis(200))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let thread = std::thread::spawn(move || {
            let stopped = async move { stopped.await.unwrap_or_default() };
            runtime.is_ok_and(|runtime| runtime.block_on(member(config, options, stopped)).is_ok())
        });
        let ended = tokio::task::spawn_blocking(move || thread.join().unwrap_or(false));
        (stop, async move { ended.await.unwrap_or(false) })
    }

    #[tokio::test]
    async fn every_map_has_a_secret_whoever_comes_and_goes() -> Result<(), Box<dyn Error>> {
        let secrets = Gvr::new("v1", "secrets");
        let names: Vec<String> = (0..20).map(|number| format!("map-{number}")).collect();
        let server = TestApi::builder().objects(names[..10].iter().map(|name| map(name))).start().await?;
        let (stop_one, one) = start(&server, "one");
        let (stop_two, two) = start(&server, "two");
        for name in &names[..10] {
            server.api().wait_for(&secrets, "default", name, |_| true).await?;
        }
        // One leaves while maps are added: the other one has all of them.
        let _ = stop_one.send(());
        for name in &names[10..] {
            server.api().create(&Gvr::new("v1", "configmaps"), map(name))?;
        }
        assert!(one.await, "the first member ends without an error");
        for name in &names {
            server.api().wait_for(&secrets, "default", name, |_| true).await?;
        }
        let _ = stop_two.send(());
        assert!(two.await, "the second member ends without an error");
        Ok(())
    }

    /// No test by itself: `Process::start` runs it.
    #[test]
    fn as_a_process() -> Result<(), Box<dyn Error>> {
        if Process::is_this() { main() } else { Ok(()) }
    }

    /// The lease of a member lasts for 15 s.
    #[tokio::test]
    #[cfg(unix)]
    async fn sigterm_gives_back_a_share_and_the_next_member_has_it_before_a_lease_ends()
    -> Result<(), Box<dyn Error>> {
        let secrets = Gvr::new("v1", "secrets");
        let server = TestApi::builder().object(map("first")).start().await?;
        let one = Process::start(&server)?;
        server.api().wait_for(&secrets, "default", "first", |_| true).await?;
        assert_eq!(one.terminate().await?, Some(0));
        server.api().create(&Gvr::new("v1", "configmaps"), map("second"))?;
        let two = Process::start(&server)?;
        let made = server.api().wait_for(&secrets, "default", "second", |_| true);
        tokio::time::timeout(Duration::from_secs(10), made).await??;
        assert_eq!(two.terminate().await?, Some(0));
        Ok(())
    }
}
