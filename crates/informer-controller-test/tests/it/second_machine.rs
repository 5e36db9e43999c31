//! A machine is made twice, because its name is noted after it was made.
//!
//! Cluster API's providers and cloud controllers have had this: the process dies between the answer of the cloud and the
//! write to the object. The twin's name follows from the object's uid: a second creation makes nothing new.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{History, Rehearsal, Rule, World};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::{State, control, map, passes_few};

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let name = format!("machine-{:x}", context.random().u32(..));
    make(&state, &context, name).await
}

async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let name = format!("machine-{}", map.uid());
    make(&state, &context, name).await
}

/// The random name is noted before there is a machine.
async fn noted_first(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    match map.labels().value("machine") {
        Some(name) => state.external.make(name, context.key().as_str()).await?,
        None => {
            let name = format!("machine-{:x}", context.random().u32(..));
            context.writer().patch(map, json!({ "metadata": { "labels": { "machine": name } } })).await?;
        }
    }
    Ok(Outcome::Done)
}

async fn make(state: &State, context: &Context<ConfigMap>, name: String) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if map.labels().value("machine").is_none() {
        state.external.make(&name, context.key().as_str()).await?;
        context.writer().patch(map, json!({ "metadata": { "labels": { "machine": name } } })).await?;
    }
    Ok(Outcome::Done)
}

fn one_each(history: &History) -> Result<(), String> {
    let mut machines: BTreeMap<&str, &str> = BTreeMap::new();
    for change in history.external() {
        if let Some(other) =
            machines.insert(&change.owner, &change.name).filter(|other| *other != change.name)
        {
            return Err(format!("{} has {other} and {}", change.owner, change.name));
        }
    }
    Ok(())
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.patch("ConfigMap", "shop/a", json!({ "data": { "of": "one" } })).await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([map("a")]).script(script).rule(Rule::over("one machine each", one_each))
}

#[test]
fn the_faulty_one_is_found() {
    let rehearsal = rehearsal(Rehearsal::new(|env| control(env, faulty)));
    let failure = rehearsal.seeds(0..1_000).exactly().outcome().failure.expect("it is found");
    assert!(failure.seed.is_some() && failure.summary.contains("one machine each"), "{failure}");
}

#[test]
fn a_random_name_that_is_noted_first_passes() {
    passes_few(rehearsal(Rehearsal::new(|env| control(env, noted_first))));
}

/// Things outside that are named by a uid are the same in two runs, whatever the uid.
#[test]
fn the_corrected_one_passes() {
    passes_few(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
