//! Waiting until an object is as a program wants it.

use std::sync::LazyLock;
use std::time::Duration;

use informer::{Informer, Item, ObjectKey};
use informer_controller::wait::wait_until;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testapi::Patch;

use crate::support::{LONG, World, map, maps};

async fn informer(world: &World) -> Informer<ConfigMap> {
    let informer = world.factory.informer::<ConfigMap>();
    informer.start();
    informer.wait_for_sync(LONG).await.unwrap();
    informer
}

static KEY: LazyLock<ObjectKey> = LazyLock::new(|| "shop/a".parse().unwrap());

fn of(map: Option<&Item<ConfigMap>>) -> Option<&str> {
    map?.data.as_ref()?.get("of").map(String::as_str)
}

fn change(world: &World, name: &str, of: &str) {
    let patch = Patch::Merge(json!({ "data": { "of": of } }));
    world.server.api().patch(&maps(), "shop", name, &patch).unwrap();
}

#[tokio::test]
async fn a_condition_that_holds_already_is_seen_at_once() {
    let world = World::new([map("shop", "a")]).await;
    let informer = informer(&world).await;
    let found = wait_until(&informer, &KEY, |map| of(map) == Some("a"), Duration::ZERO).await.unwrap();
    assert_eq!(found.unwrap().key(), &*KEY);
}

#[tokio::test]
async fn a_change_a_deletion_and_a_creation_are_waited_for() {
    let world = World::new([map("shop", "a"), map("shop", "b")]).await;
    let informer = informer(&world).await;
    let mut calls = 0;
    let wait = wait_until(
        &informer,
        &KEY,
        |map| {
            calls += 1;
            of(map) == Some("new")
        },
        LONG,
    );
    let (found, ()) = tokio::join!(wait, async {
        for n in 0..10 {
            change(&world, "b", &n.to_string());
        }
        change(&world, "a", "new");
    });
    assert_eq!(of(found.unwrap().as_ref()), Some("new"));
    assert!(calls < 10, "{calls} calls: the changes of another object are none");

    let wait = wait_until(&informer, &KEY, |map| map.is_none(), LONG);
    let (gone, _) = tokio::join!(wait, async { world.server.api().delete(&maps(), "shop", "a").unwrap() });
    assert!(gone.unwrap().is_none());
    let wait = wait_until(&informer, &KEY, |map| map.is_some(), LONG);
    let (found, _) =
        tokio::join!(wait, async { world.server.api().create(&maps(), map("shop", "a")).unwrap() });
    assert!(found.unwrap().is_some());
}

#[tokio::test]
async fn the_error_has_the_last_version_and_not_the_content() {
    let world = World::new([map("shop", "a")]).await;
    let informer = informer(&world).await;
    let limit = Duration::from_millis(1);
    let error = wait_until(&informer, &KEY, |_| false, limit).await.unwrap_err();
    let version = informer.lister().get(&*KEY).unwrap().unwrap().resource_version().clone();
    assert!(error.is_timeout());
    assert_eq!(error.last_version(), Some(&version));
    assert_eq!(
        error.to_string(),
        format!(
            "configmaps.v1 shop/a does not meet the condition within 0.001 s: it is at resourceVersion {version}"
        )
    );

    let missing: ObjectKey = "shop/missing".parse().unwrap();
    let error = wait_until(&informer, &missing, |map| map.is_some(), limit).await.unwrap_err();
    assert!(error.to_string().ends_with(": it does not exist"), "{error}");
    assert_eq!(error.last_version(), None);
}

#[tokio::test]
async fn an_informer_that_stops_or_was_not_started_ends_the_wait() {
    let world = World::new([map("shop", "a")]).await;
    let idle = world.factory.informer::<ConfigMap>();
    let error = wait_until(&idle, &KEY, |_| true, LONG).await.unwrap_err();
    assert!(error.as_not_synced().is_some_and(|error| error.is_not_started()), "{error}");

    let informer = informer(&world).await;
    let wait = wait_until(&informer, &KEY, |_| false, LONG);
    let (ended, ()) = tokio::join!(wait, informer.stop());
    assert!(ended.unwrap_err().is_stopped());
}
