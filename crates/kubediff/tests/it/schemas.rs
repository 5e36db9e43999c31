//! Lists as the server's schemas say (issue 12, item 4).

use bytes::Bytes;
use expect_test::{Expect, expect};
use http::Request;
use kubediff::{Edit, Gvk, Schemas, diff, diff_as, patch};
use serde_json::{Value, json};
use testapi::{Api, ApiOptions, Gvr};

use crate::random;
use crate::support::seeded;

fn definition(list: &Value) -> Value {
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"routes": list}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gates.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gates", "kind": "Gate"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

/// Routes by host and path; the path is `/` if it is absent.
fn routes() -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["host", "path"],
        "items": {"type": "object", "required": ["host"], "properties": {
            "host": {"type": "string"}, "path": {"type": "string", "default": "/"}, "weight": {"type": "integer"},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}})
}

/// The documents that a server with this definition has.
async fn schemas(list: &Value) -> Schemas {
    let api = Api::new(ApiOptions::default());
    let definitions = Gvr::new("apiextensions.k8s.io/v1", "customresourcedefinitions");
    api.create(&definitions, definition(list)).unwrap();
    let schemas = Schemas::default();
    for (group, version, path) in
        [("", "v1", "api/v1"), ("apps", "v1", "apis/apps/v1"), ("example.com", "v1", "apis/example.com/v1")]
    {
        let request = Request::get(format!("/openapi/v3/{path}")).body(Bytes::new()).unwrap();
        let answer = http_body_util::BodyExt::collect(api.handle(request).await.into_body()).await.unwrap();
        schemas.load(group, version, &answer.to_bytes()).unwrap();
    }
    schemas
}

#[track_caller]
fn check(schemas: &Schemas, gvk: &Gvk, old: &Value, new: &Value, expected: &Expect) {
    let schema = schemas.of(gvk).unwrap();
    let mut text = String::new();
    for difference in diff_as(&schema, old, new) {
        let path = difference.path;
        text += &match difference.edit {
            Edit::Added { new } => format!("+ {path} = {new}\n"),
            Edit::Removed { old } => format!("- {path} = {old}\n"),
            Edit::Changed { old, new } => format!("~ {path}: {old} -> {new}\n"),
            Edit::Text { lines } => format!("~ {path}:\n{lines}"),
            Edit::Reordered { old, new, matters } => {
                format!("~ {path}: order {old:?} -> {new:?}{}\n", if matters { "" } else { " (meaningless)" })
            }
        };
    }
    expected.assert_eq(&text);
}

fn gate(routes: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gate", "metadata": {"name": "g"}, "spec": {"routes": routes}})
}

