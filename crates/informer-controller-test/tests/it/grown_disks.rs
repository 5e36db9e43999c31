//! The only sign of unfinished work is deleted before the work is done. After
//! <https://github.com/rabbitmq/cluster-operator/issues/782>, found by Sieve (OSDI '22): to enlarge volumes, the operator
//! compares the size asked for with that in its StatefulSet, deletes the StatefulSet, enlarges the volumes, and creates the
//! StatefulSet anew. If it crashes after the deletion, nobody ever looks at the volumes again.
//!
//! Here the secret `queue-set` is the StatefulSet, whose size never changes in place, and the secrets `queue-disk-N` are the
//! volumes, which only grow. A crash, a lost answer or a refused patch between the deletion of the set and the last disk
//! leaves small disks beside a set of the new size. The twin compares each disk by itself, in each reconciliation, and
//! touches the set last. A new process with an old config map in its cache shrinks nothing (its issue #653).
//!
//! At the end: the secrets are `queue-set`, `queue-disk-0`, `queue-disk-1`, each with `data.size` 40. At all times (also with
//! `faulty`): remember the largest size that each `queue-disk-N` had so far; its size is never below that.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer::Item;
use informer::kube::Resource;
use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Change, Objects, Rehearsal, Rule};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::support::{State, act, control, finds, passes};

fn existing() -> Vec<Value> {
    let metadata = json!({ "namespace": "shop", "name": "queue" });
    let data = json!({ "size": "10", "disks": "2" });
    vec![json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })]
}

/// The actions of the user, in this order: the verb, the config map's name, the body.
fn actions() -> Vec<(&'static str, &'static str, Value)> {
    ["20", "30", "40"].map(|size| ("patch", "queue", json!({ "data": { "size": size } }))).into()
}

fn asked(map: &ConfigMap, field: &str) -> u64 {
    map.data.as_ref().and_then(|data| data.get(field)?.parse().ok()).unwrap_or(0)
}

fn size_of(secret: &Secret) -> u64 {
    let size = secret.data.as_ref().and_then(|data| data.get("size"));
    size.and_then(|size| std::str::from_utf8(&size.0).ok()?.parse().ok()).unwrap_or(0)
}

/// The data of a secret of the size that the config map asks for.
fn sized(map: &ConfigMap) -> BTreeMap<String, ByteString> {
    [("size".to_owned(), ByteString(asked(map, "size").to_string().into_bytes()))].into()
}

fn secret(map: &Item<ConfigMap>, part: &str) -> Secret {
    let metadata = ObjectMeta {
        namespace: Some("shop".to_owned()),
        name: Some(format!("{}-{part}", map.key().name())),
        owner_references: map.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Secret { metadata, data: Some(sized(map)), ..Secret::default() }
}

async fn reconcile(state: Arc<State>, context: Context<ConfigMap>, always: bool) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let set = context.get(&state.secrets, format!("shop/{}-set", map.key().name()))?;
    // The set, if it is smaller than asked.
    let outgrown = set.as_ref().filter(|set| size_of(set) < asked(map, "size"));
    if let Some(set) = outgrown.filter(|_| !always) {
        context.writer().delete(set).await?;
    }
    for number in 0..asked(map, "disks") {
        let key = format!("shop/{}-disk-{number}", map.key().name());
        match context.get(&state.secrets, key)? {
            None => drop(context.writer().create(&secret(map, &format!("disk-{number}"))).await?),
            Some(disk) if (always || outgrown.is_some()) && size_of(&disk) < asked(map, "size") => {
                drop(context.writer().patch(&disk, json!({ "data": sized(map) })).await?);
            }
            Some(_) => {}
        }
    }
    if let Some(set) = outgrown.filter(|_| always) {
        context.writer().delete(set).await?;
    }
    if set.is_none() || outgrown.is_some() {
        context.writer().create(&secret(map, "set")).await?;
    }
    Ok(Outcome::Done)
}

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    reconcile(state, context, false).await
}

async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    reconcile(state, context, true).await
}

/// The disks that are smaller than they were.
fn shrinks(change: &Change, _: &Objects) -> Result<(), String> {
    let size = |secret: Option<&Value>| {
        let size = secret.and_then(|secret| secret["data"]["size"].as_str());
        size.map_or(0, |size| SIZES.iter().position(|known| size == *known).map_or(0, |at| at + 1))
    };
    match change.key().contains("-disk-") && size(change.after()) < size(change.before()) {
        true => Err(format!("{} shrinks", change.key())),
        false => Ok(()),
    }
}

/// The base64 of 10, 20, 30 and 40.
const SIZES: [&str; 4] = ["MTA=", "MjA=", "MzA=", "NDA="];

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal
        .objects(existing())
        .script(|world| act(world, actions()))
        .rule(Rule::after_each_change("disks only grow", shrinks))
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "the end is not that");
}

#[test]
fn the_corrected_one_passes() {
    passes(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
