//! Facts that kubediff learns of a server before it shows anything: its Secrets' values, and its schemas (issue 12, items 1
//! and 4).

use serde_json::{Value, json};
use testapi::{Gvr, TestApi};

use crate::session::Session;

fn gate(routes: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gate",
        "metadata": {"name": "g", "namespace": "default"}, "spec": {"routes": routes}})
}

/// Routes with these keys.
fn definition(keys: &[&str]) -> Value {
    let routes = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        "items": {"type": "object", "required": ["host", "path"], "properties": {
            "host": {"type": "string"}, "path": {"type": "string"}, "weight": {"type": "integer"}}}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"routes": routes}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gates.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gates", "kind": "Gate"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_compared_as_the_server_says() {
    let server = TestApi::builder().start().await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), server.kubeconfig()).unwrap();
    let api = server.api();
    api.create(
        &Gvr::new("apiextensions.k8s.io/v1", "customresourcedefinitions"),
        definition(&["host", "path"]),
    )
    .unwrap();
    let gates = Gvr::new("example.com/v1", "gates");
    let route = |host: &str, path: &str, weight: u32| json!({"host": host, "path": path, "weight": weight});
    api.create(&gates, gate(&json!([route("a.io", "/", 1), route("a.io", "/x", 2), route("b.io", "/", 3)])))
        .unwrap();

    let mut watch = Session::against(file.path(), &["gates"]);
    let mut changed = api.get(&gates, "default", "g").unwrap();
    changed["spec"]["routes"] =
        json!([route("b.io", "/", 30), route("c.io", "/x", 2), route("a.io", "/", 10)]);
    api.update(&gates, changed).unwrap();
    watch.line(&["~ gates.example.com default/g"]);
    watch.line(&["- spec.routes[a.io,/x]:"]);
    watch.line(&["~ spec.routes[b.io,/].weight: 3 → 30"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_secrets_that_were_there_before_are_recognised() {
    let server = TestApi::builder().start().await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), server.kubeconfig()).unwrap();
    let api = server.api();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"pw": "correct horse"}});
    api.create(&Gvr::new("v1", "secrets"), secret).unwrap();

    let mut watch = Session::against(file.path(), &["cm,secrets", "-o", "json"]);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default",
        "labels": {"correct": "yes"}}, "data": {"url": "pg://app:correct horse@db"}});
    api.create(&Gvr::new("v1", "configmaps"), map).unwrap();
    let line = watch.line(&["\"c\"", "added"]);
    assert!(!line.contains("horse"), "{line}");
    let changed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"},
        "data": {"url": "pg://app:correct%20horse@db"}});
    api.update(&Gvr::new("v1", "configmaps"), changed).unwrap();
    let line = watch.line(&["\"c\"", "updated"]);
    assert!(!line.contains("horse"), "{line}");
    server.stop().await;
}
