//! POST.

use http::StatusCode;
use serde_json::json;

use crate::fixture::{CORE, Server, config_map, with};

fn maps() -> String {
    format!("{CORE}/configmaps")
}

#[test]
fn a_created_object_has_what_only_the_server_says() {
    let server = Server::new();
    let made = server.post(&maps(), with(config_map("a"), "generation", 7));
    assert_eq!(made.code, 201);
    let version = made.version();
    let body = made.expect(201);
    assert_eq!(version, server.api.revision());
    assert_eq!(body["metadata"]["creationTimestamp"], "2026-11-21T11:54:29Z");
    assert_eq!(body["metadata"]["uid"].as_str().unwrap().len(), 36);
    assert_eq!(body["metadata"]["namespace"], "default");
    // A ConfigMap counts none, and the server leaves alone what is said.
    assert_eq!(body["metadata"]["generation"], 7);
    assert_eq!(
        body["metadata"]["managedFields"],
        json!([{
            "manager": "probe", "operation": "Update", "apiVersion": "v1", "time": "2026-11-21T11:54:29Z",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { ".": {}, "f:a": {} } },
        }])
    );
    assert_eq!(server.get(&format!("{}/a", maps())).expect(200), body);
}

#[test]
fn what_cannot_be_read_is_refused_in_the_real_words() {
    let server = Server::new();
    let refused = |body: &'static str, message: &str| {
        server.refuses(
            server.send("POST", &maps(), "application/json", body),
            StatusCode::BAD_REQUEST,
            message,
        );
    };
    refused(
        "",
        "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse \
         error: unexpected end of JSON input (<empty>)",
    );
    refused(
        r#"{"apiVersion":"apps/v1","kind":"ConfigMap","metadata":{"name":"x"}}"#,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for \
         version \"apps/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
    );
    let answer = server.send("POST", &maps(), "application/xml", "{}");
    server.refuses(
        answer,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    );
}

#[test]
fn names_are_checked_in_the_real_words() {
    let server = Server::new();
    server.refuses(
        server.post(&maps(), json!({ "metadata": {} })),
        StatusCode::UNPROCESSABLE_ENTITY,
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
    );
    let answer = server.post(&maps(), config_map("Foo_"));
    let why = "Invalid value: \"Foo_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
               characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
               regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    assert_eq!(
        answer.expect(422),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("ConfigMap \"Foo_\" is invalid: metadata.name: {why}"), "reason": "Invalid",
            "details": {
                "name": "Foo_", "kind": "ConfigMap",
                "causes": [{ "reason": "FieldValueInvalid", "message": why, "field": "metadata.name" }],
            },
            "code": 422,
        })
    );
    let long = "a".repeat(254);
    let message = format!(
        "ConfigMap {long:?} is invalid: metadata.name: Invalid value: {long:?}: must be no more than 253 characters"
    );
    server.refuses(server.post(&maps(), config_map(&long)), StatusCode::UNPROCESSABLE_ENTITY, &message);
    server.refuses(
        server.post("/api/v1/namespaces", json!({ "metadata": { "name": "a.b" } })),
        StatusCode::UNPROCESSABLE_ENTITY,
        "Namespace \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": must not contain dots",
    );
}

#[test]
fn labels_annotations_and_finalizers_are_checked_in_the_real_words() {
    let server = Server::new();
    let mut object = with(config_map("l"), "labels", json!({ "a b": "c d" }));
    object["metadata"]["annotations"] = json!({ "x y": "z" });
    object["metadata"]["finalizers"] = json!(["foo"]);
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                 regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let message = format!(
        "ConfigMap \"l\" is invalid: [metadata.labels: Invalid value: \"a b\": {name}, metadata.labels: Invalid \
         value: \"c d\": {value}, metadata.annotations: Invalid value: \"x y\": {name}, metadata.finalizers[0]: \
         Invalid value: \"foo\": name is neither a standard finalizer name nor is it fully qualified]"
    );
    server.refuses(server.post(&maps(), object), StatusCode::UNPROCESSABLE_ENTITY, &message);
}

#[test]
fn a_name_is_taken_once() {
    let server = Server::new();
    server.post(&maps(), config_map("a")).expect(201);
    assert_eq!(
        server.post(&maps(), config_map("a")).expect(409),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "configmaps \"a\" already exists", "reason": "AlreadyExists",
            "details": { "name": "a", "kind": "configmaps" }, "code": 409,
        })
    );
}

