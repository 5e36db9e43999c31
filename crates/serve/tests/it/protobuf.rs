//! Answers in protobuf. The messages of these tests are simple: the JSON of the object is their field 15.

use std::sync::Arc;

use futures_util::StreamExt as _;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use serve::{
    Catalog, Collection, Protobuf, Reason, Resource, Resources, Serve, ServeOptions, ServerVersion, Status,
    wire,
};

use crate::client::{Answer, PODS, WIDGETS, accepting, answer, send};
use crate::model::{Served, World};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
const MAPS: &str = "/api/v1/namespaces/shop/configmaps";
const LIST: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// A world whose kinds have messages, all but the custom one.
struct WithMessages(Served);

struct Writer;

impl Protobuf for Writer {
    fn write(&self, body: &[u8], out: &mut Vec<u8>) {
        wire::text(15, &format!("{{{}", std::str::from_utf8(body).unwrap()), out);
    }
}

impl Catalog for WithMessages {
    fn resources(&self) -> Arc<Resources> {
        self.0.resources()
    }

    fn collection(&self, resource: &Resource) -> Option<Arc<dyn Collection>> {
        self.0.collection(resource)
    }

    fn version(&self) -> ServerVersion {
        self.0.version()
    }

    fn protobuf(&self, _: &str, kind: &str) -> Option<Arc<dyn Protobuf>> {
        (kind != "Widget" && !kind.is_empty()).then(|| Arc::new(Writer) as _)
    }
}

fn serve(world: &Arc<World>) -> Serve {
    Serve::new(Arc::new(WithMessages(Served(Arc::clone(world)))), ServeOptions::default())
}

fn world() -> Arc<World> {
    let world = World::new();
    world.put("configmaps", "shop/a", &[], json!({ "data": { "x": "1" } }));
    world.put("widgets", "shop/w", &[], json!({ "spec": { "color": "red" } }));
    world
}

/// The fields of a message that has only strings, messages and small numbers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = varint(&mut bytes);
        let content = match tag & 7 {
            0 => value.to_string().into_bytes(),
            _ => {
                let (content, rest) = bytes.split_at(value.try_into().unwrap());
                bytes = rest;
                content.to_vec()
            }
        };
        fields.push((tag >> 3, content));
    }
    fields
}

fn said(fields: &[(u64, Vec<u8>)], number: u64) -> String {
    let found = fields.iter().find(|(of, _)| *of == number).expect("the field");
    String::from_utf8(found.1.clone()).unwrap()
}

/// Version, kind and content of an envelope, which must be complete.
fn opened(bytes: &[u8]) -> (String, String, Vec<u8>) {
    let envelope = fields(bytes.strip_prefix(b"k8s\0").expect("an envelope"));
    assert_eq!(envelope.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(envelope[2].1.is_empty() && envelope[3].1.is_empty());
    let head = fields(&envelope[0].1);
    (said(&head, 1), said(&head, 2), envelope[1].1.clone())
}

/// The object in an envelope, with its kind.
fn object(bytes: &[u8]) -> Value {
    let (version, kind, content) = opened(bytes);
    let mut object: Value = serde_json::from_str(&said(&fields(&content), 15)).unwrap();
    object["kind"] = kind.into();
    object["apiVersion"] = version.into();
    object
}

fn content_type(answer: &Answer) -> &str {
    answer.headers["content-type"].to_str().unwrap()
}

/// The frames of a whole watch, as JSON events.
fn events(mut bytes: &[u8]) -> Vec<Value> {
    let mut events = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (frame, rest) = rest.split_at(u32::from_be_bytes(*length).try_into().unwrap());
        let event = fields(frame);
        let extension = fields(&event[1].1);
        assert_eq!((event.len(), extension.len(), event[1].0, extension[0].0), (2, 1, 2, 1));
        events.push(json!({ "type": said(&event, 1), "object": object(&extension[0].1) }));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "a frame was cut");
    events
}

