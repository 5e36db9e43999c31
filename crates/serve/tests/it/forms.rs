//! The forms in which clients request responses.

use std::io::Read as _;
use std::sync::Arc;

use flate2::read::{GzDecoder, MultiGzDecoder};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use serve::{Catalog as _, Reason, Serve, Status};

use crate::client::{PODS, WIDGETS, Watch, accepting, answer, get, send, serve, serve_with};
use crate::model::{Served, World};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const LIST: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn world() -> Arc<World> {
    let world = World::new();
    world.put("configmaps", "shop/a", &[], json!({ "data": { "x": "1", "y": "2" } }));
    world.put("widgets", "shop/w", &[("is", "w")], json!({ "spec": { "color": "red" } }));
    world
}

const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_everything_but_the_rest() {
    let serve = serve(&world());
    let expected = json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata":
        { "name": "a", "namespace": "shop", "uid": "uid-shop-a", "resourceVersion": "101" } });
    let one = accepting(&serve, &format!("{MAPS}/a"), METADATA).await;
    assert_eq!(one.json(), expected);
    let list = accepting(&serve, MAPS, METADATA_LIST).await;
    assert_eq!(
        list.json(),
        json!({ "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
            "metadata": { "resourceVersion": "102" }, "items": [expected] })
    );
    // The real server's answer for an empty list.
    let none = accepting(&serve, PODS, METADATA_LIST).await;
    assert_eq!(none.json()["items"], Value::Null);
    let custom = accepting(&serve, WIDGETS, METADATA_LIST).await;
    assert_eq!(custom.json()["metadata"], json!({ "resourceVersion": "102" }));
    let mut watch = Watch::accepting(&serve, &format!("{MAPS}?{LIST}"), METADATA).await;
    assert_eq!(watch.next().await.unwrap(), json!({ "type": "ADDED", "object": expected }));
    assert_eq!(
        watch.next().await.unwrap()["object"],
        json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata":
            { "resourceVersion": "102", "annotations": { "k8s.io/initial-events-end": "true" } } })
    );
}

