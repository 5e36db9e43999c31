//! A child keeps existing after its object has chosen another name for it.
//!
//! The controller remembers in memory which name an object had, to delete the child of that name when it changes. It
//! crashes between the creation of the new child and the deletion of the old one, or the watch skips the state in between:
//! nobody knows the old name any more. Sieve found such leaks of services and volumes (OSDI 2022: intermediate and
//! unobserved states).
//!
//! The twin remembers nothing: it deletes what its object owns and does not want.

use std::sync::Arc;

use informer::kube::client;
use informer::kube::client::Api;
use informer::kube::core::params::DeleteParams;
use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Rehearsal, World};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use crate::support::{NAMESPACE, State, child, control, finds, passes};

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(name) = create(&state, &context).await? else { return Ok(Outcome::Done) };
    let key = context.key().to_string();
    let former = state.memory.lock().unwrap().get(&key).cloned();
    if let Some(former) = former.filter(|former| *former != name) {
        let secrets: Api<Secret> = Api::namespaced(state.client.clone(), NAMESPACE);
        match secrets.delete(&former, &DeleteParams::default()).await {
            Err(client::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted?),
        }
    }
    state.memory.lock().unwrap().insert(key, name);
    Ok(Outcome::Done)
}

async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(name) = create(&state, &context).await? else { return Ok(Outcome::Done) };
    for secret in context.owned(&state.secrets) {
        if secret.key().name() != name {
            match context.writer().delete(&secret).await {
                Err(error) if error.is_not_found() => {}
                deleted => deleted?,
            }
        }
    }
    Ok(Outcome::Done)
}

/// Creates the child of the wanted name, and returns that name.
async fn create(state: &State, context: &Context<ConfigMap>) -> Result<Option<String>, Failure> {
    let Some(map) = context.object() else { return Ok(None) };
    let Some(name) = map.data.as_ref().and_then(|data| data.get("child")).cloned() else { return Ok(None) };
    if context.get(&state.secrets, format!("{NAMESPACE}/{name}"))?.is_some() {
        return Ok(Some(name));
    }
    match context.writer().create(&child(map, Some(name.clone()))).await {
        Err(error) if error.is_already_exists() => {}
        created => drop(created?),
    }
    Ok(Some(name))
}

fn wants(name: &str, child: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": NAMESPACE, "name": name }, "data": { "child": child },
    })
}

async fn script(world: World) {
    world.patch("ConfigMap", "shop/a", json!({ "data": { "child": "second" } })).await;
    world.create(wants("b", "other")).await;
    world.patch("ConfigMap", "shop/a", json!({ "data": { "child": "third" } })).await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "child": "another" } })).await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([wants("a", "first")]).script(script)
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "exists, and does not without disturbances");
}

#[test]
fn the_corrected_one_passes() {
    passes(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
