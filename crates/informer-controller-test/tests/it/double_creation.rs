//! A child is created twice after a stale read.
//!
//! The controller lists the children of an object in its cache, finds none, and creates one. If it is called again before
//! its cache has the new child, it creates another. Controllers of Kubernetes wait for their own writes
//! ("expectations"); controller-runtime leaves it to the reconciler (kubernetes-sigs/controller-runtime#3320).
//!
//! The faulty one goes around the writer of its context with a client of its own, so that nothing waits for the write. The
//! twin uses the writer, and a name that follows from the owner: the writer's memory ends with a crash, the name does not.

use std::sync::Arc;

use informer::kube::client::Api;
use informer::kube::core::params::PostParams;
use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Disturbance, Rehearsal, Rule, World};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::support::{NAMESPACE, State, child, control, finds, map, passes};

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if context.owned(&state.secrets).is_empty() {
        let secrets: Api<Secret> = Api::namespaced(state.client.clone(), NAMESPACE);
        secrets.create(&PostParams::default(), &child(map, None)).await?;
    }
    Ok(Outcome::Done)
}

async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if context.owned(&state.secrets).is_empty() {
        let name = format!("child-{}", map.uid());
        match context.writer().create(&child(map, Some(name))).await {
            Err(error) if error.is_already_exists() => {}
            created => drop(created?),
        }
    }
    Ok(Outcome::Done)
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.patch("ConfigMap", "shop/a", json!({ "data": { "of": "one" } })).await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "two" } })).await;
    world.delete("ConfigMap", "shop/a").await;
    world.create(map("a")).await;
    world.patch("ConfigMap", "shop/a", json!({ "data": { "of": "three" } })).await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([map("a")]).script(script).rule(Rule::at_most_per_owner(1, "Secret"))
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "at most 1 Secret per owner");
}

#[test]
fn the_corrected_one_passes() {
    passes(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}

async fn generated(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if context.owned(&state.secrets).is_empty() {
        context.writer().create(&child(map, None)).await?;
    }
    Ok(Outcome::Done)
}

/// kube's client, which every program has, repeats what is answered with 504.
#[test]
fn no_layer_below_the_writer_repeats_a_creation() {
    let rehearsed = rehearsal(Rehearsal::new(|env| control(env, generated)));
    rehearsed.disturbances([Disturbance::LostAnswer]).run();
}
