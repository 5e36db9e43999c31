//! Which changes go where: routes as scripts.

use expect_test::{Expect, expect};
use kubediff::config::Config;
use kubediff::route::Routes;
use kubediff::{Change, Gvk, Origin, Tally};
use serde_json::{Value, json};

use crate::support::{self, change_with, profile};

/// Some changes of a shop, each with a name.
fn changes() -> Vec<(&'static str, Change)> {
    let object = |api_version: &str, kind: &str, namespace: Option<&str>, name: &str, rest: Value| {
        let mut object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "uid": name, "labels": {"app": name}},
        });
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        for (field, value) in rest.as_object().unwrap() {
            object[field] = value.clone();
        }
        object
    };
    let cart = |image: &str, replicas: u32| {
        let spec = json!({"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}});
        let mut cart = object("apps/v1", "Deployment", Some("shop"), "cart", json!({"spec": spec}));
        let manager = if replicas == 2 { "kubectl-edit" } else { "argocd-controller" };
        cart["metadata"]["managedFields"] = json!([{
            "manager": manager, "operation": "Update", "apiVersion": "apps/v1", "time": "2026-03-01T14:03:20Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}, format!("f:{image}"): {}}},
        }]);
        cart
    };
    let settings = |level: Value| object("v1", "ConfigMap", Some("pay"), "settings", json!({"data": level}));
    let node = object("v1", "Node", None, "node-1", json!({"spec": {"unschedulable": true}}));
    let change = |old: Option<&Value>, new: Option<&Value>| support::change(old, new).unwrap();
    let mut missed = change(Some(&node), None);
    missed.origin = Origin::Restart;
    vec![
        ("image", change(Some(&cart("nginx:1.27", 1)), Some(&cart("nginx:1.28", 1)))),
        ("scale", change(Some(&cart("nginx:1.28", 1)), Some(&cart("nginx:1.28", 2)))),
        ("created", change(None, Some(&settings(json!({"app.yaml": "level: 1"}))))),
        ("data", change(Some(&settings(json!({}))), Some(&settings(json!({"app.yaml": "level: 1"}))))),
        ("node", missed),
    ]
}

/// The deliveries of each change, as lines.
fn check(routes: &str, expected: Expect) {
    let sinks = "sinks: {ops: stdout, bus: stdout, log: stdout}\n";
    let config = Config::of_text(&format!("{sinks}{routes}"), "kubediff.yaml").unwrap().config;
    let routes = Routes::new(&config).unwrap();
    let mut said = String::new();
    for (name, change) in changes() {
        for delivery in routes.of(&change) {
            let (sink, severity) = (delivery.sink, delivery.severity.as_str());
            said += &format!("{name} -> {sink} by {} {severity}: {}\n", delivery.route, &*delivery.text);
        }
    }
    expected.assert_eq(&said);
}

#[test]
fn without_routes_every_sink_gets_every_change() {
    check(
        "",
        expect![[r#"
        image -> bus by 0 info: updated Deployment shop/cart: image web 1.27 -> 1.28
        image -> log by 0 info: updated Deployment shop/cart: image web 1.27 -> 1.28
        image -> ops by 0 info: updated Deployment shop/cart: image web 1.27 -> 1.28
        scale -> bus by 0 info: updated Deployment shop/cart: replicas 1 -> 2
        scale -> log by 0 info: updated Deployment shop/cart: replicas 1 -> 2
        scale -> ops by 0 info: updated Deployment shop/cart: replicas 1 -> 2
        created -> bus by 0 info: added ConfigMap pay/settings: data app.yaml (8 bytes)
        created -> log by 0 info: added ConfigMap pay/settings: data app.yaml (8 bytes)
        created -> ops by 0 info: added ConfigMap pay/settings: data app.yaml (8 bytes)
        data -> bus by 0 info: updated ConfigMap pay/settings: +data["app.yaml"] level: 1
        data -> log by 0 info: updated ConfigMap pay/settings: +data["app.yaml"] level: 1
        data -> ops by 0 info: updated ConfigMap pay/settings: +data["app.yaml"] level: 1
        node -> bus by 0 info: deleted Node node-1: unschedulable true
        node -> log by 0 info: deleted Node node-1: unschedulable true
        node -> ops by 0 info: deleted Node node-1: unschedulable true
    "#]],
    );
}

#[test]
fn the_first_route_that_matches_is_the_last_unless_it_goes_on() {
    check(
        r#"
routes:
  - {match: {namespaces: [pay]}, sinks: []}
  - {match: {changes: [updated]}, sinks: [ops, log], severity: warning, continue: true}
  - {match: {namespaces: [shop]}, sinks: [ops, bus], severity: critical}
  - {sinks: [log]}
"#,
        expect![[r#"
            image -> ops by 1 warning: updated Deployment shop/cart: image web 1.27 -> 1.28
            image -> log by 1 warning: updated Deployment shop/cart: image web 1.27 -> 1.28
            image -> bus by 2 critical: updated Deployment shop/cart: image web 1.27 -> 1.28
            scale -> ops by 1 warning: updated Deployment shop/cart: replicas 1 -> 2
            scale -> log by 1 warning: updated Deployment shop/cart: replicas 1 -> 2
            scale -> bus by 2 critical: updated Deployment shop/cart: replicas 1 -> 2
            node -> log by 3 info: deleted Node node-1: unschedulable true
        "#]],
    );
}

#[test]
fn each_field_of_a_match_narrows_it() {
    for (fields, expected) in [
        ("resources: [deployments.apps]", expect!["image scale"]),
        ("resources: [v1/nodes, ConfigMap]", expect!["created data node"]),
        ("resources: [deployments.extensions]", expect![[r#""#]]),
        ("namespaces: [p*]", expect!["created data"]),
        ("names: [cart, node-*]", expect!["image scale node"]),
        ("labels: app in (node-1)", expect!["node"]),
        ("paths: [spec.replicas]", expect!["scale"]),
        ("paths: ['spec.template.spec.containers[*].image']", expect!["image"]),
        ("paths: ['data[\"app.yaml\"]']", expect!["created data"]),
        ("paths: ['data[\"app.yaml\"]#level']", expect!["created data"]),
        ("paths: [spec]", expect!["image scale node"]),
        ("managers: [kubectl-*]", expect!["scale"]),
        ("changes: [added, deleted]", expect!["created node"]),
        ("sources: [restart]", expect!["node"]),
        ("resources: [Deployment], managers: [argo*]", expect!["image"]),
    ] {
        let sinks = "sinks: {ops: stdout}\n";
        let routes = format!("{sinks}routes: [{{match: {{{fields}}}, sinks: [ops]}}]");
        let config = Config::of_text(&routes, "kubediff.yaml").unwrap().config;
        let routes = Routes::new(&config).unwrap();
        let taken: Vec<&str> = changes()
            .iter()
            .filter(|(_, change)| !routes.of(change).is_empty())
            .map(|(name, _)| *name)
            .collect();
        expected.assert_eq(&taken.join(" "));
    }
}

#[test]
fn templates_have_the_change() {
    check(
        r#"
routes:
  - match: {resources: [deployments]}
    sinks: [ops]
    severity: critical
    template: >-
      {{ severity | upper }}{{ cluster }} {{ kind }}.{{ group }}/{{ version }} {{ namespace }}/{{ name }} by
      {{ managers | join(", ") }}: {{ diff[0].path }} {{ diff[0].old }} to {{ new.spec.replicas }} ({{ labels.app }})
  - match: {namespaces: [pay]}
    sinks: [ops]
    template: "{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}"
  - sinks: [log]
    template: "<{{ text }}> {{ source }} {{ labels.nothing.more }}{{ annotations }}|"
"#,
        expect![[r#"
            image -> ops by 0 critical: CRITICAL Deployment.apps/v1 shop/cart by argocd-controller: spec.template.spec.containers[web].image nginx:1.27 to 1 (cart)
            scale -> ops by 0 critical: CRITICAL Deployment.apps/v1 shop/cart by kubectl-edit: spec.replicas 1 to 2 (cart)
            created -> ops by 1 info: added ConfigMap pay/settings: data app.yaml (8 bytes) (the route's template failed: engine ran out of fuel)
            data -> ops by 1 info: updated ConfigMap pay/settings: +data["app.yaml"] level: 1 (the route's template failed: engine ran out of fuel)
            node -> log by 2 info: <deleted Node node-1: unschedulable true> restart |
        "#]],
    );
}

/// K4: a route decides as if nothing were hidden, also when it reads what is stored.
#[test]
fn k4_a_label_that_is_hidden_matches_as_its_value_does() {
    let mut profile = profile();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"},
        "stringData": {"tier": "tier-kz4wq8xj"}});
    profile.secrets.learn(&Gvk::new("v1", "Secret"), &secret);
    profile.secrets.hide("configmaps".parse().unwrap(), "metadata.labels.stage".parse().unwrap());
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "shop", "labels": {"tier": "tier-kz4wq8xj", "stage": "gold", "app": "cart"}}});
    let change = change_with(&profile, None, Some(&map), &mut Tally::default()).unwrap();
    let shown = change.new.as_ref().unwrap()["metadata"]["labels"].clone();
    assert!(
        shown["tier"].as_str().unwrap().contains("<hmac:")
            && shown["stage"].as_str().unwrap().contains("<hmac:"),
        "{shown}"
    );
    for (selector, expected) in [
        ("tier=tier-kz4wq8xj", true),
        ("tier=other", false),
        ("tier!=tier-kz4wq8xj", false),
        ("tier notin (other)", true),
        ("stage in (silver, gold)", true),
        ("stage=silver", false),
        ("app=cart,stage=gold,tier", true),
    ] {
        let text =
            format!("sinks: {{ops: stdout}}\nroutes: [{{match: {{labels: '{selector}'}}, sinks: [ops]}}]");
        let config = Config::of_text(&text, "kubediff.yaml").unwrap().config;
        let routes = Routes::new(&config).unwrap().with_secrets(profile.secrets.clone());
        assert_eq!(!routes.of(&change).is_empty(), expected, "{selector}");
    }
}
