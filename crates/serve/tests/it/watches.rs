//! Watches: the events, and when a stream ends.

use std::sync::Arc;

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::time::{Duration, Instant};

use crate::client::{PODS, WIDGETS, Watch, answer, send, serve, serve_with};
use crate::model::World;

fn world() -> Arc<World> {
    let world = World::new();
    world.put("pods", "shop/a", &[("app", "web")], json!({}));
    world.put("pods", "shop/b", &[], json!({}));
    world
}

#[tokio::test(start_paused = true)]
async fn what_happens_after_a_version_is_told_in_its_order() {
    let world = world();
    let serve = serve(&world);
    let mut watch = Watch::open(&serve, &format!("{PODS}?watch=1&resourceVersion=101")).await;
    assert_eq!(watch.told().await, "ADDED shop/b@102");
    world.put("pods", "other/x", &[], json!({}));
    world.put("pods", "shop/a", &[], json!({ "spec": { "nodeName": "n1" } }));
    world.delete("pods", "shop/b");
    let modified = watch.next().await.unwrap();
    assert_eq!(
        modified,
        json!({ "type": "MODIFIED", "object": { "kind": "Pod", "apiVersion": "v1",
            "metadata": { "name": "a", "namespace": "shop", "uid": "uid-shop-a", "resourceVersion": "104" },
            "spec": { "nodeName": "n1" } } })
    );
    assert_eq!(watch.told().await, "DELETED shop/b@105");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_time_is_over() {
    let serve = serve(&world());
    let begun = Instant::now();
    let watch = Watch::open(&serve, &format!("{PODS}?watch=true&resourceVersion=102&timeoutSeconds=7")).await;
    assert_eq!(watch.rest().await, [""; 0]);
    assert_eq!(begun.elapsed().as_secs(), 7);

    // Without a timeout, the watch ends after half an hour to an hour.
    for timeout in ["", "&timeoutSeconds=0"] {
        let begun = Instant::now();
        let watch = Watch::open(&serve, &format!("{PODS}?watch=true&resourceVersion=102{timeout}")).await;
        assert_eq!(watch.rest().await, [""; 0]);
        let lasted = begun.elapsed();
        assert!(lasted >= Duration::from_secs(1800) && lasted <= Duration::from_secs(3601), "{lasted:?}");
    }
    let watch = Watch::open(&serve, &format!("{PODS}?watch=true&timeoutSeconds=-1")).await;
    assert_eq!(watch.rest().await, ["ERROR 500 context deadline exceeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_even_while_there_is_always_something_to_tell() {
    let world = world();
    let serve = serve(&world);
    let mut watch =
        Watch::open(&serve, &format!("{PODS}?watch=1&resourceVersion=102&timeoutSeconds=5")).await;
    let begun = Instant::now();
    let mut told = 0;
    loop {
        world.put("pods", "shop/a", &[], json!({}));
        if watch.next().await.is_none() {
            break;
        }
        told += 1;
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(begun.elapsed() < Duration::from_secs(6));
    }
    assert!((45..=51).contains(&told), "{told}");
}

#[tokio::test(start_paused = true)]
async fn without_a_version_what_there_is_comes_first() {
    let world = world();
    let serve = serve(&world);
    for query in ["", "&resourceVersion=0"] {
        let mut watch = Watch::open(&serve, &format!("{PODS}?watch=1{query}")).await;
        assert_eq!(
            (watch.told().await.as_str(), watch.told().await.as_str()),
            ("ADDED shop/a@101", "ADDED shop/b@102")
        );
        let version = world.put("pods", "shop/b", &[], json!({}));
        assert_eq!(watch.told().await, format!("MODIFIED shop/b@{version}"));
        world.delete("pods", "shop/b");
        world.put("pods", "shop/b", &[], json!({}));
        world.compact(102);
        // Drained, so that the next round begins as this one did.
        assert!(watch.told().await.starts_with("DELETED"));
        assert!(watch.told().await.starts_with("ADDED"));
        if query.is_empty() {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_a_bookmark_and_goes_on_as_a_watch() {
    let world = world();
    world.pass(8);
    let serve = serve(&world);
    let list = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for query in ["", "&resourceVersion=0", "&resourceVersion=101", "&resourceVersion=110"] {
        let mut watch = Watch::open(&serve, &format!("{PODS}?{list}{query}")).await;
        assert_eq!(watch.told().await, "ADDED shop/a@101", "{query}");
        assert_eq!(watch.told().await, "ADDED shop/b@102", "{query}");
        assert_eq!(
            watch.next().await.unwrap(),
            json!({ "type": "BOOKMARK", "object": { "kind": "Pod", "apiVersion": "v1",
                "metadata": { "resourceVersion": "110", "annotations": { "k8s.io/initial-events-end": "true" } },
                "spec": { "containers": null }, "status": {} } }),
            "{query}"
        );
    }
    let mut watch = Watch::open(&serve, &format!("{WIDGETS}?{list}")).await;
    assert_eq!(
        watch.next().await.unwrap()["object"],
        json!({ "kind": "Widget", "apiVersion": "example.com/v1",
            "metadata": { "resourceVersion": "110", "annotations": { "k8s.io/initial-events-end": "true" } } })
    );
    world.put("widgets", "shop/w", &[], json!({}));
    assert_eq!(watch.told().await, "ADDED shop/w@111");
}

#[tokio::test(start_paused = true)]
async fn what_an_old_watch_gets_first_ends_with_a_bookmark_if_it_takes_bookmarks() {
    let serve = serve(&world());
    let watch = Watch::open(&serve, &format!("{PODS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=1")).await;
    assert_eq!(watch.rest().await, ["ADDED shop/a@101", "ADDED shop/b@102", "BOOKMARK 102 end"]);
    let list = "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let watch = Watch::open(&serve, &format!("{PODS}?{list}")).await;
    assert_eq!(watch.rest().await, ["ADDED shop/a@101", "ADDED shop/b@102"]);
    let none = "watch=1&timeoutSeconds=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let watch = Watch::open(&serve, &format!("{PODS}?{none}&allowWatchBookmarks=1")).await;
    assert_eq!(watch.rest().await, [""; 0]);
    // The old path is a watch without a parameter in the query.
    let watch =
        Watch::open(&serve, "/api/v1/watch/namespaces/shop/pods?timeoutSeconds=1&allowWatchBookmarks=1")
            .await;
    assert_eq!(watch.rest().await, ["ADDED shop/a@101", "ADDED shop/b@102"]);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_of_a_version_to_come_waits_and_then_says_so_in_the_stream() {
    let world = world();
    let serve = serve(&world);
    let list = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let begun = Instant::now();
    let mut watch = Watch::open(&serve, &format!("{PODS}?{list}&resourceVersion=900")).await;
    assert_eq!(
        watch.next().await.unwrap(),
        json!({ "type": "ERROR", "object": { "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": "Timeout: Too large resource version: 900, current: 102",
            "reason": "Timeout", "details": { "causes": [{ "reason": "ResourceVersionTooLarge",
                "message": "Too large resource version" }], "retryAfterSeconds": 1 }, "code": 504 } })
    );
    assert_eq!(watch.told().await, "END");
    assert!(begun.elapsed() >= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_watch_after_a_version_to_come_is_silent_until_then() {
    let world = world();
    let serve = serve(&world);
    let query = "watch=1&resourceVersion=105&allowWatchBookmarks=1&timeoutSeconds=200";
    let mut watch = Watch::open(&serve, &format!("{PODS}?{query}")).await;
    world.put("pods", "shop/c", &[], json!({}));
    world.put("pods", "shop/d", &[], json!({}));
    world.pass(1);
    world.put("pods", "shop/e", &[], json!({}));
    assert_eq!(watch.told().await, "ADDED shop/e@106");
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_version_is_told_in_the_stream() {
    let world = world();
    world.put("pods", "shop/a", &[], json!({}));
    world.compact(102);
    let serve = serve(&world);
    let mut watch = Watch::open(&serve, &format!("{PODS}?watch=1&resourceVersion=101")).await;
    assert_eq!(
        watch.next().await.unwrap(),
        json!({ "type": "ERROR", "object": { "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": "too old resource version: 101 (102)", "reason": "Expired",
            "code": 410 } })
    );
    assert_eq!(watch.told().await, "END");
    let mut watch = Watch::open(&serve, &format!("{PODS}?watch=1&resourceVersion=102")).await;
    assert_eq!(watch.told().await, "MODIFIED shop/a@103");
}

#[tokio::test(start_paused = true)]
async fn who_reads_too_slowly_is_cut_off_and_told_why_when_it_comes_again() {
    let world = world();
    let serve = serve(&world);
    let mut watch = Watch::open(&serve, &format!("{PODS}?watch=1&resourceVersion=102")).await;
    let last = world.put("pods", "shop/a", &[], json!({}));
    assert_eq!(watch.told().await, format!("MODIFIED shop/a@{last}"));
    world.put("pods", "shop/a", &[], json!({}));
    world.compact(world.revision() + 1);
    assert_eq!(watch.told().await, "END");
    let mut again = Watch::open(&serve, &format!("{PODS}?watch=1&resourceVersion={last}")).await;
    assert!(again.told().await.starts_with("ERROR 410 too old resource version: "));
}

#[tokio::test(start_paused = true)]
async fn watches_end_with_their_resource() {
    let world = world();
    let serve = serve(&world);
    let mut watch = Watch::open(&serve, &format!("{PODS}?watch=1&resourceVersion=102")).await;
    world.remove("pods");
    assert_eq!(watch.told().await, "END");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_by_the_minute_and_before_the_end() {
    let world = world();
    let serve = serve(&world);
    let begun = Instant::now();
    let query = "watch=1&resourceVersion=102&allowWatchBookmarks=true&timeoutSeconds=150";
    let mut watch = Watch::open(&serve, &format!("{PODS}?{query}")).await;
    world.pass(5);
    world.put("configmaps", "shop/elsewhere", &[], json!({}));
    let mut told = Vec::new();
    while let Some(event) = watch.next().await {
        told.push((begun.elapsed().as_secs(), event));
    }
    let seconds: Vec<u64> = told.iter().map(|(at, _)| *at).collect();
    assert_eq!(seconds, [60, 120, 148]);
    for (_, event) in told {
        assert_eq!(
            event,
            json!({ "type": "BOOKMARK", "object": { "kind": "Pod", "apiVersion": "v1",
                "metadata": { "resourceVersion": "108" }, "spec": { "containers": null }, "status": {} } })
        );
    }
    assert_eq!(begun.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_as_often_as_the_server_was_told_and_only_with_news() {
    let world = world();
    let serve = serve_with(&world, |options| options.bookmark_period = Duration::from_secs(3));
    let query = "watch=1&resourceVersion=101&timeoutSeconds=2&allowWatchBookmarks=true";
    let watch = Watch::open(&serve, &format!("{PODS}?{query}")).await;
    assert_eq!(watch.rest().await, ["ADDED shop/b@102"], "too short for one");
    let query = "watch=1&resourceVersion=102&timeoutSeconds=11";
    let watch = Watch::open(&serve, &format!("{PODS}?{query}&allowWatchBookmarks=true")).await;
    assert_eq!(watch.rest().await, [""; 0], "the version that the watch began with");
    world.pass(1);
    let watch = Watch::open(&serve, &format!("{PODS}?{query}")).await;
    assert_eq!(watch.rest().await, [""; 0], "who did not ask");
    let watch = Watch::open(&serve, &format!("{PODS}?{query}&allowWatchBookmarks=true")).await;
    assert_eq!(watch.rest().await, ["BOOKMARK 103"; 3]);
}

#[tokio::test(start_paused = true)]
async fn who_enters_a_selector_is_added_and_who_leaves_is_deleted() {
    let world = world();
    let serve = serve(&world);
    let query = "watch=1&resourceVersion=102&labelSelector=app%3Dweb";
    let mut watch = Watch::open(&serve, &format!("{PODS}?{query}")).await;
    world.put("pods", "shop/a", &[("app", "web")], json!({ "spec": { "nodeName": "n1" } }));
    world.put("pods", "shop/a", &[("app", "db")], json!({ "spec": { "nodeName": "n2" } }));
    world.put("pods", "shop/a", &[("app", "db")], json!({}));
    world.put("pods", "shop/b", &[("app", "web")], json!({}));
    world.put("pods", "shop/c", &[("app", "db")], json!({}));
    world.delete("pods", "shop/c");
    world.delete("pods", "shop/b");
    assert_eq!(watch.told().await, "MODIFIED shop/a@103");
    assert_eq!(
        watch.next().await.unwrap(),
        json!({ "type": "DELETED", "object": { "kind": "Pod", "apiVersion": "v1",
            "metadata": { "name": "a", "namespace": "shop", "uid": "uid-shop-a", "resourceVersion": "104",
                "labels": { "app": "web" } },
            "spec": { "nodeName": "n1" } } })
    );
    assert_eq!(watch.told().await, "ADDED shop/b@106");
    assert_eq!(watch.told().await, "DELETED shop/b@109");
}

#[tokio::test(start_paused = true)]
async fn one_object_can_be_watched_by_field_and_by_path() {
    let world = world();
    let serve = serve(&world);
    for uri in [
        format!("{PODS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Db"),
        "/api/v1/watch/namespaces/shop/pods/b?timeoutSeconds=1".to_string(),
    ] {
        assert_eq!(Watch::open(&serve, &uri).await.rest().await, ["ADDED shop/b@102"], "{uri}");
    }
    for flag in ["", "maybe", "1", "TRUE"] {
        let watch = Watch::open(&serve, &format!("{PODS}?watch={flag}&timeoutSeconds=1")).await;
        assert_eq!(watch.rest().await.len(), 2, "{flag}");
    }
    for flag in ["0", "False"] {
        let list = answer(send(&serve, Method::GET, &format!("{PODS}?watch={flag}"), &[]).await).await;
        assert_eq!(list.names().len(), 2, "{flag}");
    }
}

#[tokio::test(start_paused = true)]
async fn much_that_is_there_already_comes_in_pieces_of_a_bounded_size() {
    let world = World::new();
    let long = "x".repeat(10_000);
    for number in 0..40 {
        world.put("pods", &format!("shop/p{number:02}"), &[], json!({ "spec": { "nodeName": long } }));
    }
    let serve = serve(&world);
    let response = send(&serve, Method::GET, &format!("{PODS}?watch=1&timeoutSeconds=1"), &[]).await;
    let mut body = Box::pin(response.into_body());
    let (mut pieces, mut events) = (0, 0);
    while let Some(frame) = body.frame().await {
        let piece = frame.unwrap().into_data().unwrap();
        assert!(piece.len() < 80_000, "{}", piece.len());
        pieces += 1;
        events += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    assert_eq!(events, 40);
    assert!((6..=8).contains(&pieces), "{pieces}");
}

#[tokio::test(start_paused = true)]
async fn no_time_is_too_long_to_be_counted() {
    let serve = serve(&world());
    let wraps = i64::MAX / 1_000_000_000 + 1;
    for (seconds, ends_at_once) in [(i64::MAX, true), (wraps, true), (wraps - 1, false), (i64::MAX / 2, true)]
    {
        let mut watch =
            Watch::open(&serve, &format!("{PODS}?watch=1&allowWatchBookmarks=1&timeoutSeconds={seconds}"))
                .await;
        let first = watch.told().await;
        let expected = if ends_at_once { "ERROR 500 context deadline exceeded" } else { "ADDED shop/a@101" };
        assert_eq!(first, expected, "{seconds}");
    }
}
