//! Children of living objects are swept away, because an old list lacks their owners.
//!
//! The controller sweeps: it lists the secrets in the server, and deletes those whose config map its cache does not have. It
//! crashes, and its first list of config maps comes from a server whose cache is behind: the newest config maps are not in it,
//! and their secrets go. It makes them again when its cache has caught up; what was in them is lost. Sieve found this in
//! operators that sweep volumes ("Automatic Reliability Testing for Cluster Management Controllers", OSDI 2022, section 2: stale
//! states).
//!
//! The twin asks the server for the config map before it deletes a secret.

use std::sync::Arc;

use informer::Informer;
use informer::kube::Client;
use informer::kube::client::{self, Api};
use informer::kube::core::params::{DeleteParams, ListParams, Preconditions};
use informer_controller::{Context, Controller, Failure, Outcome, RunError, with};
use informer_controller_test::{Env, Rehearsal, Rule, World};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::support::{NAMESPACE, child, finds, map, passes};

struct Sweeper {
    maps: Informer<ConfigMap>,
    secrets: Informer<Secret>,
    client: Client,
    asks: bool,
}

async fn control(env: Env, asks: bool) -> Result<(), RunError> {
    let factory = env.factory().build().expect("the options are valid");
    let (maps, secrets) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    let sweeper = Sweeper { maps: maps.clone(), secrets: secrets.clone(), client: env.client(), asks };
    Controller::new("sweeper", &maps)
        .reads(&secrets)
        .host(env.host())
        .run(env.client(), with(sweeper, reconcile))
        .await
}

async fn reconcile(sweeper: Arc<Sweeper>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    sweep(&sweeper, &context).await?;
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let uid = map.uid().to_string();
    let cached = context.get(&sweeper.secrets, map.key())?;
    // An old list may show a map that is gone.
    if cached.is_none_or(|secret| of(&secret) != Some(&uid))
        && lives(&sweeper, map.key().name(), &uid).await?
    {
        let mut secret = child(map, Some(map.key().name().to_owned()));
        secret.metadata.owner_references = None;
        secret.metadata.labels = Some([("of".to_owned(), uid)].into());
        context.writer().create(&secret).await?;
    }
    Ok(Outcome::Done)
}

/// Deletes the secrets without a config map.
async fn sweep(sweeper: &Sweeper, context: &Context<ConfigMap>) -> Result<(), Failure> {
    let secrets: Api<Secret> = Api::namespaced(sweeper.client.clone(), NAMESPACE);
    for secret in secrets.list(&ListParams::default().labels("of")).await? {
        let (Some(name), Some(of)) = (&secret.metadata.name, of(&secret)) else { continue };
        let cached = context.get(&sweeper.maps, format!("{NAMESPACE}/{name}"))?;
        let is_cached = cached.is_some_and(|map| map.metadata.uid.as_ref() == Some(of));
        if is_cached || sweeper.asks && lives(sweeper, name, of).await? {
            continue;
        }
        let this_one = Preconditions { uid: secret.metadata.uid.clone(), resource_version: None };
        match secrets.delete(name, &DeleteParams::default().preconditions(this_one)).await {
            Err(client::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(deleted?),
        }
    }
    Ok(())
}

/// The uid of the secret's config map.
fn of(secret: &Secret) -> Option<&String> {
    secret.metadata.labels.as_ref()?.get("of")
}

/// Whether the server has this incarnation of a config map.
async fn lives(sweeper: &Sweeper, name: &str, uid: &str) -> Result<bool, client::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(sweeper.client.clone(), NAMESPACE);
    Ok(maps.get_opt(name).await?.is_some_and(|map| map.metadata.uid.as_deref() == Some(uid)))
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "one" } })).await;
    world.delete("ConfigMap", "shop/a").await;
    world.create(map("c")).await;
    world.create(map("a")).await;
    world.patch("ConfigMap", "shop/c", json!({ "data": { "of": "two" } })).await;
}

/// The secret of a config map that exists stays.
fn children_live() -> Rule {
    Rule::after_each_change("the child of a living object stays", |change, objects| {
        let owner = objects.get("ConfigMap", &change.key());
        let lives = owner
            .is_some_and(|owner| owner["metadata"]["uid"] == change.object()["metadata"]["labels"]["of"]);
        match change.kind() == "Secret" && change.deletes() && lives {
            true => Err(format!("Secret {} is deleted", change.key())),
            false => Ok(()),
        }
    })
}

fn rehearsal(asks: bool) -> Rehearsal {
    let rehearsal = Rehearsal::new(move |env| control(env, asks)).objects([map("a")]);
    rehearsal.script(script).rule(children_live()).rule(Rule::deletes_only_its_own())
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(false), "the child of a living object stays");
}

#[test]
fn the_corrected_one_passes() {
    passes(rehearsal(true));
}
