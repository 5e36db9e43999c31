//! A bucket in a cloud is made for an object without a finalizer, and is left when the object is deleted.
//!
//! The controller marks an object as prepared, adds its finalizer, and makes the bucket. It crashes after the mark. When it
//! starts again, the mark tells it that all is prepared. Sieve calls this an intermediate state, and found controllers that
//! mistake a half-done step for a done one (OSDI 2022, section 2).
//!
//! The twin looks for the finalizer itself. Before the effect it reads the object from the server: an old list may show an
//! object that is gone.

use std::sync::Arc;

use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Rehearsal, Rule, World};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::{State, control, finds, lives, map, passes};

const FINALIZER: &str = "example.com/bucket";

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if map.metadata.deletion_timestamp.is_some() {
        return clean_up(&state, &context).await;
    }
    if map.labels().value("prepared").is_none() {
        let mark = json!({ "metadata": { "labels": { "prepared": "yes" } } });
        context.writer().patch(map, mark).await?;
        add_finalizer(&context).await?;
    }
    make(&state, &context).await
}

async fn corrected(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if map.metadata.deletion_timestamp.is_some() {
        return clean_up(&state, &context).await;
    }
    if map.metadata.finalizers.is_none() {
        add_finalizer(&context).await?;
    }
    if lives(&state, map).await? { make(&state, &context).await } else { Ok(Outcome::Done) }
}

async fn add_finalizer(context: &Context<ConfigMap>) -> Result<(), Failure> {
    if let Some(map) = context.object() {
        let finalizer = json!({ "metadata": { "finalizers": [FINALIZER] } });
        context.writer().patch(map, finalizer).await?;
    }
    Ok(())
}

async fn make(state: &State, context: &Context<ConfigMap>) -> Result<Outcome, Failure> {
    let key = context.key();
    state.external.make(&format!("bucket-{}", key.name()), key.as_str()).await?;
    Ok(Outcome::Done)
}

/// It takes the finalizer away, then removes the bucket: after a crash in between, nobody knows of it.
async fn released_early(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let is_going = context.object().filter(|map| map.metadata.deletion_timestamp.is_some());
    let Some(map) = is_going else { return corrected(state, context).await };
    if map.metadata.finalizers.is_some() {
        context.writer().patch(map, json!({ "metadata": { "finalizers": null } })).await?;
        state.external.remove(&format!("bucket-{}", map.key().name())).await?;
    }
    Ok(Outcome::Done)
}

async fn clean_up(state: &State, context: &Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    if map.metadata.finalizers.is_some() {
        state.external.remove(&format!("bucket-{}", map.key().name())).await?;
        let none = json!({ "metadata": { "finalizers": null } });
        context.writer().patch(map, none).await?;
    }
    Ok(Outcome::Done)
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.create(map("c")).await;
    world.delete("ConfigMap", "shop/a").await;
    world.patch("ConfigMap", "shop/b", json!({ "data": { "of": "one" } })).await;
    world.delete("ConfigMap", "shop/c").await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([map("a")]).script(script).rule(Rule::finalizer_before_effect(FINALIZER, "ConfigMap"))
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "has the finalizer example.com/bucket");
}

#[test]
fn a_finalizer_that_goes_too_early_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, released_early))), "external bucket-");
}

#[test]
fn the_corrected_one_passes() {
    passes(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
