//! A status goes back to an earlier value although nothing was asked for.
//!
//! The controller writes the phase that it computes from its cache, whatever the object says. After a restart with an old
//! list it reports that it still creates what it created long ago. Whoever waits for "ready" is misled. (Kubernetes' API
//! conventions ask for a status that is the most recent observation; Sieve's stale states, OSDI 2022.)
//!
//! The twin's write carries the version of the object, as every write of a context does. That alone is not enough, and the
//! bench shows it: the cache of objects may catch up before that of the children. So the twin asks the server before it
//! takes a phase back.

use std::sync::Arc;

use informer::kube::client::{self, Api};
use informer::kube::core::params::{Patch, PatchParams};
use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Rehearsal, Rule, World};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::support::{NAMESPACE, State, child, control, finds, map, passes};

const WANTED: usize = 2;

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some((map, phase)) = phase(&state, &context) else { return Ok(Outcome::Done) };
    if map.labels().value("phase") != Some(phase) {
        let maps: Api<ConfigMap> = Api::namespaced(state.client.clone(), NAMESPACE);
        let patch = json!({ "metadata": { "uid": map.metadata.uid, "labels": { "phase": phase } } });
        maps.patch(map.key().name(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    create(&state, &context).await
}

async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some((map, mut phase)) = phase(&state, &context) else { return Ok(Outcome::Done) };
    if map.labels().value("phase") == Some("ready") && all_exist(&state, map).await? {
        phase = "ready";
    }
    if map.labels().value("phase") != Some(phase) {
        let patch = json!({ "metadata": { "labels": { "phase": phase } } });
        context.writer().patch(map, patch).await?;
    }
    create(&state, &context).await
}

fn phase<'a>(
    state: &State,
    context: &'a Context<ConfigMap>,
) -> Option<(&'a informer::Item<ConfigMap>, &'static str)> {
    let map = context.object()?;
    let children = context.owned(&state.secrets).len();
    Some((map, if children < WANTED { "creating" } else { "ready" }))
}

/// Whether the server has the children.
async fn all_exist(state: &State, map: &ConfigMap) -> Result<bool, client::Error> {
    let secrets: Api<Secret> = Api::namespaced(state.client.clone(), NAMESPACE);
    for number in 0..WANTED {
        let name = format!("{}-{number}", map.metadata.name.as_deref().unwrap_or_default());
        if secrets.get_opt(&name).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn create(state: &State, context: &Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    for number in 0..WANTED {
        let name = format!("{}-{number}", map.key().name());
        if context.get(&state.secrets, format!("{NAMESPACE}/{name}"))?.is_some() {
            continue;
        }
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
    world.create(map("c")).await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "two" } })).await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    // A label stands for a status: a ConfigMap has none.
    let rule = Rule::does_not_flap("ConfigMap", "/metadata/labels/phase");
    rehearsal.objects([map("a")]).script(script).rule(rule)
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "does not flap");
}

#[test]
fn the_corrected_one_passes() {
    passes(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