#[tokio::test(start_paused = true)]
async fn a_form_of_one_does_not_fit_many() {
    let serve = serve(&world());
    for (uri, accept, message) in [
        (
            MAPS.to_string(),
            METADATA,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
        ),
        (
            format!("{MAPS}/a"),
            METADATA_LIST,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
        (
            WIDGETS.to_string(),
            METADATA,
            "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)",
        ),
    ] {
        let refused = accepting(&serve, &uri, accept).await;
        assert_eq!((refused.code, refused.message().as_str()), (406, message));
        assert_eq!(refused.json()["reason"], "NotAcceptable");
    }
    let watch = Watch::accepting(&serve, &format!("{MAPS}?{LIST}"), METADATA_LIST).await;
    assert_eq!(watch.rest().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_table_has_a_row_for_each_object() {
    let serve = serve(&world());
    let list = accepting(&serve, &format!("{MAPS}?limit=1"), TABLE).await.json();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(list["metadata"], json!({ "resourceVersion": "102" }));
    let columns: Vec<&str> = list["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["Name", "Data", "Age"]);
    assert_eq!(list["rows"][0]["cells"].as_array().unwrap()[..2], [json!("a"), json!(2)]);
    assert_eq!(list["rows"][0]["object"]["kind"], "PartialObjectMetadata");

    let old = accepting(&serve, MAPS, "application/json;as=Table;v=v1beta1;g=meta.k8s.io").await.json();
    assert_eq!(old["apiVersion"], "meta.k8s.io/v1beta1");
    assert_eq!(old["rows"][0]["object"]["apiVersion"], "meta.k8s.io/v1beta1");

    for (include, expected) in
        [("None", Value::Null), ("Metadata", json!("PartialObjectMetadata")), ("Object", json!("ConfigMap"))]
    {
        let list = accepting(&serve, &format!("{MAPS}?includeObject={include}"), TABLE).await.json();
        assert_eq!(list["rows"][0]["object"]["kind"], expected, "{include}");
    }
    let refused = accepting(&serve, &format!("{MAPS}?includeObject=X"), TABLE).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (
            400,
            "Unable to convert to Table as requested: includeObject: Invalid value: \"X\": must be 'Metadata', 'Object', 'None', or empty"
        )
    );
    let one = accepting(&serve, &format!("{MAPS}/a"), TABLE).await.json();
    assert_eq!(
        (&one["metadata"]["resourceVersion"], one["rows"].as_array().unwrap().len()),
        (&json!("101"), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_watched_table_says_its_columns_once() {
    let world = world();
    let serve = serve(&world);
    let mut watch = Watch::accepting(&serve, &format!("{MAPS}?{LIST}"), TABLE).await;
    let first = watch.next().await.unwrap();
    assert_eq!(first["object"]["columnDefinitions"].as_array().unwrap().len(), 3);
    let end = watch.next().await.unwrap();
    assert_eq!(end["object"]["columnDefinitions"], Value::Null);
    assert_eq!(end["object"]["metadata"]["resourceVersion"], "102");
    let row = &end["object"]["rows"][0];
    assert_eq!(row["cells"], json!(["", 0, "<unknown>"]));
    assert_eq!(row["object"]["metadata"]["annotations"], json!({ "k8s.io/initial-events-end": "true" }));
    world.put("configmaps", "shop/b", &[], json!({}));
    assert_eq!(watch.next().await.unwrap()["object"]["rows"][0]["cells"][0], "b");
    world.compact(103);
    let mut expired = Watch::accepting(&serve, &format!("{MAPS}?watch=1&resourceVersion=101"), TABLE).await;
    assert_eq!(expired.told().await, "ERROR 410 too old resource version: 101 (103)");
}

#[tokio::test(start_paused = true)]
async fn the_best_of_what_a_client_accepts_is_chosen() {
    let serve = serve(&world());
    for (accept, kind) in [
        ("", "ConfigMapList"),
        ("*/*", "ConfigMapList"),
        ("application/*", "ConfigMapList"),
        ("application/json; charset=utf-8", "ConfigMapList"),
        ("application/json;stream=watch", "ConfigMapList"),
        ("application/vnd.kubernetes.protobuf,application/json", "ConfigMapList"),
        ("application/cbor, application/json;q=0.9", "ConfigMapList"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
        ("application/json;q=0.8,application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9", "Table"),
        (
            "application/json;as=Table;v=v9;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            "Table",
        ),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", "ConfigMapList"),
    ] {
        let list = accepting(&serve, MAPS, accept).await;
        assert_eq!(list.json()["kind"], kind, "{accept}");
        assert_eq!(list.headers["content-type"], "application/json", "{accept}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_server_has_is_not_acceptable() {
    const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let serve = serve(&world());
    let door = format!("406: Not Acceptable\n\nAvailable representations: {TYPES}");
    let streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    let inside = format!("only the following media types are accepted: {TYPES}");
    for (uri, accept, message, details) in [
        (MAPS.to_string(), "text/plain", format!("{door}{streams}"), json!({})),
        (format!("{MAPS}/a"), "text/plain", door, json!({})),
        (
            format!("{MAPS}?watch=1"),
            "application/json;as=Foo;v=v1;g=meta.k8s.io",
            inside.clone(),
            Value::Null,
        ),
        (MAPS.to_string(), "application/json;stream=foo", inside.clone(), Value::Null),
        (MAPS.to_string(), "application/vnd.kubernetes.protobuf", inside.clone(), Value::Null),
        (WIDGETS.to_string(), "text/plain", inside, Value::Null),
    ] {
        let refused = accepting(&serve, &uri, accept).await;
        assert_eq!((refused.code, refused.message()), (406, message), "{uri} {accept}");
        assert_eq!(refused.json()["details"], details, "{uri} {accept}");
        assert_eq!(refused.headers["content-type"], "application/json");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_to_writes_have_the_form_that_is_wanted() {
    let world = world();
    let serve = serve(&world);
    let resources = Served(Arc::clone(&world)).resources();
    let resource = resources.find("", "v1", "configmaps").unwrap();
    let object = &world.at("configmaps", 101)["shop/a"];
    for (accept, kind) in [
        ("application/json", "ConfigMap"),
        (TABLE, "Table"),
        (METADATA, "PartialObjectMetadata"),
        ("text/plain", "ConfigMap"),
    ] {
        let (parts, ()) =
            Request::builder().uri(MAPS).header("accept", accept).body(()).unwrap().into_parts();
        let written = answer(serve.object(resource, object, &parts, StatusCode::CREATED)).await;
        assert_eq!((written.code, &written.json()["kind"]), (201, &json!(kind)), "{accept}");
    }
    let refusal = Status::new(Reason::TooManyRequests, "slowly").retry_after(7);
    let refused = answer(Serve::refusal(&refusal)).await;
    assert_eq!((refused.code, refused.headers["retry-after"].to_str().unwrap()), (429, "7"));
}

fn large() -> Arc<World> {
    let world = World::new();
    let long = "x".repeat(10_000);
    for number in 0..40 {
        world.put("pods", &format!("shop/p{number:02}"), &[], json!({ "spec": { "nodeName": long } }));
    }
    world
}

#[tokio::test(start_paused = true)]
async fn large_answers_are_compressed_for_those_who_take_it() {
    let serve = serve(&large());
    let plain = get(&serve, PODS).await;
    assert!(plain.headers.get("content-encoding").is_none());
    assert_eq!(plain.names().len(), 40);
    for (uri, compressed) in
        [(PODS.to_string(), true), (format!("{PODS}?limit=5"), false), (format!("{PODS}/p01"), false)]
    {
        let response = send(&serve, Method::GET, &uri, &[("accept-encoding", "br, gzip")]).await;
        let answer = answer(response).await;
        assert_eq!(answer.headers.contains_key("content-encoding"), compressed, "{uri}");
        if compressed {
            assert_eq!(answer.headers["vary"], "Accept-Encoding");
            let mut text = Vec::new();
            GzDecoder::new(&answer.body[..]).read_to_end(&mut text).unwrap();
            assert_eq!(text, plain.body);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_list_comes_in_pieces_of_a_bounded_size() {
    let serve = serve(&large());
    let mut body = Box::pin(send(&serve, Method::GET, PODS, &[]).await.into_body());
    let mut pieces = Vec::new();
    while let Some(frame) = body.frame().await {
        pieces.push(frame.unwrap().into_data().unwrap().len());
    }
    assert!(pieces.len() >= 3 && pieces.iter().all(|piece| *piece <= 160 * 1024), "{pieces:?}");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_is_compressed_in_members_that_stand_alone() {
    let world = large();
    let serve = serve(&world);
    let gzip = [("accept-encoding", "gzip")];
    let response = send(&serve, Method::GET, &format!("{PODS}?{LIST}"), &gzip).await;
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let mut body = Box::pin(response.into_body());
    let mut events = 0;
    while events < 41 {
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let mut text = Vec::new();
        MultiGzDecoder::new(&piece[..]).read_to_end(&mut text).unwrap();
        assert_eq!(text.last(), Some(&b'\n'));
        events += text.iter().filter(|byte| **byte == b'\n').count();
    }
    world.delete("pods", "shop/p01");
    let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let mut text = String::new();
    GzDecoder::new(&piece[..]).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("{\"type\":\"DELETED\""), "{text:.40}");

    // Neither an ordinary watch nor an older server compresses events.
    let ordinary = send(&serve, Method::GET, &format!("{PODS}?watch=1&resourceVersion=120"), &gzip).await;
    assert!(ordinary.headers().get("content-encoding").is_none());
    let serve = serve_with(&world, |options| options.gzip_watch_members = false);
    let plain = send(&serve, Method::GET, &format!("{PODS}?{LIST}"), &gzip).await;
    assert!(plain.headers().get("content-encoding").is_none());
}
