//! A controller that never calms down.
//!
//! Its write changes nothing, so that no event ends the loop, no object shows it, and the end is right. It keeps a server
//! busy all the same.

use std::sync::Arc;
use std::time::{Duration, Instant};

use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Rehearsal, World};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::{State, control, map, passes_few};

/// It waits until the label is there, and writes it each time.
async fn faulty(_: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    label(&context).await?;
    Ok(Outcome::After(Duration::ZERO))
}

async fn corrected(_: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    if context.object().is_some_and(|map| map.labels().value("seen").is_none()) {
        label(&context).await?;
    }
    Ok(Outcome::Done)
}

async fn label(context: &Context<ConfigMap>) -> Result<(), Failure> {
    if let Some(map) = context.object() {
        context.writer().patch(map, json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
    }
    Ok(())
}

/// The same without a request.
async fn idle(_: Arc<State>, _: Context<ConfigMap>) -> Result<Outcome, Failure> {
    Ok(Outcome::After(Duration::ZERO))
}

async fn script(world: World) {
    world.create(map("b")).await;
    world.delete("ConfigMap", "shop/a").await;
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([map("a")]).script(script)
}

#[test]
fn loops_are_found_soon() {
    let begun = Instant::now();
    let failures = [
        rehearsal(Rehearsal::new(|env| control(env, faulty))).outcome().failure,
        rehearsal(Rehearsal::new(|env| control(env, idle))).outcome().failure,
    ];
    for failure in failures {
        let failure = failure.expect("the loop is found");
        assert!(failure.summary.contains("the program does not calm down"), "{failure}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn the_corrected_one_passes() {
    passes_few(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
