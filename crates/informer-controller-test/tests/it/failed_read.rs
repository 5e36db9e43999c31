//! A read that fails counts as a read that found nothing.
//!
//! Each config map names a secret. The controller reads it from the server, and marks the map when the secret is lost, for
//! good. A server that is overloaded, or a broken connection, makes it mark maps whose secret is there.
//!
//! The twin tells 404 from everything else: its reconciliation fails, and is tried again.

use std::sync::Arc;

use informer::kube::client::Api;
use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Rehearsal, World};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use crate::support::{NAMESPACE, State, control, finds, map, passes_few};

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let secrets: Api<Secret> = Api::namespaced(state.client.clone(), NAMESPACE);
    let found = secrets.get(context.key().name()).await;
    mark(&context, found.is_err()).await
}

async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let secrets: Api<Secret> = Api::namespaced(state.client.clone(), NAMESPACE);
    let found = secrets.get_opt(context.key().name()).await?;
    mark(&context, found.is_none()).await
}

async fn mark(context: &Context<ConfigMap>, is_lost: bool) -> Result<Outcome, Failure> {
    if let Some(map) = context.object().filter(|map| is_lost && map.labels().value("lost").is_none()) {
        context.writer().patch(map, json!({ "metadata": { "labels": { "lost": "yes" } } })).await?;
    }
    Ok(Outcome::Done)
}

fn secret(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": NAMESPACE, "name": name } })
}

async fn script(world: World) {
    world.patch("ConfigMap", "shop/a", json!({ "data": { "of": "one" } })).await;
    world.create(map("lonely")).await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "two" } })).await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([secret("a"), secret("b"), map("a"), map("b")]).script(script)
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "at /metadata/labels/lost");
}

#[test]
fn the_corrected_one_passes() {
    passes_few(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
