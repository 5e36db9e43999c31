//! Changes that wait for further ones.

use std::time::Duration;

use informer_controller::{Context, Controller, Outcome};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testapi::Patch;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::support::{Stop, map, maps};
use crate::wireless::{Wireless, pass};

#[tokio::test(start_paused = true)]
async fn q6_changes_within_the_wait_are_one_reconciliation_and_a_steady_stream_delays_none() {
    const SECOND: Duration = Duration::from_secs(1);
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let informer = world.factory().informer::<ConfigMap>();
    let (stop, stopped) = Stop::pair();
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let controller = Controller::new("test", &informer).debounce(5 * SECOND).until(stopped);
    let start = Instant::now();
    let reconcile = move |context: Context<ConfigMap>| {
        let value = context.object().and_then(|map| map.data.as_ref()?.get("at").cloned());
        let _ = begun.send((start.elapsed().as_secs(), value.unwrap_or_default()));
        async { Ok(Outcome::Done) }
    };
    let running = tokio::spawn(controller.run(world.client(), reconcile));
    // The initial list does not wait.
    pass(SECOND).await;
    // A change each second, in the middle of it, for ten seconds.
    pass(SECOND / 2).await;
    for at in 0..10 {
        let patch = Patch::Merge(json!({ "data": { "at": at.to_string() } }));
        world.0.patch(&maps(), "shop", "a", &patch).unwrap();
        pass(SECOND).await;
    }
    pass(10 * SECOND).await;
    stop.and_wait(running).await.unwrap();
    let mut all = Vec::new();
    while let Ok(one) = has_begun.try_recv() {
        all.push(one);
    }
    assert_eq!(all.first(), Some(&(0, String::new())));
    assert!(all.len() == 3, "{all:?}");
    assert_eq!((all[1].0, all[2].1.as_str()), (6, "9"), "{all:?}");
}
