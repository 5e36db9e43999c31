//! Shards: a share of the objects by hash.

use serde_json::json;

use crate::client::{PODS, Watch, get, serve, serve_with};
use crate::model::World;

const MIDDLE: &str = "0x8000000000000000";
const START: &str = "0x0000000000000000";
const END: &str = "0x10000000000000000";

fn range(field: &str, start: &str, end: &str) -> String {
    format!("shardRange(object.metadata.{field},%20'{start}',%20'{end}')")
}

#[tokio::test(start_paused = true)]
async fn each_object_is_in_one_shard() {
    let world = World::new();
    for number in 0..40 {
        world.put("pods", &format!("shop/{number:02}-of-many"), &[], json!({}));
    }
    let serve = serve_with(&world, |options| options.shard_selectors = true);
    let low = get(&serve, &format!("{PODS}?shardSelector={}", range("uid", START, MIDDLE))).await;
    let high = get(&serve, &format!("{PODS}?shardSelector={}", range("uid", MIDDLE, END))).await;
    let mut both = [low.names(), high.names()].concat();
    assert!(low.names().len() > 5 && high.names().len() > 5, "{} {}", low.names().len(), high.names().len());
    both.sort();
    assert_eq!(both, get(&serve, PODS).await.names());
    let said = &low.json()["metadata"]["shardInfo"]["selector"];
    assert!(said.as_str().unwrap().starts_with("shardRange(object.metadata.uid"), "{said}");

    let two = format!("{}%20||%20{}", range("uid", START, MIDDLE), range("uid", MIDDLE, END));
    assert_eq!(get(&serve, &format!("{PODS}?shardSelector={two}")).await.names().len(), 40);
    // All objects of a namespace have the same hash.
    let by_namespace =
        get(&serve, &format!("{PODS}?shardSelector={}", range("namespace", START, MIDDLE))).await;
    assert!([0, 40].contains(&by_namespace.names().len()));
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_told_of_its_shard_only() {
    let world = World::new();
    for number in 0..20 {
        world.put("pods", &format!("shop/{number:02}-of-many"), &[], json!({}));
    }
    let serve = serve_with(&world, |options| options.shard_selectors = true);
    let selector = range("uid", START, MIDDLE);
    let listed = get(&serve, &format!("{PODS}?shardSelector={selector}")).await.names();
    let watch =
        Watch::open(&serve, &format!("{PODS}?watch=1&timeoutSeconds=1&shardSelector={selector}")).await;
    let told: Vec<String> = watch.rest().await;
    let told: Vec<&str> = told.iter().map(|event| &event["ADDED ".len()..event.find('@').unwrap()]).collect();
    assert_eq!(told, listed);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_know_shards_ignores_them() {
    let world = World::new();
    world.put("pods", "shop/a", &[], json!({}));
    let serve = serve(&world);
    let list = get(&serve, &format!("{PODS}?shardSelector=nonsense")).await;
    assert_eq!((list.code, list.names()), (200, vec!["shop/a".to_string()]));
    assert!(list.json()["metadata"].get("shardInfo").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_none_is_refused() {
    let serve = serve_with(&World::new(), |options| options.shard_selectors = true);
    for selector in [
        "nonsense".to_string(),
        range("name", START, MIDDLE),
        range("uid", "0x0", MIDDLE),
        range("uid", MIDDLE, START),
        range("uid", END, END),
        range("uid", "0x800000000000000G", END),
        format!("{}||{}", range("uid", START, MIDDLE), range("namespace", MIDDLE, END)),
        "shardRange(object.metadata.uid)".to_string(),
    ] {
        let refused = get(&serve, &format!("{PODS}?shardSelector={selector}")).await;
        assert_eq!(refused.code, 500, "{selector}");
    }
}