#[test]
fn a_name_is_generated_from_a_prefix() {
    let server = Server::new();
    let generated = |_| {
        let made = server.post(&maps(), json!({ "metadata": { "generateName": "a-" } })).expect(201);
        made["metadata"]["name"].as_str().unwrap().to_owned()
    };
    let names: std::collections::BTreeSet<String> = (0..20).map(generated).collect();
    assert_eq!(names.len(), 20);
    assert!(names.iter().all(|name| name.starts_with("a-") && name.len() == 7), "{names:?}");
}

#[test]
fn the_namespace_must_fit_and_the_version_must_be_unset() {
    let server = Server::new();
    server.refuses(
        server.post(&maps(), with(config_map("x"), "namespace", "other")),
        StatusCode::BAD_REQUEST,
        "the namespace of the provided object does not match the namespace sent on the request",
    );
    let answer = server.post(&maps(), with(config_map("x"), "resourceVersion", "5"));
    assert!(answer.body.get("reason").is_none() && answer.body.get("details").is_none(), "{}", answer.body);
    server.refuses(
        answer,
        StatusCode::INTERNAL_SERVER_ERROR,
        "resourceVersion should not be set on objects to be created",
    );
    server.refuses(
        server.post("/api/v1/namespaces/nope/configmaps", config_map("x")),
        StatusCode::NOT_FOUND,
        "namespaces \"nope\" not found",
    );
    for path in ["/api/v1/configmaps", "/api/v1/namespaces/default/configmaps/a"] {
        server.refuses(
            server.post(path, config_map("a")),
            StatusCode::METHOD_NOT_ALLOWED,
            "the server does not allow this method on the requested resource",
        );
    }
}

#[test]
fn a_dry_run_keeps_nothing() {
    let server = Server::new();
    let before = server.api.revision();
    let made = server.post(&format!("{}?dryRun=All", maps()), config_map("a")).expect(201);
    assert!(made["metadata"].get("resourceVersion").is_none(), "{made}");
    assert_eq!(server.api.revision(), before);
    assert_eq!(server.get(&format!("{}/a", maps())).code, 404);
    server.refuses(
        server.post(&format!("{}?dryRun=foo", maps()), config_map("a")),
        StatusCode::UNPROCESSABLE_ENTITY,
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"foo\"]: supported values: \"All\"",
    );
}

#[test]
fn unknown_fields_are_refused_told_or_ignored_as_asked() {
    let server = Server::new();
    let object = |name: &str| {
        let mut object = config_map(name);
        object["foo"] = 1.into();
        object
    };
    server.refuses(
        server.post(&format!("{}?fieldValidation=Strict", maps()), object("a")),
        StatusCode::BAD_REQUEST,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"foo\"",
    );
    let warned = server.post(&maps(), object("a"));
    assert_eq!(warned.warnings, [r#"299 - "unknown field \"foo\"""#]);
    assert!(warned.expect(201).get("foo").is_none());
    let ignored = server.post(&format!("{}?fieldValidation=Ignore", maps()), object("b"));
    assert_eq!(ignored.warnings, [""; 0]);
    assert!(ignored.expect(201).get("foo").is_none());
    server.refuses(
        server.post(&format!("{}?fieldValidation=foo", maps()), object("c")),
        StatusCode::UNPROCESSABLE_ENTITY,
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"foo\": supported values: \
         \"\", \"Ignore\", \"Strict\", \"Warn\"",
    );
}

#[test]
fn values_of_other_types_are_refused() {
    let server = Server::new();
    let answer = server.post(&maps(), json!({ "metadata": { "name": "t" }, "data": { "a": 1 } }));
    assert_eq!(answer.code, 400);
    let start = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal ";
    assert!(answer.message().starts_with(start), "{}", answer.message());
}

#[test]
fn a_field_that_is_there_twice_is_refused_or_told() {
    let server = Server::new();
    let twice = r#"{"metadata":{"name":"a2","name":"a4"}}"#;
    let answer =
        server.send("POST", &format!("{}?fieldValidation=Strict", maps()), "application/json", twice);
    server.refuses(
        answer,
        StatusCode::BAD_REQUEST,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: duplicate field \
         \"metadata.name\"",
    );
}
