//! A status is written only if it says something new.

use std::sync::Arc;

use informer_controller::conditions::{self, Condition};
use informer_controller::{Context, Controller, Failure, Outcome, with};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use testapi::{Gvr, Patch, Verb};
use tokio::sync::mpsc;

use crate::support::{LONG, Stop, World};

fn deployments() -> Gvr {
    Gvr::new("apps/v1", "deployments")
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": "shop", "name": "a" },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "d" }] },
            },
        },
    })
}

async fn reconcile(
    wrote: Arc<mpsc::UnboundedSender<bool>>,
    context: Context<Deployment>,
) -> Result<Outcome, Failure> {
    let Some(deployment) = context.object() else { return Ok(Outcome::Done) };
    let mut status = deployment.status.clone().unwrap_or_default();
    let seen = deployment.labels().value("seen").unwrap_or("no").to_owned();
    let condition = Condition::new("Seen", seen == "yes", "Looked").message(seen);
    conditions::set(status.conditions.get_or_insert_default(), &condition, context.now())?;
    let written = context.writer().write_status(deployment, &status).await?;
    let _ = wrote.send(written.is_some());
    Ok(Outcome::Done)
}

#[tokio::test]
async fn a_status_that_says_nothing_new_is_not_sent_and_other_fields_stay() {
    let world = World::new([deployment()]).await;
    let mut before = deployment();
    before["status"] = json!({ "replicas": 3 });
    world.server.api().update_status(&deployments(), before).unwrap();
    let informer = world.factory.informer::<Deployment>();
    let (wrote, mut writes) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &informer).until(stopped);
    let running = tokio::spawn(controller.run(world.client.clone(), with(wrote, reconcile)));
    let mut next = async || tokio::time::timeout(LONG, writes.recv()).await.unwrap().unwrap();
    assert!(next().await);
    assert!(!next().await, "its own write woke it, and the status was the same");

    let status =
        |world: &World| world.server.api().get(&deployments(), "shop", "a").unwrap()["status"].clone();
    let first = status(&world);
    assert_eq!((&first["replicas"], &first["conditions"][0]["status"]), (&json!(3), &json!("False")));

    let label = |value: &str| {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "seen": value } } }));
        world.server.api().patch(&deployments(), "shop", "a", &patch).unwrap();
    };
    label("yes");
    assert!(next().await);
    assert!(!next().await);
    let second = status(&world);
    assert_eq!(second["conditions"][0]["status"], "True");
    assert_eq!(second["replicas"], 3);
    assert_eq!(world.server.requests().count(&Verb::Patch.of("deployments").below("status")), 2);
    stop.and_wait(running).await.unwrap();
}