#[tokio::test]
async fn a_custom_list_by_several_keys_together() {
    let schemas = schemas(&routes()).await;
    let old = gate(&json!([
        {"host": "a.io", "path": "/", "weight": 1, "tags": ["x", "y"]},
        {"host": "a.io", "path": "/cart", "weight": 2},
        {"host": "b.io", "path": "/", "weight": 3},
    ]));
    // One replaced, the others with other weights and in another order; the default left out.
    let new = gate(&json!([
        {"host": "b.io", "weight": 30},
        {"host": "c.io", "path": "/cart", "weight": 2},
        {"host": "a.io", "path": "/", "weight": 10, "tags": ["y", "x"]},
    ]));
    check(
        &schemas,
        &Gvk::new("example.com/v1", "Gate"),
        &old,
        &new,
        &expect![[r#"
        - spec.routes[a.io,/cart] = {"host":"a.io","path":"/cart","weight":2}
        - spec.routes[b.io,/].path = "/"
        ~ spec.routes[b.io,/].weight: 3 -> 30
        + spec.routes[c.io,/cart] = {"host":"c.io","path":"/cart","weight":2}
        ~ spec.routes[a.io,/].tags: order ["x", "y"] -> ["y", "x"] (meaningless)
        ~ spec.routes[a.io,/].weight: 1 -> 10
        ~ spec.routes: order ["a.io,/", "b.io,/"] -> ["b.io,/", "a.io,/"]
    "#]],
    );
}

/// An element without any key, which the API takes, costs the others their names no more.
#[tokio::test]
async fn k2_an_element_whose_keys_are_empty_has_the_empty_name() {
    let mut list = routes();
    list["items"]["properties"]["path"].as_object_mut().unwrap().remove("default");
    let schemas = schemas(&list).await;
    let gate = |weight| {
        gate(&json!([{"host": "a.io", "path": "/cart", "weight": weight}, {"host": "", "weight": weight}]))
    };
    check(
        &schemas,
        &Gvk::new("example.com/v1", "Gate"),
        &gate(1),
        &gate(2),
        &expect![[r#"
            ~ spec.routes[a.io,/cart].weight: 1 -> 2
            ~ spec.routes[""].weight: 1 -> 2
        "#]],
    );
}

#[tokio::test]
async fn a_set_has_no_order() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let schemas = schemas(&set).await;
    let gvk = Gvk::new("example.com/v1", "Gate");
    check(
        &schemas,
        &gvk,
        &gate(&json!(["a", "b", "c"])),
        &gate(&json!(["c", "d", "a"])),
        &expect![[r#"
        - spec.routes[] = "b"
        + spec.routes[] = "d"
        ~ spec.routes: order ["a", "c"] -> ["c", "a"] (meaningless)
    "#]],
    );
    // The rule `order` leaves it out and counts it: no change.
    let profile = kubediff::Profile { schemas, ..crate::support::profile() };
    let mut tally = kubediff::Tally::default();
    let change = crate::support::change_with(
        &profile,
        Some(&gate(&json!(["a", "b", "c"]))),
        Some(&gate(&json!(["c", "b", "a"]))),
        &mut tally,
    );
    assert_eq!(change, None);
    assert_eq!(tally.changes.get("order"), Some(&1));
}

#[tokio::test]
async fn built_in_lists_by_their_keys_and_defaults() {
    let schemas = schemas(&routes()).await;
    let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports}});
    check(
        &schemas,
        &Gvk::new("v1", "Service"),
        &service(json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "targetPort": 1}])),
        &service(json!([{"port": 53, "targetPort": 2, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}])),
        &expect![[r#"
            + spec.ports[53/TCP].protocol = "TCP"
            ~ spec.ports[53/TCP].targetPort: 1 -> 2
            ~ spec.ports: order ["53/UDP", "53/TCP"] -> ["53/TCP", "53/UDP"] (meaningless)
        "#]],
    );
    // Deep inside of another schema, which this one refers to.
    let deployment = |mounts: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {
        "containers": [{"name": "web", "volumeMounts": mounts}],
        "hostAliases": [{"ip": "10.0.0.1"}]}}}})
    };
    check(
        &schemas,
        &Gvk::new("apps/v1", "Deployment"),
        &deployment(json!([{"mountPath": "/a", "name": "x"}, {"mountPath": "/b", "name": "x"}])),
        &deployment(json!([{"mountPath": "/b", "name": "y"}, {"mountPath": "/a", "name": "x"}])),
        &expect![[r#"
            ~ spec.template.spec.containers[web].volumeMounts[/b].name: "x" -> "y"
            ~ spec.template.spec.containers[web].volumeMounts: order ["/a", "/b"] -> ["/b", "/a"] (meaningless)
        "#]],
    );
}

#[tokio::test]
async fn elements_that_have_no_keys_after_all_are_compared_without() {
    let schemas = schemas(&routes()).await;
    check(
        &schemas,
        &Gvk::new("example.com/v1", "Gate"),
        &gate(&json!([{"host": "a"}, {"host": "a", "path": "/"}, 7])),
        &gate(&json!([{"host": "a", "path": "/"}, 7])),
        &expect![[r#"
            - spec.routes[was 0] = {"host":"a"}
        "#]],
    );
}

#[test]
fn places_are_told_apart_from_former_ones() {
    let paths = |old: Value, new: Value| -> Vec<String> {
        diff(&json!({"args": old}), &json!({"args": new})).iter().map(|it| it.path.to_string()).collect()
    };
    assert_eq!(
        paths(json!(["a", "b", "c"]), json!(["b", "x", "c", "d"])),
        ["args[was 0]", "args[1]", "args[3]"]
    );
    // A rule for a place holds for what was there, too.
    let pattern: kubediff::PathPattern = "args[0]".parse().unwrap();
    let gone = diff(&json!({"args": ["a", "b"]}), &json!({"args": ["b"]}));
    assert!(pattern.covers(&gone[0].path));
    assert!("args[was 0]".parse::<kubediff::PathPattern>().unwrap().covers(&gone[0].path));
}

#[test]
fn a_list_in_another_order_is_one_difference() {
    for (old, new) in [
        (json!({"args": [1, 2, 3]}), json!({"args": [3, 2, 1]})),
        (json!({"rules": [{"a": [1]}, {"a": [2]}]}), json!({"rules": [{"a": [2]}, {"a": [1]}]})),
    ] {
        let found = diff(&old, &new);
        assert!(
            matches!(found.as_slice(), [only] if matches!(only.edit, Edit::Reordered { matters: true, .. })),
            "{found:?}"
        );
    }
    let tolerations = |keys: &[&str]| json!({"apiVersion": "v1", "kind": "Pod", "tolerations": keys.iter().map(|key| json!({"key": key})).collect::<Vec<_>>()});
    let found = diff(&tolerations(&["a", "b"]), &tolerations(&["b", "a"]));
    assert!(
        matches!(found.as_slice(), [only] if matches!(only.edit, Edit::Reordered { matters: false, .. })),
        "{found:?}"
    );
}

#[test]
fn documents_that_are_none() {
    let schemas = Schemas::default();
    let error = schemas.load("apps", "v1", b"{").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the OpenAPI document of apps/v1 cannot be read: EOF while parsing an object at line 1 column 1"
    );
    let circle = json!({"components": {"schemas": {
        "A": {"$ref": "#/components/schemas/B"},
        "B": {"properties": {"b": {"allOf": [{"$ref": "#/components/schemas/B"}]}, "c": {"$ref": "#/nowhere"}},
            "additionalProperties": true,
            "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "B"}]},
    }}});
    schemas.load("", "v1", circle.to_string().as_bytes()).unwrap();
    let schema = schemas.of(&Gvk::new("v1", "B")).unwrap();
    assert_eq!(diff_as(&schema, &json!({"b": {"b": {"b": 1}}}), &json!({"b": {"b": {"b": 2}}})).len(), 1);
    schemas.unload("", "v1");
    assert!(schemas.of(&Gvk::new("v1", "B")).is_none());
}

#[tokio::test]
async fn with_any_schema_there_are_differences_exactly_when_objects_differ() {
    let schemas = schemas(&routes()).await;
    let mut rng = seeded("schemas");
    for _ in 0..2_000 {
        let (old, new) = random::pair(&mut rng);
        let (old, new) = (gate(&old), gate(&new));
        let schema = schemas.of(&Gvk::new("example.com/v1", "Gate")).unwrap();
        assert_eq!(diff_as(&schema, &old, &new).is_empty(), old == new, "\nold {old}\nnew {new}");
        assert_eq!(patch(&old, &new).is_empty(), old == new);
    }
}
