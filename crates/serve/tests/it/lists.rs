//! Lists: which state they show.

use serde_json::json;
use tokio::time::{Duration, Instant};

use crate::client::{PODS, WIDGETS, get, serve};
use crate::model::World;

#[tokio::test(start_paused = true)]
async fn a_list_says_kind_and_version_once() {
    let world = World::new();
    world.put("pods", "shop/a", &[("app", "web")], json!({ "spec": { "nodeName": "n1" } }));
    world.put("pods", "shop/b", &[], json!({}));
    world.put("pods", "other/c", &[], json!({}));
    let list = get(&serve(&world), PODS).await;
    assert_eq!(list.code, 200);
    assert_eq!(
        list.json(),
        json!({ "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "103" }, "items": [
            { "metadata": { "name": "a", "namespace": "shop", "uid": "uid-shop-a", "resourceVersion": "101",
                "labels": { "app": "web" } }, "spec": { "nodeName": "n1" } },
            { "metadata": { "name": "b", "namespace": "shop", "uid": "uid-shop-b", "resourceVersion": "102" } },
        ] })
    );
    let all = get(&serve(&world), "/api/v1/pods").await;
    assert_eq!(all.names(), ["other/c", "shop/a", "shop/b"]);
}

#[tokio::test(start_paused = true)]
async fn items_of_custom_resources_say_what_they_are() {
    let world = World::new();
    world.put("widgets", "shop/a", &[], json!({}));
    let list = get(&serve(&world), WIDGETS).await.json();
    assert_eq!(list["metadata"], json!({ "resourceVersion": "101", "continue": "" }));
    assert_eq!(list["items"][0]["kind"], "Widget");
    assert_eq!(list["items"][0]["apiVersion"], "example.com/v1");
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_has_items_all_the_same() {
    let list = get(&serve(&World::new()), "/api/v1/pods").await;
    assert_eq!(list.json()["items"], json!([]));
}

/// A world of which each revision is another list: 101 a, 102 a b, 103 b.
fn three_states() -> std::sync::Arc<World> {
    let world = World::new();
    world.put("pods", "shop/a", &[], json!({}));
    world.put("pods", "shop/b", &[], json!({}));
    world.delete("pods", "shop/a");
    world
}

#[tokio::test(start_paused = true)]
async fn the_version_says_which_moment_is_shown() {
    let serve = serve(&three_states());
    for (query, version, names) in [
        ("", "103", &["shop/b"][..]),
        ("resourceVersion=", "103", &["shop/b"]),
        ("resourceVersion=0", "103", &["shop/b"]),
        ("resourceVersion=102", "103", &["shop/b"]),
        ("resourceVersion=1", "103", &["shop/b"]),
        ("resourceVersion=102&resourceVersionMatch=NotOlderThan", "103", &["shop/b"]),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan", "103", &["shop/b"]),
        ("resourceVersion=102&resourceVersionMatch=Exact", "102", &["shop/a", "shop/b"]),
        ("resourceVersion=101&resourceVersionMatch=Exact", "101", &["shop/a"]),
        // With a limit, a version alone means exactly that one, for compatibility.
        ("resourceVersion=102&limit=5", "102", &["shop/a", "shop/b"]),
        ("resourceVersion=102&resourceVersionMatch=NotOlderThan&limit=5", "103", &["shop/b"]),
        ("limit=-1", "103", &["shop/b"]),
    ] {
        let list = get(&serve, &format!("{PODS}?{query}")).await;
        assert_eq!(list.code, 200, "{query}");
        assert_eq!(list.json()["metadata"]["resourceVersion"], version, "{query}");
        assert_eq!(list.names(), names, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_named_object_has_no_pages_to_share_a_moment() {
    let serve = serve(&three_states());
    let named = format!("{PODS}?resourceVersion=101&limit=1&fieldSelector=metadata.name%3Db");
    assert_eq!(get(&serve, &named).await.names(), ["shop/b"]);
    let everywhere = "/api/v1/pods?resourceVersion=101&limit=1&fieldSelector=metadata.name%3Db";
    assert_eq!(get(&serve, everywhere).await.names(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_version_to_come_is_waited_for() {
    let world = three_states();
    let serve = serve(&world);
    for query in [
        "resourceVersion=900",
        "resourceVersion=900&resourceVersionMatch=Exact",
        "resourceVersion=900&limit=1",
    ] {
        let begun = Instant::now();
        let refused = get(&serve, &format!("{PODS}?{query}")).await;
        assert_eq!(
            refused.json(),
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Timeout: Too large resource version: 900, current: 103", "reason": "Timeout",
                "details": { "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
                    "retryAfterSeconds": 1 }, "code": 504 }),
            "{query}"
        );
        assert_eq!(refused.headers["retry-after"], "1", "{query}");
        assert!(begun.elapsed() >= Duration::from_secs(3), "{query}: {:?}", begun.elapsed());
    }
    let uri = format!("{PODS}?resourceVersion=104");
    let (list, _) = tokio::join!(get(&serve, &uri), async {
        tokio::task::yield_now().await;
        world.put("pods", "shop/c", &[], json!({}))
    });
    assert_eq!(list.names(), ["shop/b", "shop/c"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_forgotten_has_expired() {
    let world = three_states();
    world.compact(103);
    let serve = serve(&world);
    let refused = get(&serve, &format!("{PODS}?resourceVersion=101&resourceVersionMatch=Exact")).await;
    assert_eq!(
        refused.json(),
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "The resourceVersion for the provided list is too old.", "reason": "Expired", "code": 410 })
    );
    assert_eq!(get(&serve, &format!("{PODS}?resourceVersion=101")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_has_just_gone_is_not_there() {
    let world = three_states();
    world.remove("pods");
    assert_eq!(get(&serve(&world), PODS).await.code, 404);
}
