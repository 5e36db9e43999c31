//! DELETE.

use http::StatusCode;
use serde_json::json;

use crate::fixture::{CORE, Server, config_map, with};

fn server() -> (Server, String) {
    let server = Server::new();
    server.post(&format!("{CORE}/configmaps"), config_map("a")).expect(201);
    (server, format!("{CORE}/configmaps/a"))
}

#[test]
fn a_deletion_is_answered_with_who_it_was_or_what_it_was() {
    let (server, path) = server();
    let uid = server.get(&path).expect(200)["metadata"]["uid"].clone();
    let before = server.api.revision();
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": { "name": "a", "kind": "configmaps", "uid": uid },
    });
    assert_eq!(server.delete(&format!("{path}?dryRun=All")).expect(200), status);
    assert_eq!(server.api.revision(), before);
    assert_eq!(server.delete(&path).expect(200), status);
    assert_eq!(server.events("v1", "configmaps", before), [("Deleted".into(), "a".into(), before + 1)]);
    server.refuses(server.delete(&path), StatusCode::NOT_FOUND, "configmaps \"a\" not found");

    let account = json!({ "metadata": { "name": "s" } });
    server.post(&format!("{CORE}/serviceaccounts"), account).expect(201);
    let last = server.delete(&format!("{CORE}/serviceaccounts/s"));
    assert_eq!(last.version(), server.api.revision());
    assert_eq!(last.expect(200)["kind"], "ServiceAccount");
}

#[test]
fn preconditions_are_checked_in_the_real_words() {
    let (server, path) = server();
    let object = server.get(&path).expect(200);
    let (uid, version) = (&object["metadata"]["uid"], &object["metadata"]["resourceVersion"]);
    let answer = server.delete_with(&path, json!({ "preconditions": { "uid": "abc" } }));
    assert_eq!(answer.body["details"], json!({ "name": "a", "kind": "ConfigMap" }));
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (abc) does not match the UID in \
         record ({}). The object might have been deleted and then recreated",
        uid.as_str().unwrap()
    );
    server.refuses(answer, StatusCode::CONFLICT, &message);
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the ResourceVersion in the precondition (1) does not match \
         the ResourceVersion in record ({}). The object might have been modified",
        version.as_str().unwrap()
    );
    let answer = server.delete_with(&path, json!({ "preconditions": { "resourceVersion": "1" } }));
    server.refuses(answer, StatusCode::CONFLICT, &message);
    server
        .delete_with(&path, json!({ "preconditions": { "uid": uid, "resourceVersion": version } }))
        .expect(200);
}

#[test]
fn options_are_checked_in_the_real_words() {
    let (server, path) = server();
    server.refuses(
        server.delete_with(&path, json!({ "propagationPolicy": "Foo" })),
        StatusCode::UNPROCESSABLE_ENTITY,
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Foo\": supported values: \
         \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
    );
    server.refuses(
        server.delete_with(&path, json!({ "propagationPolicy": "Orphan", "orphanDependents": true })),
        StatusCode::UNPROCESSABLE_ENTITY,
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and \
         deletionPropagation cannot be both set",
    );
}

#[test]
fn an_object_with_finalizers_goes_when_the_last_is_removed() {
    let (server, path) = server();
    let marked = server.delete_with(&path, json!({ "propagationPolicy": "Foreground" }));
    assert_eq!(marked.body["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(marked.body["metadata"]["deletionTimestamp"], "2026-11-21T11:54:29Z");
    assert_eq!(marked.body["metadata"]["deletionGracePeriodSeconds"], 0);
    let marked = marked.expect(200);
    assert_eq!(server.delete(&path).expect(200), marked, "a second deletion changes nothing");
    server.refuses(
        server.post(&format!("{CORE}/configmaps"), config_map("a")),
        StatusCode::CONFLICT,
        "object is being deleted: configmaps \"a\" already exists",
    );
    server.refuses(
        server.merge(&path, json!({ "metadata": { "finalizers": ["foregroundDeletion", "x.io/new"] } })),
        StatusCode::UNPROCESSABLE_ENTITY,
        "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
         being deleted, found new finalizers []string{\"x.io/new\"}",
    );
    let before = server.api.revision();
    let last = server.merge(&path, json!({ "metadata": { "finalizers": null } })).expect(200);
    assert_eq!(last["metadata"]["resourceVersion"], marked["metadata"]["resourceVersion"]);
    assert!(last["metadata"].get("finalizers").is_none());
    assert_eq!(server.get(&path).code, 404);
    assert_eq!(server.events("v1", "configmaps", before), [("Deleted".into(), "a".into(), before + 1)]);
}

#[test]
fn a_collection_is_deleted_as_far_as_it_is_selected() {
    let server = Server::new();
    let maps = format!("{CORE}/configmaps");
    for (name, tier) in [("a", "x"), ("b", "y"), ("c", "x")] {
        server.post(&maps, with(config_map(name), "labels", json!({ "tier": tier }))).expect(201);
    }
    let before = server.api.revision();
    let list = server.delete(&format!("{maps}?labelSelector=tier%3Dx")).expect(200);
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["metadata"]["resourceVersion"], before.to_string());
    let names: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "c"]);
    assert_eq!(server.get(&format!("{maps}/a")).code, 404);
    server.get(&format!("{maps}/b")).expect(200);
    server.refuses(
        server.delete("/api/v1/namespaces"),
        StatusCode::METHOD_NOT_ALLOWED,
        "the server does not allow this method on the requested resource",
    );
}

