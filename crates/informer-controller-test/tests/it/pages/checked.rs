//! A condition in the status of each Deployment: the example of `Writer::write_status`.

use informer_controller::conditions::{self, Condition};
use informer_controller::{Context, Controller, Failure, Outcome, RunError};
use informer_controller_test::{Env, Rehearsal, World};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

async fn reconcile(context: Context<Deployment>) -> Result<Outcome, Failure> {
    let Some(deployment) = context.object() else { return Ok(Outcome::Done) };
    let mut status = deployment.status.clone().unwrap_or_default();
    let checked = Condition::new("Checked", true, "AllGood");
    conditions::set(status.conditions.get_or_insert_default(), &checked, context.now())?;
    context.writer().write_status(deployment, &status).await?;
    Ok(Outcome::Done)
}

async fn program(env: Env) -> Result<(), RunError> {
    let deployments = env.factory().build().expect("the options are valid").informer::<Deployment>();
    Controller::new("checked", &deployments).host(env.host()).run(env.client(), reconcile).await
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": "shop", "name": name },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "d" }] },
            },
        },
    })
}

async fn script(world: World) {
    world.create(deployment("b")).await;
    world.patch("Deployment", "shop/a", json!({ "spec": { "replicas": 2 } })).await;
    world.delete("Deployment", "shop/b").await;
    world.create(deployment("b")).await;
}

#[test]
fn every_deployment_is_checked() {
    Rehearsal::new(program).objects([deployment("a")]).script(script).run();
}
