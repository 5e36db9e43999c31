//! Calls of Rust: what they do for a test that clients of the API have to do themselves.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::json;
use testapi::{Api, ApiOptions, Gvr};

use crate::fixture::Server;

static MAPS: LazyLock<Gvr> = LazyLock::new(|| Gvr::new("v1", "configmaps"));

fn map(namespace: &str, value: &str) -> serde_json::Value {
    json!({ "metadata": { "namespace": namespace, "name": "a" }, "data": { "x": value } })
}

#[test]
fn create_makes_the_namespace_as_the_builder_does() {
    let server = Server::new();
    server.api.create(&MAPS, map("shop", "1")).unwrap();
    assert_eq!(server.get("/api/v1/namespaces/shop").body["status"]["phase"], "Active");
    let before = server.api.revision();
    // Once is enough.
    server.api.create(&MAPS, json!({ "metadata": { "namespace": "shop", "name": "b" } })).unwrap();
    assert_eq!(server.api.revision(), before + 1);
    // A client that asks through HTTP gets what the real server says.
    let answer = server.post("/api/v1/namespaces/other/configmaps", json!({ "metadata": { "name": "a" } }));
    assert_eq!(answer.code, 404);
    // A namespace that cannot be, and one that is on its way out.
    assert!(server.api.create(&MAPS, map("No Name", "1")).is_err());
    server
        .api
        .create(
            &MAPS,
            json!({ "metadata": { "namespace": "shop", "name": "held", "finalizers": ["x.io/y"] } }),
        )
        .unwrap();
    server.api.delete(&Gvr::new("v1", "namespaces"), "", "shop").unwrap();
    let refused =
        server.api.create(&MAPS, json!({ "metadata": { "namespace": "shop", "name": "c" } })).unwrap_err();
    assert!(refused.message.contains("being terminated"), "{refused}");
}

#[tokio::test]
async fn a_wait_sees_each_version_from_the_present_one_on() {
    let api = Api::default();
    api.create(&MAPS, map("shop", "1")).unwrap();
    // As it is.
    let now = api.wait_for(&MAPS, "shop", "a", |map| map["data"]["x"] == "1").await.unwrap();
    assert_eq!(now["kind"], "ConfigMap");

    let writer = api.clone();
    let writing = async move {
        for value in ["2", "3", "4"] {
            writer.update(&MAPS, map("shop", value)).unwrap();
        }
    };
    // All are written before the wait goes on, and yet the one in the middle is found.
    let mut seen = Vec::new();
    let wait = api.wait_for(&MAPS, "shop", "a", |map| {
        seen.push(map["data"]["x"].as_str().unwrap().to_owned());
        map["data"]["x"] == "3"
    });
    let (found, ()) = tokio::join!(wait, writing);
    assert_eq!(found.unwrap()["data"]["x"], "3");
    assert_eq!(seen, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_wait_for_a_deletion_is_not_missed_by_one_that_comes_again() {
    let api = Api::default();
    api.wait_until_gone(&MAPS, "shop", "a").await.unwrap();
    api.create(&MAPS, map("shop", "1")).unwrap();
    let writer = api.clone();
    let writing = async move {
        writer.delete(&MAPS, "shop", "a").unwrap();
        writer.create(&MAPS, map("shop", "2")).unwrap();
    };
    let (gone, ()) = tokio::join!(api.wait_until_gone(&MAPS, "shop", "a"), writing);
    gone.unwrap();
    assert_eq!(api.get(&MAPS, "shop", "a").unwrap()["data"]["x"], "2");
}

#[tokio::test]
async fn a_wait_goes_on_after_a_restart_and_a_restore() {
    let api = Api::default();
    let backup = api.backup();
    api.create(&MAPS, map("shop", "1")).unwrap();
    let writer = api.clone();
    let writing = async move {
        writer.restart(false);
        tokio::task::yield_now().await;
        writer.restore(&backup);
        tokio::task::yield_now().await;
        writer.create(&MAPS, map("shop", "2")).unwrap();
    };
    let wait = api.wait_for(&MAPS, "shop", "a", |map| map["data"]["x"] == "2");
    let (found, ()) = tokio::join!(wait, writing);
    found.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_limit_and_says_what_it_saw_but_no_content() {
    let mut options = ApiOptions::default();
    options.wait_limit = Duration::from_secs(3);
    let api = Api::new(options);
    let error = api.wait_for(&MAPS, "shop", "a", |_| true).await.unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(
        error.to_string(),
        "configmaps shop/a did not meet the condition within 3s: it does not exist"
    );
    api.create(&MAPS, map("shop", "1")).unwrap();
    let error = api.wait_for(&MAPS, "shop", "a", |_| false).await.unwrap_err().to_string();
    assert!(error.ends_with(&format!("it is at resourceVersion {}", api.revision())), "{error}");
    let error = api.wait_for(&Gvr::new("v1", "nothings"), "shop", "a", |_| true).await.unwrap_err();
    assert!(!error.is_timeout(), "{error}");
}