#[test]
fn a_pod_on_a_node_stays_for_its_grace_period_if_asked_for() {
    let server = Server::with(|options| options.graceful_pods = true);
    let pods = format!("{CORE}/pods");
    let pod = |name: &str| json!({ "metadata": { "name": name }, "spec": { "containers": [{ "name": "c", "image": "x" }] } });
    server.post(&pods, pod("free")).expect(201);
    server.delete(&format!("{pods}/free")).expect(200);
    assert_eq!(server.get(&format!("{pods}/free")).code, 404, "nobody runs it");

    server.post(&pods, pod("p")).expect(201);
    let binding = json!({ "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "n1" } });
    let done = server.post(&format!("{pods}/p/binding"), binding.clone()).expect(201);
    assert_eq!(
        done,
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 })
    );
    server.refuses(
        server.post(&format!("{pods}/p/binding"), binding),
        StatusCode::CONFLICT,
        "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"",
    );
    let path = format!("{pods}/p");
    let marked = server.delete_with(&path, json!({ "gracePeriodSeconds": 10 })).expect(200);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-11-21T11:54:39Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 10);
    assert_eq!(marked["metadata"]["generation"], 2);
    assert_eq!(server.delete(&path).expect(200), marked);
    let sooner = server.delete_with(&path, json!({ "gracePeriodSeconds": 5 })).expect(200);
    assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-11-21T11:54:34Z");
    assert_eq!(sooner["metadata"]["generation"], 2);
    server.delete(&format!("{path}?gracePeriodSeconds=0")).expect(200);
    assert_eq!(server.get(&path).code, 404);
}

#[test]
fn a_pod_is_told_to_end_before_it_is_gone() {
    let server = Server::new();
    let pods = format!("{CORE}/pods");
    let spec = json!({ "containers": [{ "name": "c", "image": "x" }], "nodeName": "n1" });
    server.post(&pods, json!({ "metadata": { "name": "p" }, "spec": spec })).expect(201);
    let before = server.api.revision();
    let last = server.delete(&format!("{pods}/p")).expect(200);
    assert_eq!(last["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(last["metadata"]["generation"], 2);
    let told = [("Modified", before + 1), ("Deleted", before + 2)];
    assert_eq!(server.events("v1", "pods", before), told.map(|(change, at)| (change.into(), "p".into(), at)));
}

#[test]
fn an_evicted_pod_is_deleted() {
    let server = Server::new();
    let pods = format!("{CORE}/pods");
    let spec = json!({ "containers": [{ "name": "c", "image": "x" }] });
    server.post(&pods, json!({ "metadata": { "name": "p" }, "spec": spec })).expect(201);
    server.refuses(
        server.post(&format!("{pods}/p/eviction"), json!({})),
        StatusCode::BAD_REQUEST,
        "name in URL does not match name in Eviction object",
    );
    server.post(&format!("{pods}/p/eviction"), json!({ "metadata": { "name": "p" } })).expect(201);
    assert_eq!(server.get(&format!("{pods}/p")).code, 404);
}

#[test]
fn no_period_is_too_long_to_be_counted() {
    let server = Server::with(|options| options.graceful_pods = true);
    let pods = format!("{CORE}/pods");
    for (at, period) in [i64::MAX, i64::MIN, i64::MAX / 1_000_000_000, -1].into_iter().enumerate() {
        let spec = json!({ "containers": [{ "name": "c", "image": "x" }], "nodeName": "n" });
        server.post(&pods, json!({ "metadata": { "name": format!("p{at}") }, "spec": spec })).expect(201);
        let marked =
            server.delete_with(&format!("{pods}/p{at}"), json!({ "gracePeriodSeconds": period })).expect(200);
        let end = marked["metadata"]["deletionTimestamp"].as_str().unwrap();
        assert!(end.ends_with('Z'), "{period}: {end}");
    }
    server.post(&format!("{CORE}/serviceaccounts"), json!({ "metadata": { "name": "s" } })).expect(201);
    let path = format!("{CORE}/serviceaccounts/s/token");
    for request in [json!({ "spec": { "expirationSeconds": i64::MAX } }), json!({ "spec": true })] {
        assert_eq!(server.post(&path, request.clone()).code, 201, "{request}");
    }
    assert_eq!(server.post(&path, json!([])).code, 400);
}
