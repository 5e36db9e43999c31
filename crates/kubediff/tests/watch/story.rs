//! Events in a cluster, and the changes that are shown of them.

use std::fmt::Debug;

use control_plane::ControlPlane;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube_client::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kube_core::discovery::ApiResource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::session::Session;

async fn client(server: &ControlPlane) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

async fn namespace(client: &Client, name: &str) {
    create::<Namespace>(&Api::all(client.clone()), json!({"metadata": {"name": name}})).await;
}

async fn create<K: Clone + DeserializeOwned + Serialize + Debug>(api: &Api<K>, object: Value) {
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

async fn patch<K: Clone + DeserializeOwned + Debug>(api: &Api<K>, name: &str, patch: Value) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

fn deployment(replicas: u32, image: &str) -> Value {
    json!({
        "metadata": {"name": "cart"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "cart"}},
            "template": {
                "metadata": {"labels": {"app": "cart"}},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn create_edit_scale_delete() {
    let Some(server) = control_plane::shared_or_skip("create_edit_scale_delete") else { return };
    let client = client(server).await;
    namespace(&client, "story").await;
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "story");
    create(&config_maps, json!({"metadata": {"name": "old"}, "data": {"a": "1"}})).await;

    let mut watch = Session::start(server, &["-n", "story", "deploy,cm"]);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "story");
    create(&deployments, deployment(2, "nginx:1.27")).await;
    watch.line(&["+ deployments.apps story/cart", "(added"]);
    patch(&deployments, "cart", json!({"spec": {"replicas": 3}})).await;
    watch.line(&["~ deployments.apps story/cart"]);
    watch.line(&["~ spec.replicas: 2 → 3"]);
    patch(&deployments, "cart", deployment(3, "nginx:1.28")).await;
    watch.line(&["spec.template.spec.containers[web].image: nginx:1.27 → nginx:1.28"]);
    patch(&config_maps, "old", json!({"data": {"a": "2"}})).await;
    watch.line(&["~ configmaps story/old"]);
    watch.line(&["~ data.a: \"1\" → \"2\""]);
    deployments.delete("cart", &DeleteParams::default()).await.unwrap();
    watch.line(&["- deployments.apps story/cart", "(deleted)"]);

    let (shown, _, status) = watch.interrupt();
    assert!(status.success(), "{status}");
    assert!(
        !shown.iter().any(|line| line.contains("+ configmaps")),
        "what was there is not announced: {shown:#?}"
    );
    let summary = shown.iter().position(|line| line.contains(" changes of 2 kinds in ")).expect("a summary");
    assert!(shown[summary..].iter().any(|line| line.contains("deployments.apps  +1")), "{shown:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_never_shown() {
    let Some(server) = control_plane::shared_or_skip("secrets_are_never_shown") else { return };
    let client = client(server).await;
    namespace(&client, "vault").await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "vault");
    for format in ["json", "diff"] {
        let mut watch = Session::start(server, &["-n", "vault", "-o", format, "secrets"]);
        create(&secrets, json!({"metadata": {"name": "db"}, "stringData": {"password": "correct horse"}}))
            .await;
        watch.line(&["db", "added"]);
        patch(&secrets, "db", json!({"stringData": {"password": "battery staple"}})).await;
        watch.line(&["<hmac:", "13 bytes", "14 bytes"]);
        secrets.delete("db", &DeleteParams::default()).await.unwrap();
        watch.line(&["db", "deleted"]);
        let (shown, notes, _) = watch.interrupt();
        // As they are, and as base64.
        for forbidden in ["correct", "horse", "battery", "staple", "Y29ycmVjd", "YmF0dGVye"] {
            assert!(
                !format!("{shown:?}{notes:?}").contains(forbidden),
                "{format}: {forbidden} in {shown:#?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_lines_have_the_fields_of_a_change() {
    let Some(server) = control_plane::shared_or_skip("json_lines_have_the_fields_of_a_change") else {
        return;
    };
    let client = client(server).await;
    namespace(&client, "lines").await;
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "lines");
    let mut watch = Session::start(server, &["-n", "lines", "-o", "json", "cm"]);
    create(&config_maps, json!({"metadata": {"name": "c"}, "data": {"k": "v"}})).await;
    watch.line(&["\"c\"", "added"]);
    patch(&config_maps, "c", json!({"data": {"k": "w"}})).await;
    let line = watch.line(&["\"c\"", "updated"]);
    let (shown, notes, _) = watch.interrupt();
    assert!(shown.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{shown:#?}");
    assert!(notes.iter().any(|note| note.contains("2 changes of 1 kind")), "{notes:#?}");

    let change: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(change["gvk"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!((&change["namespace"], &change["name"]), (&json!("lines"), &json!("c")));
    assert_eq!((&change["change"], &change["source"]), (&json!("updated"), &json!("watch")));
    assert_eq!(change["paths"], json!(["data.k"]));
    for field in ["cluster", "uid", "rv_before", "rv", "observed_at"] {
        assert!(change[field].is_string(), "{field} in {change}");
    }
    let (before, now) = (change["rv_before"].as_str().unwrap(), change["rv"].as_str().unwrap());
    assert!(before.parse::<u64>().unwrap() < now.parse::<u64>().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_come_and_go() {
    let Some(server) = control_plane::shared_or_skip("custom_resources_come_and_go") else { return };
    let client = client(server).await;
    namespace(&client, "custom").await;
    let mut watch = Session::start(server, &["-A"]);
    let definitions = ApiResource::from_gvk_with_plural(
        &kube_core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        "customresourcedefinitions",
    );
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &definitions);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kettles.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "kettles", "singular": "kettle", "kind": "Kettle"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    // Twice: a definition may come back.
    for round in ["one", "two"] {
        create(&definitions, definition.clone()).await;
        watch.line(&["+ customresourcedefinitions", "kettles.example.com"]);
        watch.line(&["status.conditions[Established].status: False → True"]);
        let kettle = kube_core::GroupVersionKind::gvk("example.com", "v1", "Kettle");
        let kettles: Api<DynamicObject> = Api::namespaced_with(
            client.clone(),
            "custom",
            &ApiResource::from_gvk_with_plural(&kettle, "kettles"),
        );
        create(&kettles, json!({
            "apiVersion": "example.com/v1", "kind": "Kettle", "metadata": {"name": round}, "spec": {"litres": 1},
        })).await;
        watch.line(&["+ kettles.example.com", round]);
        patch(&kettles, round, json!({"spec": {"litres": 2}})).await;
        watch.line(&["~ spec.litres: 1 → 2"]);
        definitions.delete("kettles.example.com", &DeleteParams::default()).await.unwrap();
        // Two informers tell of it, one of each kind.
        watch.lines(&[
            &["- kettles.example.com", round],
            &["- customresourcedefinitions", "kettles.example.com"],
        ]);
    }
    let (_, _, status) = watch.interrupt();
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_kind_is_reported_once_and_the_others_go_on() {
    let Some(server) = control_plane::shared_or_skip("a_forbidden_kind_is_reported_once") else { return };
    let client = client(server).await;
    namespace(&client, "limits").await;
    let rbac = |kind: &str, plural: &str| {
        let kind = kube_core::GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Api::<DynamicObject>::namespaced_with(client.clone(), "limits", &resource)
    };
    create(
        &rbac("Role", "roles"),
        json!({
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}],
        }),
    )
    .await;
    create(
        &rbac("RoleBinding", "rolebindings"),
        json!({
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
        }),
    )
    .await;
    let mut watch = Session::spawn(server, &["-n", "limits", "--as", "jane", "cm,secrets"]);
    watch.note("secrets is not watched: 403 Forbidden");
    watch.note("watching 1 of 2 resources");
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "limits");
    create(&config_maps, json!({"metadata": {"name": "c"}, "data": {"k": "v"}})).await;
    watch.line(&["+ configmaps limits/c"]);
    let (shown, notes, status) = watch.interrupt();
    assert!(status.success());
    assert!(!notes.iter().any(|note| note.contains("not watched")), "once: {notes:#?}");
    assert!(shown.iter().any(|line| line == "Not watched: secrets (403 Forbidden)"), "{shown:#?}");

    // Many are one line, before and in the summary, whose counts come last.
    let mut watch = Session::spawn(server, &["-n", "limits", "--as", "jane"]);
    let note = watch.note("resources are not watched (403 Forbidden): ");
    assert!(note.contains(" more"), "{note}");
    watch.note("watching 1 of ");
    let (shown, notes, _) = watch.interrupt();
    assert!(!notes.iter().any(|note| note.contains("not watched")), "once: {notes:#?}");
    let denied = shown.iter().position(|line| line.starts_with("Not watched: ")).expect("what was denied");
    let counts = shown.iter().position(|line| line.starts_with("0 changes in ")).expect("counts");
    assert!(denied < counts, "{shown:#?}");
    assert_eq!(shown.iter().filter(|line| line.contains("Forbidden")).count(), 1, "{shown:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_understood_ends_with_a_remedy() {
    let Some(server) = control_plane::shared_or_skip("what_cannot_be_understood_ends_with_a_remedy") else {
        return;
    };
    for (arguments, words, code) in [
        (["depl", "-A"].as_slice(), "did you mean deployments.apps?", 2),
        (&[""], "a name is missing in ``", 2),
        (&[","], "a name is missing in `,`", 2),
        (&["deploy/cart", "front"], "`front` stands beside `deploy/cart`", 2),
        (&["--field-selector", "bad=1", "cm"], "configmaps cannot be watched: 400", 2),
        (&["--as", "jane", "secrets"], "secrets cannot be watched: 403 Forbidden", 3),
        (&["--as", "jane", "-A"], "resources can be watched; ", 3),
        (&["--server", "https://127.0.0.1:1"], "kubediff: https://127.0.0.1:1: connection refused", 3),
        (&["--server", "ftp://x"], "is not the address of a server", 3),
        (&["--user", "nobody"], "the kubeconfig has no user `nobody`", 3),
        (&["--request-timeout", "soon"], "a time is a number with a unit", 2),
        (&["--show", "nonsense"], "there is no noise rule `nonsense`", 2),
        (&["-l", "a in ("], "label selector", 2),
        (&["--hide", "nonsense"], "there is no noise rule `nonsense`", 2),
        (&["--hide", ".spec..x"], "is not a path", 2),
        (&["--hide", ".metadata.name"], "tells objects apart", 2),
        (&["-n", "../../x"], "a namespace has", 2),
        (&["--context", "nowhere"], "nowhere", 3),
    ] {
        let (notes, status) = Session::spawn(server, arguments).wait();
        assert!(notes.iter().any(|note| note.contains(words)), "{arguments:?}: {notes:#?}");
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

/// A signal that came while a change was being shown was lost: a listener must never stop listening.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_is_heard_in_the_middle_of_changes() {
    let Some(server) = control_plane::shared_or_skip("an_interrupt_is_heard_in_the_middle_of_changes") else {
        return;
    };
    let client = client(server).await;
    namespace(&client, "busy").await;
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "busy");
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let config_maps = config_maps.clone();
            tokio::spawn(async move {
                for round in 0.. {
                    let name = format!("c-{writer}-{round}");
                    create(&config_maps, json!({"metadata": {"name": name}, "data": {"k": "v"}})).await;
                }
            })
        })
        .collect();
    for _ in 0..5 {
        let mut watch = Session::start(server, &["-n", "busy", "-o", "json", "cm"]);
        watch.line(&["added"]);
        let (_, _, status) = watch.interrupt();
        assert!(status.success(), "{status}");
    }
    writers.iter().for_each(tokio::task::JoinHandle::abort);
}
