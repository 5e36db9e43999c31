//! Watches that are added to a controller that runs.

use std::time::Duration;

use informer_controller::{Context, Controller, Outcome, Trigger};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::{Stop, map, maps, secrets};
use crate::wireless::{Wireless, pass};

#[tokio::test(start_paused = true)]
async fn c1_a_late_watch_wakes_a_running_controller_until_it_is_dropped() {
    let world = Wireless::with(&maps(), [map("shop", "a")]);
    let factory = world.factory();
    let (maps, late) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    let (stop, stopped) = Stop::pair();
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let controller = Controller::new("test", &maps).until(stopped);
    let handle = controller.handle();
    let lister = late.lister();
    let reconcile = move |context: Context<ConfigMap>| {
        let _ = begun.send((context.triggers().contains(Trigger::Related), lister.list().len()));
        async { Ok(Outcome::Done) }
    };
    let running = tokio::spawn(controller.run(world.client(), reconcile));
    pass(Duration::from_secs(1)).await;
    let mut seen = || std::iter::from_fn(|| has_begun.try_recv().ok()).last();
    assert_eq!(seen(), Some((false, 0)));
    let secret = |name: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "shop", "name": name } });
    let to_a = |_: &_| ["shop/a".parse().unwrap()];
    let watching = handle.watch(&late, to_a).unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(seen(), None);
    for count in 1..3 {
        world.0.create(&secrets(), secret(&format!("s-{count}"))).unwrap();
        pass(Duration::from_secs(1)).await;
        assert_eq!(seen(), Some((true, count)), "the lister has what woke the reconciliation");
    }
    drop(watching);
    world.0.create(&secrets(), secret("s-3")).unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(seen(), None);
    stop.and_wait(running).await.unwrap();
}
