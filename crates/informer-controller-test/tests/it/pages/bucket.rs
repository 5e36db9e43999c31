//! A bucket in a cloud for each config map: `docs/controllers.md` and the module `finalizer`.

use std::sync::Arc;

use informer_controller::finalizer::{Finalizer, Guarded};
use informer_controller::{Context, Controller, Failure, Outcome};
use informer_controller_test::{Disturbance, Env, External, ExternalError, Rehearsal, Rule, World};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::map;

tokio::task_local! {
    static CLOUD: Arc<External>;
}

fn name(map: &ConfigMap) -> String {
    format!("bucket-{}", map.metadata.name.as_deref().unwrap_or_default())
}

async fn make_bucket(map: &ConfigMap) -> Result<(), ExternalError> {
    let owner = format!("shop/{}", map.metadata.name.as_deref().unwrap_or_default());
    CLOUD.get().make(&name(map), &owner).await
}

async fn remove_bucket(map: &ConfigMap) -> Result<(), ExternalError> {
    CLOUD.get().remove(&name(map)).await
}

const BUCKET: Finalizer = Finalizer::new("shop.example.com/bucket");

async fn reconcile(context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    match BUCKET.guard(context.writer(), map).await? {
        Guarded::Held => make_bucket(map).await?,
        Guarded::Cleanup(cleanup) => {
            remove_bucket(map).await?;
            cleanup.done().await?;
        }
        Guarded::Released => {}
    }
    Ok(Outcome::Done)
}

async fn alone(env: Env) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (controller, cloud) = controller(&env)?;
    let reconcile = move |context| CLOUD.scope(cloud.clone(), reconcile(context));
    Ok(controller.run(env.client(), reconcile).await?)
}

async fn elected(env: Env) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (controller, cloud) = controller(&env)?;
    let election = env.election("shop", "bucket").build()?;
    let reconcile = move |context| CLOUD.scope(cloud.clone(), reconcile(context));
    Ok(controller.run_elected(&election, env.client(), reconcile).await?)
}

type Parts = (Controller<ConfigMap>, Arc<External>);

fn controller(env: &Env) -> Result<Parts, Box<dyn std::error::Error + Send + Sync>> {
    let maps = env.factory().build()?.informer::<ConfigMap>();
    Ok((Controller::new("bucket", &maps).host(env.host()), Arc::new(env.external())))
}

/// Maps go, and come back under their old names.
async fn script(world: World) {
    world.create(map("b")).await;
    world.create(map("c")).await;
    world.delete("ConfigMap", "shop/a").await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "one" } })).await;
    world.delete("ConfigMap", "shop/c").await;
    world.until(|world| world.get("ConfigMap", "shop/a").is_none()).await;
    world.create(map("a")).await;
    world.delete("ConfigMap", "shop/b").await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    let rule = Rule::finalizer_before_effect("shop.example.com/bucket", "ConfigMap");
    rehearsal.objects([map("a")]).script(script).rule(rule)
}

#[test]
fn no_bucket_stays_behind_whatever_a_cluster_does() {
    rehearsal(Rehearsal::new(alone)).run();
}

#[test]
fn no_bucket_stays_behind_with_two_candidates() {
    rehearsal(Rehearsal::new(elected)).disturbances(Disturbance::ALL).run();
}
