//! PATCH.

use http::StatusCode;
use serde_json::json;

use crate::fixture::{APPLY, CORE, MERGE, Server, config_map};

fn server() -> (Server, String) {
    let server = Server::new();
    server.post(&format!("{CORE}/configmaps"), config_map("a")).expect(201);
    (server, format!("{CORE}/configmaps/a"))
}

#[test]
fn a_patch_says_what_it_is() {
    let (server, path) = server();
    let answer = server.send("PATCH", &path, "application/json", "{}");
    assert_eq!(answer.body["details"], json!({}));
    server.refuses(answer, StatusCode::UNSUPPORTED_MEDIA_TYPE, "415: Unsupported Media Type");
    let json_patch = r#"[{"op":"replace","path":"/data/a","value":"2"}]"#;
    let patched = server.send("PATCH", &path, "application/json-patch+json", json_patch).expect(200);
    assert_eq!(patched["data"]["a"], "2");
    let strategic = r#"{"data":{"b":"3"}}"#;
    let patched =
        server.send("PATCH", &path, "application/strategic-merge-patch+json", strategic).expect(200);
    assert_eq!(patched["data"], json!({ "a": "2", "b": "3" }));
}

#[test]
fn a_patch_cannot_change_who_the_object_is() {
    let (server, path) = server();
    server.refuses(
        server.merge(&path, json!({ "metadata": { "name": "zz" } })),
        StatusCode::BAD_REQUEST,
        "the name of the object (zz) does not match the name on the URL (a)",
    );
    let answer = server.merge(&path, json!({ "metadata": { "uid": "1" } }));
    assert_eq!(
        answer.body["details"]["causes"].as_array().unwrap().len(),
        1,
        "as the real one: {}",
        answer.body
    );
    server.refuses(
        answer,
        StatusCode::UNPROCESSABLE_ENTITY,
        "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"1\": field is immutable",
    );
    server.refuses(
        server.merge(&format!("{CORE}/configmaps/nope"), json!({})),
        StatusCode::NOT_FOUND,
        "configmaps \"nope\" not found",
    );
    server.refuses(
        server.send("PATCH", &format!("{path}?force=true"), MERGE, "{}"),
        StatusCode::UNPROCESSABLE_ENTITY,
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
    );
}

#[test]
fn applying_creates_what_is_missing_and_needs_a_manager() {
    let (server, path) = server();
    server.refuses(
        server.apply(&path, json!({})),
        StatusCode::UNPROCESSABLE_ENTITY,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
    );
    server.refuses(
        server.apply(&format!("{path}?fieldManager=x"), json!({})),
        StatusCode::BAD_REQUEST,
        "invalid object type: /, Kind=",
    );
    server.refuses(
        server.apply(&format!("{path}?fieldManager=x"), config_map("zz")),
        StatusCode::BAD_REQUEST,
        "the name of the object (zz) does not match the name on the URL (a)",
    );
    let path = format!("{CORE}/configmaps/new?fieldManager=x");
    let made = server.apply(&path, config_map("new")).expect(201);
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "x");
    assert_eq!(made["metadata"]["managedFields"][0]["operation"], "Apply");
    let again = server.apply(&path, config_map("new")).expect(200);
    assert_eq!(again, made, "the same once more is no new version");
    let mut other = config_map("new");
    other["data"]["a"] = "2".into();
    let conflict = server.apply(&format!("{CORE}/configmaps/new?fieldManager=y"), other.clone());
    server.refuses(
        conflict,
        StatusCode::CONFLICT,
        "Apply failed with 1 conflict: conflict with \"x\": .data.a",
    );
    let forced = server.apply(&format!("{CORE}/configmaps/new?fieldManager=y&force=true"), other).expect(200);
    assert_eq!(forced["data"]["a"], "2");
}

#[test]
fn what_the_server_could_not_decode_is_refused_whatever_part_of_a_pod_it_is() {
    let server = Server::new();
    let pods = format!("{CORE}/pods");
    let spec = json!({ "containers": [{ "name": "c", "image": "x" }] });
    server.post(&pods, json!({ "metadata": { "name": "p" }, "spec": spec })).expect(201);
    for (path, patch) in [
        ("p", json!({ "spec": true })),
        ("p", json!({ "spec": { "containers": true } })),
        ("p", json!({ "spec": { "tolerations": 7 } })),
        ("p/status", json!({ "status": true })),
        ("p/status", json!({ "status": { "conditions": "none" } })),
    ] {
        assert_eq!(server.merge(&format!("{pods}/{path}"), patch.clone()).code, 422, "{path} {patch}");
    }
    for (path, body) in
        [("pods/p/binding", json!(true)), ("pods/p/binding", json!([])), ("pods/p/eviction", json!(7))]
    {
        assert_eq!(server.post(&format!("{CORE}/{path}"), body.clone()).code, 400, "{path} {body}");
    }
}

#[test]
fn what_is_applied_or_created_may_be_yaml() {
    let server = Server::new();
    let maps = format!("{CORE}/configmaps");
    let yaml = "# A comment\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: \"1\"\n  text: |\n    two\n    lines\n";
    let path = format!("{maps}/c?fieldManager=me");
    let made = server.send("PATCH", &path, APPLY, yaml).expect(201);
    assert_eq!(made["data"], json!({ "a": "1", "text": "two\nlines\n" }));
    let made = server.send("POST", &maps, "application/yaml", yaml.replace("name: c", "name: z")).expect(201);
    assert_eq!(made["data"]["a"], "1");
    let number = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  replicas: 3\n  paused: true\n  \
                  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: \
                  [{name: c, image: x}]}\n";
    let path = "/apis/apps/v1/namespaces/default/deployments/d?fieldManager=me";
    assert_eq!(server.send("PATCH", path, APPLY, number).expect(201)["spec"]["replicas"], 3);
}

#[test]
fn what_is_applied_and_cannot_be_read_is_a_bad_request_though_nothing_is_there() {
    let server = Server::new();
    let path = format!("{CORE}/configmaps/none?fieldManager=me");
    for body in ["a: [", "\u{0}", "", "a: b: c", &"[".repeat(100_000), &"- ".repeat(100_000)] {
        let answer = server.send("PATCH", &path, APPLY, body.to_owned());
        assert_eq!(answer.code, 400, "{:.20}: {}", body, answer.body);
        let answer = server.send("POST", &format!("{CORE}/configmaps"), "application/yaml", body.to_owned());
        assert_eq!(answer.code, 400, "{:.20}: {}", body, answer.body);
    }
}