#[tokio::test(start_paused = true)]
async fn an_object_is_in_an_envelope_that_says_its_kind() {
    let serve = serve(&world());
    let one = accepting(&serve, &format!("{MAPS}/a"), PROTOBUF).await;
    assert_eq!((one.code, content_type(&one)), (200, PROTOBUF));
    let body = r#"{"metadata":{"name":"a","namespace":"shop","resourceVersion":"101","uid":"uid-shop-a"},"data":{"x":"1"}}"#;
    let expected = [
        &b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12"[..],
        &[u8::try_from(body.len() + 2).unwrap(), 0x7a, u8::try_from(body.len()).unwrap()],
        body.as_bytes(),
        b"\x1a\0\"\0",
    ]
    .concat();
    assert_eq!(one.body, expected);

    let accept = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let metadata = accepting(&serve, &format!("{WIDGETS}/w"), &accept).await;
    assert_eq!(
        object(&metadata.body),
        json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata":
            { "name": "w", "namespace": "shop", "uid": "uid-shop-w", "resourceVersion": "102" } })
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_has_its_length_in_front_however_long_it_is() {
    for (count, size) in [(0, 0), (3, 10), (40, 10_000), (300, 100_000)] {
        let world = World::new();
        for number in 0..count {
            world.put("pods", &format!("shop/p{number:03}"), &[], json!({ "x": "x".repeat(size) }));
        }
        let serve = serve(&world);
        let response = send(&serve, http::Method::GET, PODS, &[("accept", PROTOBUF)]).await;
        assert_eq!(response.headers()["content-type"], PROTOBUF);
        let mut pieces = response.into_body().into_data_stream();
        let (mut body, mut largest) = (Vec::new(), 0);
        while let Some(piece) = pieces.next().await {
            let piece = piece.unwrap();
            largest = largest.max(piece.len());
            body.extend_from_slice(&piece);
        }
        assert!(largest <= 256 * 1024, "{count}: {largest}");
        let (version, kind, content) = opened(&body);
        assert_eq!((version.as_str(), kind.as_str()), ("v1", "PodList"));
        let list = fields(&content);
        let metadata = fields(&list[0].1);
        assert_eq!(
            (said(&metadata, 1), said(&metadata, 2), said(&metadata, 3)),
            (String::new(), world.revision().to_string(), String::new())
        );
        assert_eq!(list.len(), count + 1, "{size}");
        for (number, (field, item)) in list[1..].iter().enumerate() {
            let item: Value = serde_json::from_str(&said(&fields(item), 15)).unwrap();
            assert_eq!(
                (*field, item["metadata"]["name"].as_str().unwrap()),
                (2, format!("p{number:03}").as_str())
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_says_where_the_next_begins_and_how_much_is_left() {
    let world = World::new();
    for number in 0..5 {
        world.put("pods", &format!("shop/p{number}"), &[], json!({}));
    }
    let serve = serve(&world);
    let mut uri = format!("{PODS}?limit=3");
    let page = accepting(&serve, &uri, PROTOBUF).await;
    let list = fields(&opened(&page.body).2);
    let metadata = fields(&list[0].1);
    assert_eq!((list.len(), said(&metadata, 4).as_str()), (4, "2"));
    uri.push_str(&format!("&continue={}", said(&metadata, 3)));
    let rest = accepting(&serve, &uri, PROTOBUF).await;
    let list = fields(&opened(&rest.body).2);
    assert_eq!((list.len(), fields(&list[0].1).len()), (3, 3));

    let accept = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1");
    let (version, kind, content) = opened(&accepting(&serve, PODS, &accept).await.body);
    assert_eq!((version.as_str(), kind.as_str()), ("meta.k8s.io/v1beta1", "PartialObjectMetadataList"));
    assert_eq!(fields(&content).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_frames_with_their_length_in_front() {
    let world = world();
    let serve = serve(&world);
    let uri = format!("{MAPS}?{LIST}&timeoutSeconds=100");
    let watch = send(&serve, http::Method::GET, &uri, &[("accept", PROTOBUF)]).await;
    assert_eq!(
        (watch.status(), &watch.headers()["content-type"]),
        (StatusCode::OK, &STREAM.parse().unwrap())
    );
    let mut pieces = watch.into_body().into_data_stream();
    let first = events(&pieces.next().await.unwrap().unwrap());
    assert_eq!(
        first,
        [
            json!({ "type": "ADDED", "object": { "kind": "ConfigMap", "apiVersion": "v1", "data": { "x": "1" },
                "metadata": { "name": "a", "namespace": "shop", "uid": "uid-shop-a", "resourceVersion": "101" } } }),
            json!({ "type": "BOOKMARK", "object": { "kind": "ConfigMap", "apiVersion": "v1", "metadata":
                { "resourceVersion": "102", "annotations": { "k8s.io/initial-events-end": "true" } } } }),
        ]
    );
    world.put("configmaps", "shop/a", &[], json!({ "data": { "x": "2" } }));
    world.delete("configmaps", "shop/a");
    world.pass(3);
    let mut later = Vec::new();
    while let Some(piece) = pieces.next().await {
        later.extend(events(&piece.unwrap()));
    }
    let told: Vec<_> = later.iter().map(crate::client::short).collect();
    assert_eq!(told[..2], ["MODIFIED shop/a@103", "DELETED shop/a@104"]);
    assert!(told[2].starts_with("BOOKMARK "), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_begin_is_an_event_with_a_status() {
    let world = world();
    world.compact(102);
    let serve = serve(&world);
    for accept in [PROTOBUF.to_owned(), format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1")] {
        let watch = accepting(&serve, &format!("{MAPS}?watch=1&resourceVersion=101"), &accept).await;
        assert_eq!((watch.code, content_type(&watch)), (200, STREAM));
        let events = events(&watch.body);
        assert_eq!(events.len(), 1, "{accept}");
        assert_eq!(events[0]["type"], "ERROR");
        let status = Status::new(Reason::Expired, "too old resource version: 101 (102)").to_json();
        assert_eq!(events[0]["object"], status);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_client_accepts_first_is_what_it_gets() {
    let serve = serve(&world());
    let list = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let table = format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1");
    for (uri, accept, code, expected) in [
        (MAPS, format!("{PROTOBUF},application/json"), 200, PROTOBUF),
        (MAPS, format!("application/json,{PROTOBUF}"), 200, "application/json"),
        (MAPS, format!("application/json;q=0.5,{PROTOBUF}"), 200, PROTOBUF),
        (MAPS, format!("*/*,{PROTOBUF}"), 200, PROTOBUF),
        (MAPS, format!("{PROTOBUF};stream=watch"), 200, PROTOBUF),
        (MAPS, format!("{PROTOBUF};type=x"), 200, PROTOBUF),
        (MAPS, format!("application/cbor,{PROTOBUF};q=0.9,application/json;q=0.8"), 200, PROTOBUF),
        (MAPS, format!("{list},application/json"), 200, PROTOBUF),
        (MAPS, format!("{table},application/json"), 200, "application/json"),
        (WIDGETS, format!("{PROTOBUF},application/json"), 200, "application/json"),
        (WIDGETS, list, 200, PROTOBUF),
        // A refusal is protobuf only if nothing else was accepted, and it has no form of its own.
        (WIDGETS, PROTOBUF.to_owned(), 406, PROTOBUF),
        (MAPS, table.clone(), 406, "application/json"),
        (WIDGETS, table, 406, "application/json"),
        (MAPS, format!("{PROTOBUF};stream=foo"), 406, "application/json"),
    ] {
        let answer = accepting(&serve, uri, &accept).await;
        assert_eq!((answer.code, content_type(&answer)), (code, expected), "{uri} {accept}");
        if code == 406 {
            let status = if expected == PROTOBUF { object(&answer.body) } else { answer.json() };
            let types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
            let message = format!("only the following media types are accepted: {types}");
            assert_eq!((&status["message"], &status["reason"]), (&json!(message), &json!("NotAcceptable")));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_and_discovery_are_documents_in_protobuf_too() {
    let serve = serve(&world());
    for (uri, accept, code, kind) in [
        (format!("{MAPS}/none"), PROTOBUF, 404, "Status"),
        (
            format!("{MAPS}?fieldSelector=x=y"),
            "application/vnd.kubernetes.protobuf,application/json",
            400,
            "Status",
        ),
        (format!("{WIDGETS}/none"), "application/vnd.kubernetes.protobuf,application/json", 404, "Status"),
        ("/api/v1/nothing".to_owned(), PROTOBUF, 404, "Status"),
        ("/version".to_owned(), PROTOBUF, 406, "Status"),
        ("/api".to_owned(), PROTOBUF, 200, "APIVersions"),
        ("/apis".to_owned(), PROTOBUF, 200, "APIGroupList"),
        ("/api/v1".to_owned(), PROTOBUF, 200, "APIResourceList"),
    ] {
        let answer = accepting(&serve, &uri, accept).await;
        assert_eq!((answer.code, content_type(&answer)), (code, PROTOBUF), "{uri}");
        let document = object(&answer.body);
        assert_eq!(
            (&document["kind"], document["code"].as_u64()),
            (&json!(kind), (code != 200).then_some(code.into()))
        );
    }
    let all = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let whole = accepting(&serve, "/apis", &format!("{PROTOBUF}{all},application/json{all}")).await;
    assert_eq!(content_type(&whole), format!("{PROTOBUF}{all}"));
    assert_eq!(opened(&whole.body).1, "APIGroupDiscoveryList");
    for (uri, accept) in [
        ("/apis", format!("application/json{all},{PROTOBUF}{all}")),
        ("/version", format!("{PROTOBUF},application/json")),
        ("/openapi/v3/api/v1", format!("{PROTOBUF},application/json")),
        ("/api/v1", format!("application/json,{PROTOBUF}")),
    ] {
        let answer = accepting(&serve, uri, &accept).await;
        assert_eq!(answer.code, 200, "{uri}");
        assert!(content_type(&answer).starts_with("application/json"), "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_write_is_encoded_as_it_is_wanted() {
    let world = world();
    let serve = serve(&world);
    let resources = WithMessages(Served(Arc::clone(&world))).resources();
    let resource = resources.find("", "v1", "configmaps").unwrap();
    let map = &world.at("configmaps", 101)["shop/a"];
    let (parts, ()) = Request::builder().uri(MAPS).header("accept", PROTOBUF).body(()).unwrap().into_parts();
    let written = answer(serve.object(resource, map, &parts, StatusCode::CREATED)).await;
    assert_eq!((written.code, object(&written.body)["kind"].as_str()), (201, Some("ConfigMap")));

    let refusal = Serve::refusal(&Status::new(Reason::TooManyRequests, "slowly").retry_after(7));
    let refused = answer(serve.encoded(&parts.headers, refusal)).await;
    assert_eq!((refused.code, refused.headers["retry-after"].to_str().unwrap()), (429, "7"));
    assert_eq!(object(&refused.body)["message"], "slowly");
    let document = Serve::document(
        StatusCode::OK,
        &json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {} }),
    );
    let scale = answer(serve.encoded(&parts.headers, document)).await;
    assert_eq!(object(&scale.body), json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {} }));
}
