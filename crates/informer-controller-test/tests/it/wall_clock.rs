//! A controller asks the machine for the time, in place of its surroundings.
//!
//! Config maps live for an hour. In a rehearsal, the dates of objects are simulated: by the machine's clock all have expired,
//! or none will.

use std::sync::Arc;
use std::time::Duration;

use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Rehearsal, World};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::{State, control, map, passes_few};

async fn expire(context: Context<ConfigMap>, now: Timestamp) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let created = map.metadata.creation_timestamp.as_ref().map_or(now, |created| created.0);
    let left = Duration::from_secs(3600).saturating_sub((now - created).try_into().unwrap_or_default());
    if left.is_zero() {
        context.writer().delete(map).await?;
        return Ok(Outcome::Done);
    }
    Ok(Outcome::After(left))
}

async fn faulty(_: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    expire(context, Timestamp::now()).await
}

async fn corrected(_: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let now = context.now();
    expire(context, now).await
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.patch("ConfigMap", "shop/a", json!({ "data": { "of": "one" } })).await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([map("a")]).script(script)
}

#[test]
fn the_faulty_one_is_found() {
    let failure = rehearsal(Rehearsal::new(|env| control(env, faulty))).outcome().failure;
    let failure = failure.expect("the clock is noticed");
    assert!(failure.story.contains("the clock of the machine"), "{failure}");
}

#[test]
fn the_corrected_one_passes() {
    passes_few(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
