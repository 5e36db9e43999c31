//! Which resources an argument means.

use kube_core::discovery::v2::APIGroupDiscoveryList;
use kubediff::resources::{Catalog, short_name};
use serde_json::{Value, json};

fn resource(plural: &str, kind: &str, short: &[&str], categories: &[&str], verbs: &[&str]) -> Value {
    json!({
        "resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": "Namespaced",
        "singularResource": kind.to_lowercase(), "verbs": verbs, "shortNames": short, "categories": categories,
    })
}

fn catalog() -> Catalog {
    let watchable = ["get", "list", "watch"];
    let mut nodes = resource("nodes", "Node", &["no"], &[], &watchable);
    nodes["scope"] = json!("Cluster");
    let group = |name: &str, versions: Value| json!({"metadata": {"name": name}, "versions": versions});
    let core = json!({"items": [group("", json!([{"version": "v1", "resources": [
        resource("pods", "Pod", &["po"], &["all"], &watchable),
        resource("bindings", "Binding", &[], &[], &["create"]),
        resource("events", "Event", &["ev"], &[], &watchable),
        nodes,
    ]}]))]});
    let groups = json!({"items": [
        group("apps", json!([{"version": "v1", "resources": [
            resource("deployments", "Deployment", &["deploy"], &["all"], &watchable),
        ]}])),
        group("events.k8s.io", json!([{"version": "v1", "resources": [
            resource("events", "Event", &["ev"], &[], &watchable),
        ]}])),
        group("example.com", json!([
            {"version": "v2", "resources": [resource("pods", "Pod", &[], &[], &watchable)]},
            {"version": "v1", "resources": [resource("pods", "Pod", &[], &[], &watchable)]},
        ])),
    ]});
    let read = |document| serde_json::from_value::<APIGroupDiscoveryList>(document).unwrap();
    Catalog::from_discovery([read(core), read(groups)])
}

fn resolve(arguments: &[&str]) -> Result<Vec<String>, String> {
    let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let resources = catalog().resolve(&arguments).map_err(|error| error.to_string())?;
    Ok(resources.iter().map(|resource| format!("{}@{}", short_name(resource), resource.version)).collect())
}

#[test]
fn names_as_kubectl_takes_them() {
    for name in ["deploy", "deployment", "deployments", "Deployment", "deployments.apps", "deploy.apps"] {
        assert_eq!(resolve(&[name]).unwrap(), ["deployments.apps@v1"], "{name}");
    }
    assert_eq!(resolve(&["apps/v1/deployments"]).unwrap(), ["deployments.apps@v1"]);
    assert_eq!(resolve(&["v1/pods"]).unwrap(), ["pods@v1"]);
    assert_eq!(resolve(&["pods.v1."]).unwrap(), ["pods@v1"]);
    assert_eq!(resolve(&["all"]).unwrap(), ["pods@v1", "deployments.apps@v1"]);
    assert_eq!(resolve(&["po,deploy", "pods"]).unwrap(), ["pods@v1", "deployments.apps@v1"]);
}

#[test]
fn the_core_group_and_the_preferred_version_come_first() {
    assert_eq!(resolve(&["pods"]).unwrap(), ["pods@v1"]);
    assert_eq!(resolve(&["pods.example.com"]).unwrap(), ["pods.example.com@v2"]);
    assert_eq!(resolve(&["pods.v1.example.com"]).unwrap(), ["pods.example.com@v1"]);
}

#[test]
fn everything_is_each_once_and_without_the_second_name_of_events() {
    let names = |cluster| {
        let everything = catalog().everything(cluster);
        everything.iter().map(short_name).collect::<Vec<_>>()
    };
    assert_eq!(names(true), ["pods", "events", "nodes", "deployments.apps", "pods.example.com"]);
    assert_eq!(names(false), ["pods", "events", "deployments.apps", "pods.example.com"]);
}

#[test]
fn an_unknown_name_is_refused_with_names_like_it() {
    assert_eq!(
        resolve(&["depl"]).unwrap_err(),
        "the server has no resource `depl` that can be watched; did you mean deployments.apps?"
    );
    assert!(resolve(&["bindings"]).is_err(), "cannot be watched");
    assert!(resolve(&["zzz"]).unwrap_err().contains("kubectl api-resources"));
}
