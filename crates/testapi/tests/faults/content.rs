//! Answers that say something else than they should.

use serde_json::Value;
use testapi::Verb;
use testapi::faults::{Events, Fault, StreamError};

use crate::client::{Client, MAPS, create, get, request, start_with, within};

const STREAMING: &str = "/api/v1/namespaces/default/configmaps?watch=true&sendInitialEvents=true\
    &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn watch() -> testapi::faults::Matcher {
    Verb::Watch.of("configmaps")
}

fn watching() -> String {
    format!("{MAPS}?watch=true")
}

#[tokio::test]
async fn a_watch_brings_an_error_in_the_words_of_the_real_server_and_ends() {
    let api = start_with(3).await;
    let cases = [
        (StreamError::Expired, 410, "Expired", "The resourceVersion for the provided watch is too old."),
        (StreamError::InternalError, 500, "InternalError", "Internal error occurred: etcdserver: no leader"),
        (
            StreamError::StoreRead,
            500,
            "StorageReadError",
            "saw a DELETED event, but object data is corrupt - data from the storage is not transformable \
             revision=0: no matching prefix found",
        ),
        (
            StreamError::TooManyRequests { retry_after: 2 },
            429,
            "TooManyRequests",
            "storage is (re)initializing",
        ),
    ];
    for (error, code, reason, message) in cases {
        api.faults().on(watch()).once(Fault::ErrorAfter(2, error));
        let mut watch = get(&api, &watching()).await;
        assert_eq!(watch.status, 200);
        assert_eq!(watch.events(2).await, ["ADDED a", "ADDED b"]);
        let event = watch.value().await;
        assert_eq!(event["type"], "ERROR");
        let status = &event["object"];
        assert_eq!((&status["kind"], &status["status"]), (&"Status".into(), &"Failure".into()));
        assert_eq!((status["code"].as_u64(), status["reason"].as_str()), (Some(code), Some(reason)));
        assert_eq!(status["message"], message);
        if code == 429 {
            assert_eq!(status["details"]["retryAfterSeconds"], 2);
        }
        assert_eq!(watch.line().await.unwrap(), None);
    }
}

#[tokio::test]
async fn an_event_is_garbled_and_the_watch_goes_on() {
    let api = start_with(3).await;
    api.faults().on(watch()).once(Fault::Garble(1));
    let mut watch = get(&api, &watching()).await;
    assert_eq!(watch.events(1).await, ["ADDED a"]);
    let line = watch.line().await.unwrap().unwrap();
    assert!(serde_json::from_str::<Value>(&line).is_err(), "{line}");
    assert_eq!(watch.events(1).await, ["ADDED c"]);
}

#[tokio::test]
async fn half_of_an_event_is_missing() {
    let api = start_with(3).await;
    api.faults().on(watch()).once(Fault::Truncate(1));
    let mut watch = get(&api, &watching()).await;
    assert_eq!(watch.events(1).await, ["ADDED a"]);
    let line = watch.line().await.unwrap().unwrap();
    assert!(serde_json::from_str::<Value>(&line).unwrap_err().is_eof(), "{line}");
    assert_eq!(watch.events(1).await, ["ADDED c"]);
}

#[tokio::test]
async fn an_event_comes_twice() {
    let api = start_with(3).await;
    api.faults().on(watch()).once(Fault::Duplicate(1));
    let mut watch = get(&api, &watching()).await;
    assert_eq!(watch.events(4).await, ["ADDED a", "ADDED b", "ADDED b", "ADDED c"]);
}

#[tokio::test]
async fn the_resource_version_of_an_event_goes_back() {
    let api = start_with(3).await;
    let honest: Vec<_> = versions(&mut get(&api, &watching()).await, 3).await;
    api.faults().on(watch()).once(Fault::RevisionBack { after: 1, by: 2 });
    let told = versions(&mut get(&api, &watching()).await, 3).await;
    assert_eq!(told, [honest[0], honest[1] - 2, honest[2]]);
}

async fn versions(watch: &mut crate::client::Answer, count: usize) -> Vec<u64> {
    let mut versions = Vec::new();
    for _ in 0..count {
        let event = watch.value().await;
        versions.push(event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap());
    }
    versions
}

#[tokio::test]
async fn an_object_of_a_watch_is_of_another_kind() {
    let api = start_with(2).await;
    api.faults().on(watch()).once(Fault::WrongKind(1));
    let mut watch = get(&api, &watching()).await;
    assert_eq!(watch.value().await["object"]["kind"], "ConfigMap");
    assert_eq!(watch.value().await["object"]["kind"], "Impostor");
}

#[tokio::test]
async fn a_list_is_of_another_kind_or_version_or_no_json() {
    let api = start_with(2).await;
    let honest = get(&api, MAPS).await.json().await;
    let list = || api.faults().on(Verb::List.of("configmaps"));

    list().once(Fault::WrongKind(0));
    let told = get(&api, MAPS).await.json().await;
    assert_eq!((&told["kind"], &told["items"]), (&"Impostor".into(), &honest["items"]));

    list().once(Fault::RevisionBack { after: 0, by: 1 });
    let told = get(&api, MAPS).await.json().await;
    let version =
        |list: &Value| list["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!((version(&told), &told["items"]), (version(&honest) - 1, &honest["items"]));

    list().once(Fault::Garble(0));
    let text = get(&api, MAPS).await.bytes().await.unwrap();
    assert!(serde_json::from_slice::<Value>(&text).is_err());
}

#[tokio::test]
async fn the_end_of_the_initial_events_is_not_told() {
    let api = start_with(2).await;
    let mut honest = get(&api, STREAMING).await;
    assert_eq!(honest.events(2).await, ["ADDED a", "ADDED b"]);
    let end = honest.value().await;
    assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");

    let missing = api.faults().on(Verb::Watch.of("configmaps").streaming_list()).once(Fault::NoEndBookmark);
    let mut watch = get(&api, STREAMING).await;
    assert_eq!(watch.events(2).await, ["ADDED a", "ADDED b"]);
    within(missing.hit()).await;
    create(&api, "c");
    assert_eq!(watch.events(1).await, ["ADDED c"]);
}

#[tokio::test]
async fn no_bookmark_comes_at_all() {
    let api = start_with(1).await;
    api.faults().on(watch()).once([Fault::NoBookmarks, Fault::EndAfter(Events(2))]);
    let mut watch = get(&api, STREAMING).await;
    assert_eq!(watch.events(1).await, ["ADDED a"]);
    create(&api, "b");
    assert_eq!(watch.events(1).await, ["ADDED b"]);
    assert_eq!(watch.event().await.unwrap(), None);
}

#[tokio::test]
async fn what_must_be_seen_is_not_compressed() {
    let api = testapi::TestApi::builder().version(37).start().await.unwrap();
    create(&api, "a");
    let ask = async || {
        let request = request(http::Method::GET, STREAMING, &[("accept-encoding", "gzip")], "");
        Client::connect(&api).await.send(request).await.unwrap()
    };
    assert_eq!(ask().await.headers["content-encoding"], "gzip");
    api.faults().on(watch()).once(Fault::CutAfter(Events(1)));
    let mut watch = ask().await;
    assert!(!watch.headers.contains_key("content-encoding"));
    assert_eq!(watch.events(1).await, ["ADDED a"]);
    assert!(watch.event().await.is_err());
}
