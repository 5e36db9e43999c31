//! What the bench promises about runs.

use std::sync::Arc;

use informer_controller::{Context, Controller, Failure, Outcome, with};
use informer_controller_test::{Env, Rehearsal, World};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

pub(crate) fn map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "shop", "name": name }, "data": { "of": name },
    })
}

/// Each config map has a secret of its name.
async fn copies(env: Env) -> Result<(), informer_controller::RunError> {
    let factory = env.factory().build().expect("the options are valid");
    let maps = factory.informer::<ConfigMap>();
    let secrets = factory.informer::<Secret>();
    async fn reconcile(_: Arc<()>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
        let Some(map) = context.object() else { return Ok(Outcome::Done) };
        let owner = informer::kube::Resource::controller_owner_ref(&**map, &());
        let secret = Secret {
            metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                namespace: map.key().namespace().map(str::to_owned),
                name: Some(map.key().name().to_owned()),
                owner_references: owner.map(|owner| vec![owner]),
                ..Default::default()
            },
            string_data: map.data.clone(),
            ..Default::default()
        };
        context.writer().apply(&secret).await?;
        Ok(Outcome::Done)
    }
    Controller::new("copies", &maps)
        .owns(&secrets)
        .clock(env.clock())
        .seed(env.seed())
        .run(env.client(), with((), reconcile))
        .await
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "changed" } })).await;
    world.delete("ConfigMap", "shop/a").await;
    world.create(map("a")).await;
}

#[test]
fn a_correct_program_passes() {
    let begun = std::time::Instant::now();
    let outcome = Rehearsal::new(copies).objects([map("a")]).script(script).seeds(0..100).outcome();
    println!("{:?} {:?}", begun.elapsed(), outcome);
    if let Some(failure) = outcome.failure {
        panic!("{failure}");
    }
}
