//! A controller sets one label by writing back the whole object of its cache, without its version.
//!
//! A change of somebody else in between is undone. The twin sends the label only.

use std::sync::Arc;

use informer::kube::client::Api;
use informer::kube::core::params::PostParams;
use informer_controller::{Context, Failure, Outcome};
use informer_controller_test::{Rehearsal, World};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::{NAMESPACE, State, control, finds, map, passes_few};

async fn faulty(state: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some((map, of)) = outdated(&context) else { return Ok(Outcome::Done) };
    let maps: Api<ConfigMap> = Api::namespaced(state.client.clone(), NAMESPACE);
    let mut whole = map.clone();
    whole.metadata.resource_version = None;
    whole.metadata.labels.get_or_insert_default().insert("of".to_owned(), of);
    maps.replace(context.key().name(), &PostParams::default(), &whole).await?;
    Ok(Outcome::Done)
}

async fn corrected(_: Arc<State>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    if let (Some((_, of)), Some(map)) = (outdated(&context), context.object()) {
        context.writer().patch(map, json!({ "metadata": { "labels": { "of": of } } })).await?;
    }
    Ok(Outcome::Done)
}

/// A map whose label is not that of its data.
fn outdated(context: &Context<ConfigMap>) -> Option<(&ConfigMap, String)> {
    let map = context.object()?;
    let of = map.data.as_ref()?.get("of")?;
    (map.labels().value("of") != Some(of)).then(|| (&**map, of.clone()))
}

async fn script(world: World) {
    for of in ["one", "two", "three", "four"] {
        world.patch("ConfigMap", "shop/a", json!({ "data": { "of": of } })).await;
    }
}

fn rehearsal(rehearsal: Rehearsal) -> Rehearsal {
    rehearsal.objects([map("a")]).script(script)
}

#[test]
fn the_faulty_one_is_found() {
    finds(rehearsal(Rehearsal::new(|env| control(env, faulty))), "ConfigMap shop/a");
}

#[test]
fn the_corrected_one_passes() {
    passes_few(rehearsal(Rehearsal::new(|env| control(env, corrected))));
}
