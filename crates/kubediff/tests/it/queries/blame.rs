//! `blame` of lists and of removals (issue 19, attacks 12 and 13).

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::run::run;
use super::world::World;

/// The answer to `kubediff blame` after what was seen.
fn check(question: &[&str], seen: impl FnOnce(&mut World), expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    seen(&mut world);
    drop(world);
    expected.assert_eq(&run(&path, &[&["blame"], question].concat()));
}

fn definition() -> Value {
    let routes = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["host", "path"],
        "items": {"type": "object"}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gates.example.com", "uid": "crd"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "gates", "kind": "Gate"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "properties": {"spec": {"properties": {"routes": routes}}}}}}]}})
}

fn gate(routes: &[(&str, u32)]) -> Value {
    let routes: Vec<Value> =
        routes.iter().map(|(host, weight)| json!({"host": host, "path": "/", "weight": weight})).collect();
    json!({"apiVersion": "example.com/v1", "kind": "Gate",
        "metadata": {"name": "g", "namespace": "shop", "uid": "g"}, "spec": {"routes": routes}})
}

#[test]
fn k7_elements_are_found_again_by_the_keys_of_the_definition() {
    check(
        &["gate/g", "-n", "shop", "--path", "spec"],
        |world| {
            world.known("12:00:00", definition());
            world.wrote("12:01:00", "ann", gate(&[("a", 1), ("b", 1)]));
            world.wrote("12:02:00", "bob", gate(&[("b", 1), ("a", 2)]));
        },
        &expect![[r#"
            FIELD                     VALUE   SINCE                 MANAGER   CHANGE   BEFORE
            spec.routes[a,/].host     a       2026-03-01 12:01:00   ann       #2
            spec.routes[a,/].path     /       2026-03-01 12:01:00   ann       #2
            spec.routes[a,/].weight   2       2026-03-01 12:02:00   bob       #3       1
            spec.routes[b,/].host     b       2026-03-01 12:01:00   ann       #2
            spec.routes[b,/].path     /       2026-03-01 12:01:00   ann       #2
            spec.routes[b,/].weight   1       2026-03-01 12:01:00   ann       #2
        "#]],
    );
}

fn role(rules: &[&str]) -> Value {
    let rules: Vec<Value> =
        rules.iter().map(|group| json!({"apiGroups": [group], "verbs": ["get"]})).collect();
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "r", "namespace": "shop", "uid": "r"}, "rules": rules})
}

/// After an insertion in front, no other rule is blamed on who inserted one.
#[test]
fn k7_a_list_without_keys_is_one_field() {
    check(
        &["role/r", "-n", "shop", "--path", "rules"],
        |world| {
            world.wrote("12:01:00", "ann", role(&["apps", "batch"]));
            world.wrote("12:02:00", "bob", role(&["policy", "apps", "batch"]));
        },
        &expect![[r#"
            FIELD   VALUE                                                                              SINCE                 MANAGER   CHANGE   BEFORE
            rules   [{apiGroups: [policy], verbs: [get]}, {apiGroups: [apps], verbs: [get]}, {apiGr…   2026-03-01 12:02:00   bob       #2       [{apiGroups: [apps], verbs: [get]}, {apiGroups: [batch], verbs: [get]}]
        "#]],
    );
}

#[test]
fn k7_a_removal_is_nobodys_but_the_former_owner_is_named() {
    let map = |fields: Value, data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {"name": "c", "namespace": "shop",
            "uid": "c", "managedFields": [{"manager": "helm", "operation": "Apply", "time": "2026-03-01T12:00:00Z",
            "fieldsV1": {"f:data": fields}}]}})
    };
    check(
        &["cm/c", "-n", "shop", "--path", "data"],
        |world| {
            world.known("12:01:00", map(json!({"f:a": {}, "f:b": {}}), json!({"a": "1", "b": "2"})));
            world.became("12:02:00", map(json!({"f:a": {}}), json!({"a": "1"})));
        },
        &expect![[r#"
            The history of configmaps shop/c begins at 2026-03-01 12:01:00, in the middle of its life: of earlier writes it knows only the managers that own fields.
            FIELD    VALUE       SINCE                           MANAGER                                CHANGE   BEFORE
            data.a   "1"         2026-03-01 12:01:00 or before   probably helm                          #1
            data.b   (removed)   2026-03-01 12:02:00             unknown; the field was owned by helm   #2       "2"
        "#]],
    );
}
