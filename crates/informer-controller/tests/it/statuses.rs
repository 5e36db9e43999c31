//! A status is written only if it says something new.

use std::sync::Arc;

use informer_controller::conditions::{self, Condition};
use informer_controller::{Context, Controller, Failure, Outcome, with};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
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

/// Ends after one reconciliation. Returns what it returned, and the Deployment afterwards.
async fn once<F, R, A>(before: Value, reconcile: F) -> (A, Value)
where
    F: Fn(Context<Deployment>) -> R + Send + Sync + 'static,
    R: Future<Output = A> + Send,
    A: Send + 'static,
{
    let world = World::new([deployment()]).await;
    let mut object = deployment();
    object["status"] = before;
    world.server.api().update_status(&deployments(), object).unwrap();
    let informer = world.factory.informer::<Deployment>();
    let (answer, mut answers) = mpsc::unbounded_channel();
    let (stop, stopped) = Stop::pair();
    let reconcile = Arc::new(reconcile);
    let reconciler = move |context: Context<Deployment>| {
        let (reconcile, answer) = (reconcile.clone(), answer.clone());
        async move {
            let _ = answer.send(reconcile(context).await);
            Ok(Outcome::Done)
        }
    };
    let controller = Controller::new("test", &informer).until(stopped);
    let running = tokio::spawn(controller.run(world.client.clone(), reconciler));
    let answer = tokio::time::timeout(LONG, answers.recv()).await.unwrap().unwrap();
    stop.and_wait(running).await.unwrap();
    (answer, world.server.api().get(&deployments(), "shop", "a").unwrap())
}

fn available() -> DeploymentStatus {
    DeploymentStatus { available_replicas: Some(3), ..DeploymentStatus::default() }
}

#[tokio::test]
async fn a_field_that_is_left_out_goes_also_after_another_write_of_the_same_run() {
    let (written, after) = once(json!({ "unavailableReplicas": 3 }), async |context| {
        let deployment = context.object().unwrap();
        let label = json!({ "metadata": { "labels": { "a": "b" } } });
        context.writer().patch(deployment, label).await?;
        context.writer().write_status(deployment, &available()).await?;
        // The result of the last write is known, too.
        context.writer().write_status(deployment, &available()).await.map(|written| written.is_some())
    })
    .await;
    assert_eq!(after["status"], json!({ "availableReplicas": 3 }));
    assert!(!written.unwrap(), "the second time there is nothing to say");
}

#[tokio::test]
async fn a_status_is_applied_and_what_is_left_out_of_it_later_goes() {
    let (written, after) = once(json!({ "replicas": 3 }), async |context| {
        let deployment = context.object().unwrap();
        let unavailable = DeploymentStatus { unavailable_replicas: Some(1), ..available() };
        context.writer().apply_status(deployment, &unavailable).await?;
        context.writer().apply_status(deployment, &available()).await
    })
    .await;
    let written: Deployment = written.unwrap();
    assert_eq!(written.status.and_then(|status| status.replicas), Some(3), "others' fields stay");
    assert_eq!(after["status"], json!({ "availableReplicas": 3, "replicas": 3 }));
    assert_eq!(after["spec"]["selector"], deployment()["spec"]["selector"], "the spec is not applied");
}

#[tokio::test]
async fn without_force_a_field_of_another_manager_is_a_conflict_that_names_both() {
    let apply = async |context: Context<Deployment>, forced: bool| {
        let body = json!({ "metadata": { "namespace": "shop", "name": "a" }, "spec": { "replicas": 7 } });
        let writer = if forced { context.writer().clone() } else { context.writer().without_force() };
        writer.apply_value(&informer::ResourceType::of::<Deployment>(), &body).await
    };
    // The object was created by somebody else, with one replica.
    let (refused, after) = once(json!({}), move |context| apply(context, false)).await;
    let refused = refused.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    let text = refused.to_string();
    assert!(text.starts_with("cannot apply deployments.v1.apps shop/a as \"test\": "), "{text}");
    assert!(text.contains("conflict with \"testapi\"") && text.contains(".spec.replicas"), "{text}");
    assert_eq!(after["spec"]["replicas"], 1);
    let (applied, after) = once(json!({}), move |context| apply(context, true)).await;
    assert!(applied.is_ok());
    assert_eq!(after["spec"]["replicas"], 7);
}
