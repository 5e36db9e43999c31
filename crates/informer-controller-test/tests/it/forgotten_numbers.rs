//! A taken number is kept in memory only: a new process gives it away before it has met all holders. After
//! <https://github.com/metallb/metallb/issues/1774> (again #2443, #2479): after a restart, the controller meets a service
//! without an address before the one that has it, and gives both the same. Cilium's operator did so with pod CIDRs:
//! <https://github.com/cilium/cilium/issues/21482>.
//!
//! Here each config map gets a secret with a number from 1 to 4. `faulty` remembers the numbers; a holder comes into its
//! memory when it is reconciled. After a restart, a config map without a secret may come first and get a holder's number.
//! The twin has no memory. The secret's *name* is the number: the server gives each once, however old caches are. A
//! process with an old cache may take a second number for a config map; all but its lowest are given back later.
//!
//! At all times: no two secrets have the same `data.number` and different `data.holder`. At the end: each of the four config
//! maps is the holder of one secret, and each number is used once. Who has which differs between good runs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use informer::Item;
use informer::kube::Resource;
use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{History, Objects, Rehearsal, Rule};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::support::{State, act, control, finds, passes};

const NUMBERS: [&str; 4] = ["1", "2", "3", "4"];
const ALL_TAKEN: Outcome = Outcome::After(Duration::from_secs(1));

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "shop", "name": name } })
}

fn existing() -> Vec<Value> {
    vec![map("cherry"), map("date")]
}

/// The actions of the user, in this order: the verb, the config map's name, the body.
fn actions() -> Vec<(&'static str, &'static str, Value)> {
    let note = json!({ "data": { "note": "still here" } });
    vec![("create", "banana", map("banana")), ("patch", "date", note), ("create", "apple", map("apple"))]
}

fn secret(map: &Item<ConfigMap>, name: &str, number: &str) -> Secret {
    let metadata = ObjectMeta {
        namespace: Some("shop".to_owned()),
        name: Some(name.to_owned()),
        owner_references: map.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    let data = [("number", number), ("holder", map.key().name())];
    let data = data.map(|(field, value)| (field.to_owned(), ByteString(value.as_bytes().to_vec())));
    Secret { metadata, data: Some(data.into()), ..Secret::default() }
}

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let name = map.key().name();
    let number = {
        let mut taken = state.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = context.get(&state.secrets, format!("shop/{name}"))? {
            let number = own.data.as_ref().and_then(|data| data.get("number")).map(|number| number.0.clone());
            let number = String::from_utf8(number.unwrap_or_default())?;
            taken.entry(number).or_insert_with(|| name.to_owned());
            return Ok(Outcome::Done);
        }
        let has = |number: &&str| taken.get(*number).is_some_and(|holder| holder == name);
        let is_free = |number: &&str| !taken.contains_key(*number);
        let chosen = NUMBERS.into_iter().find(has).or_else(|| NUMBERS.into_iter().find(is_free));
        let Some(number) = chosen else { return Ok(ALL_TAKEN) };
        taken.insert(number.to_owned(), name.to_owned());
        number
    };
    context.writer().create(&secret(map, name, number)).await?;
    Ok(Outcome::Done)
}

async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let mut own = context.owned(&state.secrets);
    own.sort_by(|one, other| one.key().cmp(other.key()));
    for extra in own.iter().skip(1) {
        context.writer().delete(extra).await?;
    }
    if own.is_empty() {
        let secrets = context.snapshot(&state.secrets);
        let is_free = |number: &&str| matches!(secrets.get(format!("shop/number-{number}")), Ok(None));
        let Some(number) = NUMBERS.into_iter().find(is_free) else { return Ok(ALL_TAKEN) };
        // If it exists all the same, this is tried again on a newer cache.
        context.writer().create(&secret(map, &format!("number-{number}"), number)).await?;
    }
    Ok(Outcome::Done)
}

/// Whether no two config maps have the same number.
fn numbers_are_unique(objects: &Objects) -> Result<(), String> {
    let mut holders = BTreeMap::new();
    for secret in objects.of_kind("Secret") {
        let (number, holder) = (secret["data"]["number"].to_string(), secret["data"]["holder"].to_string());
        match holders.insert(number.clone(), holder.clone()) {
            Some(other) if other != holder => {
                return Err(format!("{number} has the holders {other}, {holder}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether each config map has one.
fn all_have_one(history: &History) -> Result<(), String> {
    let objects = history.objects();
    for map in objects.of_kind("ConfigMap") {
        let uid = &map["metadata"]["uid"];
        let owns = |secret: &&Value| secret["metadata"]["ownerReferences"][0]["uid"] == *uid;
        let count = objects.of_kind("Secret").filter(owns).count();
        if count != 1 {
            return Err(format!("{} has {count} numbers", map["metadata"]["name"]));
        }
    }
    Ok(())
}

/// Good runs differ in the holders of the numbers, so that secrets are not compared, but ruled.
fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal
        .objects(existing())
        .script(|world| act(world, actions()))
        .ignore("Secret")
        .rule(Rule::after_each_change("a number has one holder", |_, objects| numbers_are_unique(objects)))
        .rule(Rule::over("each config map has one number in the end", all_have_one))
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "a number has one holder");
}

#[test]
fn the_corrected_one_passes() {
    passes(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
