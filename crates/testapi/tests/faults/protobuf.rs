//! Faults of answers in protobuf.

use http::Method;
use serde_json::{Value, json};
use testapi::faults::{Bytes, Events, Fault, Matcher, Refusal, StreamError};
use testapi::schema::from_protobuf;
use testapi::{TestApi, Verb};

use crate::client::{Answer, Client, MAPS, create, request, start_with};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn watches() -> Matcher {
    Verb::Watch.of("configmaps")
}

async fn get(api: &TestApi, path: &str) -> Answer {
    let accept = "application/vnd.kubernetes.protobuf,application/json";
    let request = request(Method::GET, path, &[("accept", accept)], "");
    Client::connect(api).await.send(request).await.unwrap()
}

/// The events of a watch as they come: `ADDED a`, or what is wrong.
struct Watch {
    answer: Answer,
    bytes: Vec<u8>,
}

impl Watch {
    async fn open(api: &TestApi, query: &str) -> Self {
        let answer = get(api, &format!("{MAPS}?watch=true{query}")).await;
        assert_eq!(answer.headers["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
        Self { answer, bytes: Vec::new() }
    }

    /// The content of the next frame; `None` at the end.
    async fn frame(&mut self) -> hyper::Result<Option<Vec<u8>>> {
        loop {
            if let Some((length, rest)) = self.bytes.split_first_chunk() {
                let length = u32::from_be_bytes(*length).try_into().unwrap();
                if let Some(frame) = rest.get(..length).map(<[u8]>::to_vec) {
                    self.bytes.drain(..length + 4);
                    return Ok(Some(frame));
                }
            }
            let Some(chunk) = self.answer.chunk().await? else {
                assert!(self.bytes.is_empty(), "a frame was cut");
                return Ok(None);
            };
            self.bytes.extend_from_slice(&chunk);
        }
    }

    async fn event(&mut self) -> Option<Value> {
        Some(read(&self.frame().await.unwrap()?).unwrap_or_else(|| json!("unreadable")))
    }

    async fn told(&mut self) -> String {
        let Some(event) = self.event().await else { return "END".to_owned() };
        let object = &event["object"];
        let what = if event["type"] == "ERROR" { &object["reason"] } else { &object["metadata"]["name"] };
        event["type"]
            .as_str()
            .map_or("unreadable".to_owned(), |kind| format!("{kind} {}", what.as_str().unwrap_or("-")))
    }

    async fn all(mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            all.push(self.told().await);
            if all.last().is_some_and(|last| last == "END") {
                return all;
            }
        }
    }
}

/// A `WatchEvent` whose object is an envelope.
fn read(frame: &[u8]) -> Option<Value> {
    let name = frame.strip_prefix(b"\x0a")?;
    let kind = name.get(1..)?.get(..usize::from(*name.first()?))?;
    let object = frame.windows(4).position(|window| window == b"k8s\0")?;
    let read = from_protobuf(&frame[object..]).ok()?;
    Some(json!({ "type": std::str::from_utf8(kind).ok()?, "object": read }))
}

#[tokio::test]
async fn a_watch_ends_and_breaks_behind_an_event() {
    let api = start_with(3).await;
    api.faults().on(watches()).once([Fault::Chunks { seed: 3, max: 5 }, Fault::EndAfter(Events(2))]);
    assert_eq!(Watch::open(&api, "").await.all().await, ["ADDED a", "ADDED b", "END"]);
    api.faults().on(watches()).once(Fault::CutAfter(Events(1)));
    let mut watch = Watch::open(&api, "").await;
    assert_eq!(watch.told().await, "ADDED a");
    assert!(watch.frame().await.is_err());
    api.faults().on(watches()).once(Fault::CutAfter(Bytes(10)));
    let mut watch = Watch::open(&api, "").await;
    assert!(watch.frame().await.is_err());
}

#[tokio::test]
async fn a_watch_brings_an_error_and_ends() {
    let api = start_with(3).await;
    api.faults().on(watches()).once(Fault::ErrorAfter(1, StreamError::Expired));
    let mut watch = Watch::open(&api, "").await;
    assert_eq!(watch.told().await, "ADDED a");
    let error = watch.event().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(error["object"]["message"], "The resourceVersion for the provided watch is too old.");
    assert_eq!(watch.told().await, "END");
}

#[tokio::test]
async fn one_event_is_wrong_and_the_others_are_right() {
    let api = start_with(3).await;
    for (fault, second) in [
        (Fault::Garble(1), "unreadable"),
        (Fault::Truncate(1), "unreadable"),
        (Fault::Duplicate(1), "ADDED b"),
    ] {
        let twice = matches!(fault, Fault::Duplicate(_));
        api.faults().on(watches()).once([fault.clone(), Fault::EndAfter(Events(if twice { 4 } else { 3 }))]);
        let told = Watch::open(&api, "").await.all().await;
        let mut expected = vec!["ADDED a", second, "ADDED c", "END"];
        if twice {
            expected.insert(1, "ADDED b");
        }
        assert_eq!(told, expected, "{fault:?}");
    }
}

#[tokio::test]
async fn kinds_and_versions_can_be_wrong() {
    let api = start_with(3).await;
    let mut watch = Watch::open(&api, "").await;
    let mut honest = Vec::new();
    for _ in 0..3 {
        honest.push(watch.event().await.unwrap());
    }
    api.faults().on(watches()).once(Fault::RevisionBack { after: 1, by: 2 });
    let mut watch = Watch::open(&api, "").await;
    let version = |event: &Value| {
        event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap()
    };
    for (at, honest) in honest.iter().enumerate() {
        let mut told = watch.event().await.unwrap();
        assert_eq!(version(&told), version(honest) - if at == 1 { 2 } else { 0 });
        told["object"]["metadata"]["resourceVersion"] =
            honest["object"]["metadata"]["resourceVersion"].clone();
        assert_eq!(told, *honest);
    }
    api.faults().on(watches()).once(Fault::WrongKind(1));
    let mut watch = Watch::open(&api, "").await;
    assert_eq!(watch.told().await, "ADDED a");
    let frame = watch.frame().await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&frame);
    assert!(text.contains("\x12\x09Impostor") && !text.contains("ConfigMap\x12"), "{text}");
    assert_eq!(watch.told().await, "ADDED c");
}

