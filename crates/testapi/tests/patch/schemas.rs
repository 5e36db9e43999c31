//! Knowledge of types, and the server's words for objects that do not fit them.

use serde_json::{Value, json};
use testapi::schema;

fn deployment(path: &str, value: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "a", "image": "b"}]},
            },
        },
    });
    let (parent, name) = path.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        parent => parent[name] = value,
    }
    object
}

#[test]
fn what_cannot_be_decoded_is_refused_in_the_words_of_the_real_server() {
    let of = schema::builtin("apps", "v1", "Deployment").unwrap();
    assert_eq!(of.undecodable(&deployment("/spec/replicas", json!(2))), None);
    for (path, value, kind, field, wanted) in [
        ("/spec/replicas", json!("x"), "string", "DeploymentSpec.spec.replicas", "int32"),
        ("/spec/replicas", json!(1.5), "number 1.5", "DeploymentSpec.spec.replicas", "int32"),
        (
            "/spec/replicas",
            json!(99_999_999_999_i64),
            "number 99999999999",
            "DeploymentSpec.spec.replicas",
            "int32",
        ),
        ("/spec/paused", json!("x"), "string", "DeploymentSpec.spec.paused", "bool"),
        ("/spec/selector", json!(5), "number", "DeploymentSpec.spec.selector", "v1.LabelSelector"),
        ("/spec", json!([]), "array", "Deployment.spec", "v1.DeploymentSpec"),
        ("/metadata", json!("x"), "string", "Deployment.metadata", "v1.ObjectMeta"),
        ("/metadata/finalizers", json!("x"), "string", "ObjectMeta.metadata.finalizers", "[]string"),
        ("/metadata/labels", json!({"a": true}), "bool", "ObjectMeta.metadata.labels", "string"),
        (
            "/spec/template/metadata/labels",
            json!([]),
            "array",
            "ObjectMeta.spec.template.metadata.labels",
            "map[string]string",
        ),
        (
            "/spec/template/spec/containers",
            json!({}),
            "object",
            "PodSpec.spec.template.spec.containers",
            "[]v1.Container",
        ),
        (
            "/spec/template/spec/containers/0",
            json!("x"),
            "string",
            "PodSpec.spec.template.spec.containers",
            "v1.Container",
        ),
        (
            "/spec/template/spec/containers/0/args",
            json!([5]),
            "number",
            "Container.spec.template.spec.containers.args",
            "string",
        ),
        (
            "/spec/template/spec/containers/0/resources",
            json!({"limits": []}),
            "array",
            "ResourceRequirements.spec.template.spec.containers.resources.limits",
            "v1.ResourceList",
        ),
        (
            "/spec/strategy",
            json!({"rollingUpdate": {"maxSurge": {}}}),
            "object",
            "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge",
            "int32",
        ),
    ] {
        let expected = format!("json: cannot unmarshal {kind} into Go struct field {field} of type {wanted}");
        assert_eq!(of.undecodable(&deployment(path, value)), Some(expected), "{path}");
    }
    let quantity = json!({"limits": {"cpu": "x"}});
    assert_eq!(
        of.undecodable(&deployment("/spec/template/spec/containers/0/resources", quantity)).unwrap(),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[test]
fn of_a_custom_kind_only_metadata_have_to_be_decoded() {
    let of = schema::custom(&json!({"type": "object", "properties": {"spec": {"type": "object"}}}));
    assert_eq!(of.undecodable(&json!({"spec": 5})), None);
    assert_eq!(
        of.undecodable(&json!({"metadata": {"labels": {"a": 5}}})).unwrap(),
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    );
}

#[test]
fn unknown_fields_are_told_with_their_paths() {
    let of = schema::builtin("apps", "v1", "Deployment").unwrap();
    let mut object = deployment("/spec/template/spec/containers/0/imag", json!("c"));
    object["metadata"]["colour"] = json!("red");
    assert_eq!(of.unknown_fields(&object), ["metadata.colour", "spec.template.spec.containers[0].imag"]);
    assert_eq!(
        of.unknown_fields(&deployment("/metadata/labels", json!({"any": "name"}))),
        Vec::<String>::new()
    );
}

#[test]
fn structural_schemas_prune_unless_they_keep_and_fill_in_defaults() {
    let of = schema::custom(&json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer", "default": 3},
                "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"strict": {"type": "object", "properties": {"a": {"type": "integer"}}}}},
                "map": {"type": "object", "additionalProperties": {
                    "type": "object", "properties": {"a": {"type": "integer"}}}},
                "list": {"type": "array", "items": {
                    "type": "object", "properties": {"zone": {"type": "string", "default": "z"}}}},
                "template": {"type": "object", "x-kubernetes-embedded-resource": true},
                "nullable": {"type": "integer", "nullable": true, "default": 1},
            }},
        },
    }));
    let mut object = json!({
        "apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n", "odd": 1}, "odd": 1,
        "spec": {
            "odd": 1,
            "kept": {"any": {"thing": 1}, "strict": {"a": 1, "odd": 1}},
            "map": {"x": {"a": 1, "odd": 1}},
            "list": [{"odd": 1}],
            "template": {"kind": "Pod", "metadata": {"name": "p"}, "odd": 1},
            "nullable": null,
        },
    });
    assert_eq!(
        of.unknown_fields(&object),
        [
            "metadata.odd",
            "odd",
            "spec.kept.strict.odd",
            "spec.list[0].odd",
            "spec.map.x.odd",
            "spec.odd",
            "spec.template.odd"
        ]
    );
    of.prune(&mut object);
    of.fill_defaults(&mut object);
    assert_eq!(
        object,
        json!({
            "apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"},
            "spec": {
                "size": 3,
                "kept": {"any": {"thing": 1}, "strict": {"a": 1}},
                "map": {"x": {"a": 1}},
                "list": [{"zone": "z"}],
                "template": {"kind": "Pod", "metadata": {"name": "p"}},
                "nullable": null,
            },
        })
    );
}

#[test]
fn a_group_and_version_comes_back_as_openapi_with_all_that_it_refers_to() {
    let schemas = schema::openapi("apps", "v1").unwrap();
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        deployment["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["items"]["allOf"][0]["$ref"], "#/components/schemas/io.k8s.api.core.v1.Container");
    for (_, schema) in schemas.as_object().unwrap() {
        let text = schema.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.get(name).is_some(), "{name} is referred to and not there");
        }
    }
    assert_eq!(schema::openapi("no.such.group", "v1"), None);
}
