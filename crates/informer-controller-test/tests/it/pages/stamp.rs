//! A label on each config map: the first controller of `docs/controllers.md`, and the example of `Writer`.

use informer_controller::{Context, Controller, Failure, Outcome, Reconcile, RunError};
use informer_controller_test::{Env, Rehearsal, World};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::map;

async fn reconcile(context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if map.labels().value("seen").is_none() {
        context.writer().patch(map, json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
    }
    Ok(Outcome::Done)
}

async fn stamp(context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    if let Some(map) = context.object() {
        context.writer().patch(map, json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
    }
    Ok(Outcome::Done)
}

async fn run(env: Env, reconciler: impl Reconcile<ConfigMap>) -> Result<(), RunError> {
    let maps = env.factory().build().expect("the options are valid").informer::<ConfigMap>();
    Controller::new("stamp", &maps).host(env.host()).run(env.client(), reconciler).await
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.patch("ConfigMap", "shop/a", json!({ "metadata": { "labels": null } })).await;
    world.delete("ConfigMap", "shop/b").await;
    world.create(map("b")).await;
}

#[test]
fn every_map_is_stamped_by_the_first_controller() {
    Rehearsal::new(|env| run(env, reconcile)).objects([map("a")]).script(script).run();
}

#[test]
fn every_map_is_stamped_by_the_example_of_the_writer() {
    Rehearsal::new(|env| run(env, stamp)).objects([map("a")]).script(script).run();
}
