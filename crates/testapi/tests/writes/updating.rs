//! PUT.

use http::StatusCode;
use serde_json::json;

use crate::fixture::{CORE, Server, config_map, with};

fn server() -> (Server, String) {
    let server = Server::new();
    server.post(&format!("{CORE}/configmaps"), config_map("a")).expect(201);
    (server, format!("{CORE}/configmaps/a"))
}

#[test]
fn an_update_keeps_what_only_the_server_says() {
    let (server, path) = server();
    let before = server.get(&path).expect(200);
    let mut object = with(config_map("a"), "creationTimestamp", "2001-01-01T00:00:00Z");
    object["data"]["a"] = "2".into();
    let after = server.put(&path, object).expect(200);
    for name in ["uid", "creationTimestamp", "namespace", "name"] {
        assert_eq!(after["metadata"][name], before["metadata"][name]);
    }
    assert_ne!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    assert_eq!(after["data"]["a"], "2");
}

#[test]
fn an_update_to_the_same_is_no_new_version() {
    let (server, path) = server();
    let (before, revision) = (server.get(&path).expect(200), server.api.revision());
    assert_eq!(server.put(&path, config_map("a")).expect(200), before);
    assert_eq!(server.merge(&path, json!({})).expect(200), before);
    assert_eq!(server.api.revision(), revision);
}

#[test]
fn an_update_of_another_version_is_a_conflict() {
    let (server, path) = server();
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
                   changes to the latest version and try again";
    let answer = server.put(&path, with(config_map("a"), "resourceVersion", "1"));
    assert_eq!(answer.body["details"], json!({ "name": "a", "kind": "configmaps" }));
    server.refuses(answer, StatusCode::CONFLICT, message);
    server.refuses(
        server.merge(&path, json!({ "metadata": { "resourceVersion": "1" } })),
        StatusCode::CONFLICT,
        message,
    );
    let version = server.api.revision().to_string();
    server.put(&path, with(config_map("a"), "resourceVersion", version)).expect(200);
    server.refuses(
        server.put(&path, with(config_map("a"), "resourceVersion", "abc")),
        StatusCode::INTERNAL_SERVER_ERROR,
        "strconv.ParseUint: parsing \"abc\": invalid syntax",
    );
}

#[test]
fn an_update_must_name_the_object_of_its_path() {
    let (server, path) = server();
    server.refuses(
        server.put(&path, config_map("b")),
        StatusCode::BAD_REQUEST,
        "the name of the object (b) does not match the name on the URL (a)",
    );
    server.refuses(
        server.put(&path, config_map("")),
        StatusCode::BAD_REQUEST,
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    );
    server.refuses(
        server.put(&path, with(config_map("a"), "namespace", "other")),
        StatusCode::BAD_REQUEST,
        "the namespace of the provided object does not match the namespace sent on the request",
    );
    server.refuses(
        server.put(&format!("{CORE}/configmaps/nope"), config_map("nope")),
        StatusCode::NOT_FOUND,
        "configmaps \"nope\" not found",
    );
    let uid = server.get(&path).expect(200)["metadata"]["uid"].as_str().unwrap().to_owned();
    let message = format!(
        "Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4, Key: \
         /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: abc, UID in object meta: {uid}"
    );
    server.refuses(server.put(&path, with(config_map("a"), "uid", "abc")), StatusCode::CONFLICT, &message);
}

#[test]
fn some_kinds_are_created_by_an_update() {
    let server = Server::new();
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "me" } });
    server.put(path, lease.clone()).expect(201);
    let answer = server.put(path, lease);
    server.refuses(
        answer,
        StatusCode::UNPROCESSABLE_ENTITY,
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
         for an update",
    );
}

#[test]
fn generations_count_what_is_wanted_and_status_is_apart() {
    let server = Server::new();
    let (path, name) = ("/apis/apps/v1/namespaces/default/deployments", "d");
    let template = json!({
        "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "x" }] },
    });
    let deployment = json!({
        "metadata": { "name": name },
        "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": template },
        "status": { "replicas": 9 },
    });
    let made = server.post(path, deployment).expect(201);
    assert_eq!((&made["metadata"]["generation"], &made["status"]), (&json!(1), &json!({})));
    let path = format!("{path}/{name}");

    let patch = json!({ "spec": { "replicas": 3 }, "status": { "replicas": 9 } });
    let scaled = server.merge(&path, patch).expect(200);
    assert_eq!((&scaled["metadata"]["generation"], &scaled["status"]), (&json!(2), &json!({})));

    let patch = json!({
        "spec": { "replicas": 5 }, "status": { "replicas": 3 },
        "metadata": { "labels": { "u": "v" }, "annotations": { "u": "v" } },
    });
    let told = server.merge(&format!("{path}/status"), patch).expect(200);
    assert_eq!((&told["metadata"]["generation"], &told["status"]["replicas"]), (&json!(2), &json!(3)));
    assert_eq!((&told["spec"]["replicas"], told["metadata"].get("labels")), (&json!(3), None));
    assert_eq!(told["metadata"]["annotations"]["u"], "v");

    let labelled = server.merge(&path, json!({ "metadata": { "labels": { "x": "y" } } })).expect(200);
    assert_eq!(
        (&labelled["metadata"]["generation"], &labelled["status"]["replicas"]),
        (&json!(2), &json!(3))
    );
    let annotated = server.merge(&path, json!({ "metadata": { "annotations": { "x": "y" } } })).expect(200);
    assert_eq!(annotated["metadata"]["generation"], 3);

    server.refuses(
        server.merge(&path, json!({ "spec": { "selector": { "matchLabels": { "a": "c" } } } })),
        StatusCode::UNPROCESSABLE_ENTITY,
        "Deployment.apps \"d\" is invalid: [spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` \
         does not match template `labels`, spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is \
         immutable]",
    );
}

