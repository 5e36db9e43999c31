//! The child of a living object is deleted, because a stale cache shows the former object of that name.
//!
//! The controller cleans up when its object is being deleted. It crashes and starts again, and its first list comes from a
//! server whose cache is behind: there the former object is still being deleted. The controller deletes the child by its
//! name, which is by now the child of the next object of that name. Sieve found this in several operators that delete
//! volumes ("Automatic Reliability Testing for Cluster Management Controllers", OSDI 2022, section 2: stale states).
//!
//! The twin asks the server for the child, and deletes it only if it belongs to this object, by its uid.

use std::sync::Arc;

use informer::kube::client;
use informer::kube::client::Api;
use informer::kube::core::params::{DeleteParams, Patch, PatchParams, Preconditions};
use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Rehearsal, Rule, World};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::support::{NAMESPACE, State, child, control, finds, lives, map, passes};

const FINALIZER: &str = "example.com/child";

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if map.metadata.deletion_timestamp.is_none() {
        return prepare(&state, &context).await;
    }
    let name = map.key().name();
    let secrets: Api<Secret> = Api::namespaced(state.client.clone(), NAMESPACE);
    match secrets.delete(name, &DeleteParams::default()).await {
        Err(client::Error::Api(status)) if status.code == 404 => {}
        deleted => drop(deleted?),
    }
    let maps: Api<ConfigMap> = Api::namespaced(state.client.clone(), NAMESPACE);
    let none = json!({ "metadata": { "finalizers": null, "uid": map.metadata.uid } });
    maps.patch(name, &PatchParams::default(), &Patch::Merge(&none)).await?;
    Ok(Outcome::Done)
}

async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if map.metadata.deletion_timestamp.is_none() {
        return prepare(&state, &context).await;
    }
    let secrets: Api<Secret> = Api::namespaced(state.client.clone(), NAMESPACE);
    // Not from the cache: one that lags may not have the child yet.
    if let Some(secret) = secrets.get_opt(map.key().name()).await?
        && is_of(&secret, map)
    {
        let this_one = Preconditions { uid: secret.metadata.uid, resource_version: None };
        match secrets.delete(map.key().name(), &DeleteParams::default().preconditions(this_one)).await {
            Err(client::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted?),
        }
    }
    let none = json!({ "metadata": { "finalizers": null } });
    context.writer().patch(map, none).await?;
    Ok(Outcome::Done)
}

/// The finalizer, then the child, if the object still lives: an old list may show one that is gone.
async fn prepare(state: &State, context: &Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if map.metadata.finalizers.is_none() {
        let finalizer = json!({ "metadata": { "finalizers": [FINALIZER] } });
        context.writer().patch(map, finalizer).await?;
    }
    let cached = context.get(&state.secrets, map.key())?;
    if cached.is_some_and(|secret| is_of(&secret, map)) || !lives(state, map).await? {
        return Ok(Outcome::Done);
    }
    let mut secret = child(map, Some(map.key().name().to_owned()));
    // Like a volume, it outlives its owner unless somebody deletes it.
    secret.metadata.owner_references = None;
    secret.metadata.labels = Some([("of".to_owned(), map.uid().to_string())].into());
    // One of a former object of that name goes first; one of this object is seen soon.
    context.writer().create(&secret).await?;
    Ok(Outcome::Done)
}

fn is_of(secret: &Secret, map: &ConfigMap) -> bool {
    let of = secret.metadata.labels.as_ref().and_then(|labels| labels.get("of"));
    of.is_some() && of == map.metadata.uid.as_ref()
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.delete("ConfigMap", "shop/a").await;
    world.until(|world| world.get("ConfigMap", "shop/a").is_none()).await;
    world.create(map("a")).await;
    world.patch("ConfigMap", "shop/a", json!({ "data": { "of": "one" } })).await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "two" } })).await;
}

/// The program deletes no child of an object that lives.
fn children_live() -> Rule {
    Rule::after_each_change("the child of a living object stays", |change, objects| {
        if change.kind() != "Secret" || !change.deletes() {
            return Ok(());
        }
        let owner = objects.get("ConfigMap", &change.key());
        let is_alive = owner.is_some_and(|owner| {
            owner["metadata"]["deletionTimestamp"].is_null()
                && owner["metadata"]["uid"] == change.object()["metadata"]["labels"]["of"]
        });
        if is_alive { Err(format!("Secret {} is deleted", change.key())) } else { Ok(()) }
    })
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([map("a")]).script(script).rule(children_live()).rule(Rule::deletes_only_its_own())
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "the child of a living object stays");
}

#[test]
fn the_corrected_one_passes() {
    passes(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
