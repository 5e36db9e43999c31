//! The life of namespaces.

use http::StatusCode;
use serde_json::json;

use crate::fixture::{Server, config_map, with};

const NAMESPACES: &str = "/api/v1/namespaces";

#[test]
fn the_usual_namespaces_are_there_and_stay() {
    let server = Server::new();
    let list = server.get(NAMESPACES).expect(200);
    let names: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let answer = server.delete(&format!("{NAMESPACES}/default"));
    let message = "namespaces \"default\" is forbidden: this namespace may not be deleted";
    server.refuses(answer, StatusCode::FORBIDDEN, message);
}

#[test]
fn a_namespace_is_active_and_labelled_with_its_name() {
    let server = Server::new();
    let made = server.post(NAMESPACES, json!({ "metadata": { "name": "shop" } }));
    assert_eq!(
        made.body["metadata"]["managedFields"][0]["fieldsV1"],
        json!({ "f:metadata": { "f:labels": { ".": {}, "f:kubernetes.io/metadata.name": {} } } })
    );
    assert_eq!(
        made.plain(),
        json!({
            "kind": "Namespace", "apiVersion": "v1",
            "metadata": { "name": "shop", "labels": { "kubernetes.io/metadata.name": "shop" } },
            "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" },
        })
    );
}

#[test]
fn a_deleted_namespace_takes_its_contents_along() {
    let server = Server::new();
    server.post(NAMESPACES, json!({ "metadata": { "name": "shop" } })).expect(201);
    let maps = format!("{NAMESPACES}/shop/configmaps");
    server.post(&maps, config_map("a")).expect(201);
    let held = with(config_map("held"), "finalizers", json!(["x.io/held"]));
    server.post(&maps, held).expect(201);
    let before = server.api.revision();

    let answer = server.delete(&format!("{NAMESPACES}/shop")).expect(200);
    assert_eq!((&answer["kind"], &answer["status"]["phase"]), (&json!("Namespace"), &json!("Terminating")));
    assert!(answer["metadata"].get("deletionGracePeriodSeconds").is_none(), "{answer}");
    assert_eq!(server.get(&format!("{maps}/a")).code, 404);
    let answer = server.post(&maps, config_map("x"));
    assert_eq!(
        answer.body["details"],
        json!({
            "name": "x", "kind": "configmaps",
            "causes": [{ "reason": "NamespaceTerminating", "message": "namespace shop is being terminated",
                "field": "metadata.namespace" }],
        })
    );
    let message = "configmaps \"x\" is forbidden: unable to create new content in namespace shop because it is being \
                   terminated";
    server.refuses(answer, StatusCode::FORBIDDEN, message);

    server.merge(&format!("{maps}/held"), json!({ "metadata": { "finalizers": null } })).expect(200);
    assert_eq!(server.get(&format!("{NAMESPACES}/shop")).code, 404);
    let events: Vec<_> = server.events("v1", "namespaces", before).into_iter().map(|event| event.0).collect();
    assert_eq!(events, ["Modified", "Deleted"]);
}

#[test]
fn without_its_controller_a_namespace_waits_to_be_finalized() {
    let server = Server::with(|options| options.empty_namespaces = false);
    server.post(NAMESPACES, json!({ "metadata": { "name": "p" } })).expect(201);
    server.post(NAMESPACES, json!({ "metadata": { "name": "kept" } })).expect(201);
    let path = format!("{NAMESPACES}/p");
    let marked = server.delete(&path).expect(200);
    assert_eq!(server.delete(&path).expect(200), marked);
    server.get(&path).expect(200);
    let finalized = json!({ "metadata": { "name": "kept" }, "spec": {} });
    let kept = server.put(&format!("{NAMESPACES}/kept/finalize"), finalized).expect(200);
    assert_eq!((&kept["spec"], &kept["status"]["phase"]), (&json!({}), &json!("Active")));
    let last = server
        .put(&format!("{path}/finalize"), json!({ "metadata": { "name": "p" }, "spec": {} }))
        .expect(200);
    assert_eq!(last["spec"], json!({}));
    assert_eq!(server.get(&path).code, 404);
}
