//! Writes by clients that speak protobuf alone.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use testapi::schema::{from_protobuf, to_protobuf};
use testapi::{Api, Gvr};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn ask(api: &Api, method: Method, path: &str, accept: &str, body: Vec<u8>) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("accept", accept);
    let request = request.header("content-type", PROTOBUF).body(Bytes::from(body)).unwrap();
    let (head, body) = api.handle(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let document = match head.headers["content-type"].to_str().unwrap() {
        PROTOBUF => from_protobuf(&body).unwrap(),
        _ => serde_json::from_slice(&body).unwrap(),
    };
    (head.status.as_u16(), document)
}

fn map(name: &str) -> Vec<u8> {
    let map = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": { "name": name }, "data": { "x": name } });
    to_protobuf(&map).unwrap()
}

#[tokio::test]
async fn objects_go_back_and_forth_in_protobuf() {
    let api = Api::default();
    for name in ["a", "b", "c"] {
        let (code, made) = ask(&api, Method::POST, MAPS, PROTOBUF, map(name)).await;
        assert_eq!((code, &made["kind"], &made["data"]["x"]), (201, &json!("ConfigMap"), &json!(name)));
        assert_eq!(made, api.get(&Gvr::new("v1", "configmaps"), "default", name).unwrap());
    }
    let (code, taken) = ask(&api, Method::POST, MAPS, PROTOBUF, map("a")).await;
    assert_eq!((code, &taken["kind"], &taken["reason"]), (409, &json!("Status"), &json!("AlreadyExists")));
    let options = to_protobuf(&json!({ "kind": "DeleteOptions", "apiVersion": "v1" })).unwrap();
    let (code, gone) = ask(&api, Method::DELETE, &format!("{MAPS}/a"), PROTOBUF, options.clone()).await;
    assert_eq!((code, &gone["status"], &gone["details"]["name"]), (200, &json!("Success"), &json!("a")));
    let (code, list) = ask(&api, Method::DELETE, MAPS, PROTOBUF, options).await;
    let names: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!((code, &list["kind"], names), (200, &json!("ConfigMapList"), vec![&json!("b"), &json!("c")]));
    let (_, rest) = ask(&api, Method::GET, MAPS, PROTOBUF, Vec::new()).await;
    assert_eq!((&rest["kind"], rest.get("items")), (&json!("ConfigMapList"), None));
}

#[tokio::test]
async fn who_accepts_nothing_that_there_is_writes_nothing() {
    let api = Api::default();
    let (code, refused) = ask(&api, Method::POST, MAPS, "text/plain", map("a")).await;
    assert_eq!((code, &refused["reason"]), (406, &json!("NotAcceptable")));
    assert!(api.list(&Gvr::new("v1", "configmaps"), Some("default")).unwrap().is_empty());
}
