//! Custom resources.

use http::StatusCode;
use serde_json::{Value, json};
use testapi::Gvr;

use crate::fixture::{Server, with};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FOOS: &str = "/apis/x.io/v1/namespaces/default/foos";

fn definition() -> Value {
    let spec = json!({
        "type": "object", "required": ["replicas"],
        "properties": { "replicas": { "type": "integer" }, "mode": { "type": "string", "enum": ["a", "b"], "default": "a" } },
    });
    let status = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let scale = json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" });
    json!({
        "metadata": { "name": "foos.x.io" },
        "spec": {
            "group": "x.io", "scope": "Namespaced", "names": { "plural": "foos", "kind": "Foo" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {}, "scale": scale },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec, "status": status } } },
            }],
        },
    })
}

fn foo(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "x.io/v1", "kind": "Foo", "metadata": { "name": name }, "spec": spec })
}

fn server() -> Server {
    let server = Server::new();
    server.post(DEFINITIONS, definition()).expect(201);
    server
}

#[test]
fn a_definition_is_established_at_once() {
    let server = Server::new();
    assert_eq!(server.get(FOOS).code, 404);
    let before = server.api.revision();
    let made = server.post(DEFINITIONS, definition()).expect(201);
    assert_eq!(made["spec"]["names"]["listKind"], "FooList");
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    let now = server.get(&format!("{DEFINITIONS}/foos.x.io")).expect(200);
    let conditions: Vec<_> = now["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["type"], &one["status"]))
        .collect();
    assert_eq!(
        conditions,
        [(&json!("NamesAccepted"), &json!("True")), (&json!("Established"), &json!("True"))]
    );
    assert_eq!(
        (&now["metadata"]["generation"], &now["status"]["acceptedNames"]["kind"]),
        (&json!(1), &json!("Foo"))
    );
    let events: Vec<_> = server
        .events("apiextensions.k8s.io/v1", "customresourcedefinitions", before)
        .into_iter()
        .map(|event| event.0)
        .collect();
    assert_eq!(events, ["Added", "Modified"]);
    assert_eq!(server.get(FOOS).expect(200)["kind"], "FooList");
}

#[test]
fn a_definition_is_checked_in_the_real_words() {
    let server = Server::new();
    let mut wrong = definition();
    wrong["metadata"]["name"] = "bars.x.io".into();
    server.refuses(
        server.post(DEFINITIONS, wrong),
        StatusCode::UNPROCESSABLE_ENTITY,
        "CustomResourceDefinition.apiextensions.k8s.io \"bars.x.io\" is invalid: metadata.name: Invalid value: \
         \"bars.x.io\": must be spec.names.plural+\".\"+spec.group",
    );
    let mut wrong = definition();
    wrong["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    server.refuses(
        server.post(DEFINITIONS, wrong),
        StatusCode::UNPROCESSABLE_ENTITY,
        "CustomResourceDefinition.apiextensions.k8s.io \"foos.x.io\" is invalid: \
         spec.versions[0].schema.openAPIV3Schema: Required value",
    );
}

#[test]
fn custom_objects_are_pruned_defaulted_and_checked() {
    let server = server();
    let made = server.post(FOOS, foo("a", json!({ "replicas": 1, "zzz": 1 })));
    assert_eq!(made.warnings, [r#"299 - "unknown field \"spec.zzz\"""#]);
    let made = made.expect(201);
    assert_eq!(
        (&made["spec"], &made["metadata"]["generation"]),
        (&json!({ "mode": "a", "replicas": 1 }), &json!(1))
    );
    server.refuses(
        server.post(&format!("{FOOS}?fieldValidation=Strict"), foo("b", json!({ "replicas": 1, "zzz": 1 }))),
        StatusCode::BAD_REQUEST,
        "Foo in version \"v1\" cannot be handled as a Foo: strict decoding error: unknown field \"spec.zzz\"",
    );
    let answer = server.post(FOOS, foo("c", json!({})));
    assert_eq!(answer.body["details"]["causes"][0]["field"], "spec.replicas");
    server.refuses(
        answer,
        StatusCode::UNPROCESSABLE_ENTITY,
        "Foo.x.io \"c\" is invalid: spec.replicas: Required value",
    );
    server.refuses(
        server.post(FOOS, foo("b", json!({ "replicas": 1, "mode": "c" }))),
        StatusCode::UNPROCESSABLE_ENTITY,
        "Foo.x.io \"b\" is invalid: spec.mode: Unsupported value: \"c\": supported values: \"a\", \"b\"",
    );
    let answer =
        server.post(FOOS, json!({ "apiVersion": "x.io/v2", "kind": "Foo", "metadata": { "name": "c" } }));
    let message = "the API version in the data (x.io/v2) does not match the expected API version (x.io/v1)";
    server.refuses(answer, StatusCode::BAD_REQUEST, message);
    let answer =
        server.post(FOOS, json!({ "apiVersion": "x.io/v1", "kind": "Bar", "metadata": { "name": "c" } }));
    let message = "Bar.x.io \"c\" is invalid: kind: Invalid value: \"Bar\": must be Foo";
    server.refuses(answer, StatusCode::UNPROCESSABLE_ENTITY, message);
}

#[test]
fn custom_objects_have_status_and_scale_apart() {
    let server = server();
    let path = format!("{FOOS}/a");
    let object = server.post(FOOS, foo("a", json!({ "replicas": 1 }))).expect(201);
    server.refuses(
        server.put(&path, foo("a", json!({ "replicas": 2 }))),
        StatusCode::UNPROCESSABLE_ENTITY,
        "foos.x.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
    );
    let mut changed = object;
    changed["spec"]["replicas"] = 3.into();
    changed["status"] = json!({ "any": 1 });
    let mut object = server.put(&path, changed).expect(200);
    assert_eq!((&object["metadata"]["generation"], object.get("status")), (&json!(2), None));
    object["status"] = json!({ "replicas": 4 });
    let object = with(object, "labels", json!({ "q": "r" }));
    let told = server.put(&format!("{path}/status"), object).expect(200);
    assert_eq!((&told["metadata"]["generation"], &told["status"]), (&json!(2), &json!({ "replicas": 4 })));
    assert!(told["metadata"].get("labels").is_none(), "a status brings no labels along: {told}");

    let scale = server.merge(&format!("{path}/scale"), json!({ "spec": { "replicas": 7 } })).expect(200);
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["replicas"]), (&json!(7), &json!(4)));
    assert_eq!(server.get(&path).expect(200)["metadata"]["generation"], 3);
    server.refuses(
        server.send("PATCH", &path, "application/strategic-merge-patch+json", "{}"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    );
}

#[test]
fn a_deleted_definition_takes_its_objects_along() {
    let server = server();
    server.post(FOOS, foo("a", json!({ "replicas": 1 }))).expect(201);
    let held = with(foo("held", json!({ "replicas": 1 })), "finalizers", json!(["x.io/held"]));
    server.post(FOOS, held).expect(201);
    let answer = server.delete(&format!("{DEFINITIONS}/foos.x.io")).expect(200);
    let cleanup = "customresourcecleanup.apiextensions.k8s.io";
    assert_eq!(answer["metadata"]["finalizers"], json!([cleanup]));
    assert_eq!(server.get(&format!("{FOOS}/a")).code, 404);
    let collection = server.api.collection(&Gvr::new("x.io/v1", "foos")).unwrap();
    let mut events = collection.events(server.api.revision()).unwrap();
    server.merge(&format!("{FOOS}/held"), json!({ "metadata": { "finalizers": null } })).expect(200);
    assert_eq!(server.get(&format!("{DEFINITIONS}/foos.x.io")).code, 404);
    assert_eq!(server.get(FOOS).code, 404);
    let ended = futures_util::FutureExt::now_or_never(events.next()).unwrap();
    assert!(matches!(ended, Err(serve::CollectionError::Gone)), "{ended:?}");
}

#[test]
fn several_versions_are_the_same_objects() {
    let server = Server::new();
    let mut both = definition();
    let mut other = both["spec"]["versions"][0].clone();
    other["name"] = "v1beta1".into();
    other["storage"] = false.into();
    both["spec"]["versions"].as_array_mut().unwrap().push(other);
    server.post(DEFINITIONS, both).expect(201);
    server.post(FOOS, foo("a", json!({ "replicas": 1 }))).expect(201);
    let path = "/apis/x.io/v1beta1/namespaces/default/foos/a";
    let old = server.get(path).expect(200);
    assert_eq!((&old["apiVersion"], &old["spec"]["replicas"]), (&json!("x.io/v1beta1"), &json!(1)));
    let old = server.merge(path, json!({ "spec": { "replicas": 2 } })).expect(200);
    assert_eq!((&old["apiVersion"], &old["spec"]["replicas"]), (&json!("x.io/v1beta1"), &json!(2)));
}

/// Not every fraction is read as it was written.
#[test]
fn an_object_that_is_written_as_it_was_read_stays_as_it_is_whatever_its_numbers_are() {
    let server = server();
    let foos = Gvr::new("x.io/v1", "foos");
    let mut made = server.post(FOOS, foo("a", json!({ "replicas": 1 }))).expect(201);
    let mut random = fastrand::Rng::with_seed(1);
    let numbers = (0..100).map(|_| f64::from_bits(random.u64(..))).filter(|number| number.is_finite());
    made["status"] = json!({ "numbers": numbers.collect::<Vec<_>>() });
    server.api.update_status(&foos, made).unwrap();
    let read = server.api.get(&foos, "default", "a").unwrap();
    assert_eq!(server.api.update_status(&foos, read.clone()).unwrap(), read);
}

#[test]
fn a_definition_whose_parts_are_no_objects_is_refused() {
    let server = server();
    let path = format!("{DEFINITIONS}/{}", definition()["metadata"]["name"].as_str().unwrap());
    for part in ["spec", "status", "metadata"] {
        let patch = json!({ part: true });
        assert!((400..500).contains(&server.merge(&path, patch.clone()).code), "{patch}");
        let patch = json!([{ "op": "add", "path": format!("/{part}"), "value": true }]).to_string();
        let code = server.send("PATCH", &path, "application/json-patch+json", patch).code;
        assert!((400..500).contains(&code), "{part}: {code}");
    }
    assert_eq!(server.merge(&path, json!({ "spec": true })).code, 422);
    assert_eq!(server.merge(&format!("{path}/status"), json!({ "status": true })).code, 422);
    assert_eq!(
        server.merge(&format!("{path}/status"), json!({ "status": { "conditions": null } })).code,
        200
    );
    assert_eq!(server.delete(&path).code, 200);
}
