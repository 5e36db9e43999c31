//! A secret for each config map: "Owned objects" of `docs/controllers.md`.

use informer::Informer;
use informer::kube::Resource;
use informer_controller::{Context, Controller, Failure, Outcome, RunError};
use informer_controller_test::{Env, Rehearsal, Rule, World};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use crate::support::map;

async fn reconcile(secrets: Informer<Secret>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
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

async fn program(env: Env) -> Result<(), RunError> {
    let factory = env.factory().build().expect("the options are valid");
    let (maps, secrets) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    let controller = Controller::new("secrets", &maps).owns(&secrets).host(env.host());
    controller.run(env.client(), move |context| reconcile(secrets.clone(), context)).await
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.delete("Secret", "shop/a").await;
    world.delete("ConfigMap", "shop/b").await;
    world.patch("ConfigMap", "shop/a", json!({ "data": { "of": "one" } })).await;
    world.create(map("b")).await;
}

#[test]
fn every_map_has_one_secret() {
    let rule = Rule::at_most_per_owner(1, "Secret");
    Rehearsal::new(program).objects([map("a")]).script(script).rule(rule).run();
}
