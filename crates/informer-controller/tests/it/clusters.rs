//! One controller with informers of two clusters.

use std::sync::Arc;
use std::time::Duration;

use informer::Informer;
use informer_controller::{Context, Controller, Failure, Outcome, Watched, with};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testapi::{Patch, Verb};

use crate::support::{LONG, Stop, World, map, maps};

/// The label that the other cluster asks for.
async fn label(wanted: Arc<Informer<ConfigMap>>, context: Context<ConfigMap>) -> Result<Outcome, Failure> {
    let Some(map) = context.object() else { return Ok(Outcome::Done) };
    let Some(wanted) = context.get(&wanted, context.key())? else { return Ok(Outcome::Done) };
    let of = wanted.data.as_ref().and_then(|data| data.get("of"));
    if map.labels().value("of") != of.map(String::as_str) {
        context.writer().patch(map, json!({ "metadata": { "labels": { "of": of } } })).await?;
    }
    Ok(Outcome::Done)
}

/// The versions of two servers have nothing to do with each other: the far cache would never have what was written.
#[tokio::test]
async fn q7_a_cache_of_another_cluster_is_not_expected_to_have_what_is_written() {
    let near = World::new((0..50).map(|at| map("other", &format!("map-{at}")))).await;
    let far = World::new([map("shop", "a")]).await;
    near.server.api().create(&maps(), map("shop", "a")).unwrap();
    let wanted = far.factory.informer::<ConfigMap>();
    let (stop, stopped) = Stop::pair();
    let controller = Controller::new("test", &near.factory.informer::<ConfigMap>())
        .watches(Watched::of(&wanted).elsewhere(), |map| [map.key().clone()])
        .own_writes_limit(Duration::from_secs(600))
        .until(stopped);
    let running = tokio::spawn(controller.run(near.client.clone(), with(wanted, label)));
    for value in ["a", "b", "c"] {
        let patch = Patch::Merge(json!({ "data": { "of": value } }));
        far.server.api().patch(&maps(), "shop", "a", &patch).unwrap();
        let near = near.server.api();
        let maps = maps();
        let followed = near.wait_for(&maps, "shop", "a", |map| map["metadata"]["labels"]["of"] == value);
        tokio::time::timeout(LONG, followed).await.expect("the label follows the other cluster").unwrap();
    }
    assert_eq!(far.server.requests().matching(&Verb::Patch.of("configmaps")).len(), 0);
    stop.and_wait(running).await.unwrap();
}