#[tokio::test]
async fn bookmarks_can_be_left_out() {
    const LIST: &str = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let api = start_with(2).await;
    let mut honest = Watch::open(&api, LIST).await;
    assert_eq!(
        [honest.told().await, honest.told().await, honest.told().await],
        ["ADDED a", "ADDED b", "BOOKMARK -"]
    );
    for fault in [Fault::NoEndBookmark, Fault::NoBookmarks] {
        api.faults().on(watches()).once(fault);
        let mut watch = Watch::open(&api, LIST).await;
        assert_eq!([watch.told().await, watch.told().await], ["ADDED a", "ADDED b"]);
        create(&api, "later");
        assert_eq!(watch.told().await, "ADDED later");
        api.api().delete(&testapi::Gvr::new("v1", "configmaps"), "default", "later").unwrap();
    }
}

#[tokio::test]
async fn running_watches_are_told_to_say_something_and_to_end() {
    let api = start_with(1).await;
    let mut watch = Watch::open(&api, "").await;
    assert_eq!(watch.told().await, "ADDED a");
    let map = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": { "name": "invented" } });
    assert_eq!(api.faults().running(watches()).event(&json!({ "type": "ADDED", "object": map })), 1);
    assert_eq!(watch.told().await, "ADDED invented");
    api.faults().running(watches()).line("nothing");
    assert_eq!(watch.told().await, "unreadable");
    api.faults().running(watches()).error(StreamError::InternalError);
    assert_eq!([watch.told().await, watch.told().await], ["ERROR InternalError", "END"]);
    let mut watch = Watch::open(&api, "").await;
    assert_eq!(watch.told().await, "ADDED a");
    api.faults().running(watches()).end();
    assert_eq!(watch.told().await, "END");
}

#[tokio::test]
async fn refusals_are_in_protobuf_and_documents_that_are_changed_are_not() {
    let api = start_with(1).await;
    let lists = || Verb::List.of("configmaps");
    api.faults().on(lists()).once(Fault::Refuse(Refusal::Expired));
    let mut refused = get(&api, MAPS).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.headers["content-type"]),
        (410, &PROTOBUF.parse().unwrap())
    );
    assert_eq!(from_protobuf(&refused.bytes().await.unwrap()).unwrap()["reason"], "Expired");

    api.faults().on(lists()).once(Fault::WrongKind(0));
    let mut changed = get(&api, MAPS).await;
    assert_eq!(changed.headers["content-type"], "application/json");
    assert_eq!(changed.json().await["kind"], "Impostor");

    let mut honest = get(&api, MAPS).await;
    assert_eq!(honest.headers["content-type"], PROTOBUF);
    assert_eq!(from_protobuf(&honest.bytes().await.unwrap()).unwrap()["items"][0]["metadata"]["name"], "a");

    api.faults().hide("secrets");
    let mut discovery = get(&api, "/api/v1").await;
    assert!(!discovery.json().await.to_string().contains("secrets"));
    let hidden = get(&api, "/api/v1/secrets").await;
    assert_eq!((hidden.status.as_u16(), &hidden.headers["content-type"]), (404, &PROTOBUF.parse().unwrap()));
}