/// apimachinery sorts a selector by its keys, and the values of each.
#[test]
fn the_selector_of_a_scale_is_sorted_by_key() {
    let server = Server::new();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let expressions = json!([
        { "key": "z", "operator": "DoesNotExist" },
        { "key": "b", "operator": "In", "values": ["y", "x"] },
    ]);
    let template = json!({
        "metadata": { "labels": { "c": "d", "b": "x" } }, "spec": { "containers": [{ "name": "c", "image": "x" }] },
    });
    let selector = json!({ "matchLabels": { "c": "d" }, "matchExpressions": expressions });
    let spec = json!({ "selector": selector, "template": template });
    server.post(path, json!({ "metadata": { "name": "d" }, "spec": spec })).expect(201);
    let scale = server.get(&format!("{path}/d/scale")).plain();
    assert_eq!(scale["status"]["selector"], "b in (x,y),c=d,!z");
}

#[test]
fn a_scale_is_read_and_written() {
    let server = Server::new();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({
        "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "x" }] },
    });
    let spec = json!({ "selector": { "matchLabels": { "a": "b" } }, "template": template });
    server.post(path, json!({ "metadata": { "name": "d" }, "spec": spec })).expect(201);
    let path = format!("{path}/d/scale");
    let scale = server.get(&path);
    assert_eq!(
        scale.plain(),
        json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": { "name": "d" },
            "spec": { "replicas": 1 }, "status": { "replicas": 0, "selector": "a=b" },
        })
    );
    assert_eq!(server.merge(&path, json!({ "spec": { "replicas": 3 } })).expect(200)["spec"]["replicas"], 3);
    assert_eq!(server.merge(&path, json!({ "spec": { "replicas": 0 } })).expect(200)["spec"], json!({}));
    let wanted = json!({ "metadata": { "name": "d" }, "spec": { "replicas": 2 } });
    assert_eq!(server.put(&path, wanted.clone()).expect(200)["spec"]["replicas"], 2);
    server.refuses(
        server.put(&path, with(wanted, "resourceVersion", "1")),
        StatusCode::CONFLICT,
        "Operation cannot be fulfilled on deployments.apps \"d\": the object has been modified; please apply your \
         changes to the latest version and try again",
    );
    let nope = "/apis/apps/v1/namespaces/default/deployments/nope/scale";
    let answer = server.put(nope, json!({ "metadata": { "name": "nope" }, "spec": {} }));
    server.refuses(answer, StatusCode::NOT_FOUND, "deployments.apps \"nope\" not found");
}

#[test]
fn what_is_immutable_stays() {
    let server = Server::new();
    let mut object = config_map("im");
    object["immutable"] = true.into();
    server.post(&format!("{CORE}/configmaps"), object).expect(201);
    let path = format!("{CORE}/configmaps/im");
    server.refuses(
        server.merge(&path, json!({ "data": { "a": "2" } })),
        StatusCode::UNPROCESSABLE_ENTITY,
        "ConfigMap \"im\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
    );
    server.refuses(
        server.merge(&path, json!({ "immutable": false })),
        StatusCode::UNPROCESSABLE_ENTITY,
        "ConfigMap \"im\" is invalid: immutable: Forbidden: field is immutable when `immutable` is set",
    );
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } });
    let made = server.post(&format!("{CORE}/secrets"), secret).plain();
    assert_eq!(
        made,
        json!({ "kind": "Secret", "apiVersion": "v1", "metadata": { "name": "s" }, "data": { "a": "Yg==" },
            "type": "Opaque" })
    );
    server.refuses(
        server.merge(&format!("{CORE}/secrets/s"), json!({ "type": "foo" })),
        StatusCode::UNPROCESSABLE_ENTITY,
        "Secret \"s\" is invalid: type: Invalid value: \"foo\": field is immutable",
    );
}
