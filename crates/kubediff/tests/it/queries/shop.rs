//! The history that most tests ask: an hour of a shop.

use std::path::{Path, PathBuf};

use kubediff_history::{Number, Settled};
use serde_json::{Value, json};

use super::world::World;

/// A folder with the history.
pub(crate) struct Shop {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Shop {
    pub(crate) fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        story(&path);
        Self { _folder: folder, path }
    }
}

fn cart(uid: &str, image: &str, replicas: u64, ready: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "cart", "namespace": "shop", "uid": uid, "creationTimestamp": "2026-03-01T13:00:00Z",
            "labels": {"app": "cart"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "cart"}},
            "template": {"spec": {"containers": [{"name": "web", "image": image}]}},
        },
        "status": {"replicas": replicas, "updatedReplicas": ready, "readyReplicas": ready, "availableReplicas": ready},
    })
}

fn pod(name: &str, restarts: u64, state: Value) -> Value {
    let ready = state.get("running").is_some();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("{name}-1"),
            "creationTimestamp": "2026-03-01T14:01:00Z",
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "web", "image": "web:1"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
            "containerStatuses": [{
                "name": "web", "image": "web:1", "ready": ready, "restartCount": restarts, "state": state,
                "lastState": {},
            }],
        },
    })
}

fn config(name: &str, namespace: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("{namespace}-{name}"),
            "creationTimestamp": "2026-03-01T12:00:00Z",
        },
        "data": {"app.yaml": text},
    })
}

/// An object that somebody has applied before the history began.
fn owned(mut object: Value) -> Value {
    object["metadata"]["managedFields"] = json!([{
        "manager": "helm", "operation": "Apply", "apiVersion": "v1", "time": "2026-03-01T12:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:app.yaml": {}}},
    }]);
    object
}

fn story(path: &Path) {
    let mut world = World::open(path, [7; 32]);
    world.history().add_sink("slack").unwrap();
    // Before the watch began.
    world.known("13:59:00", json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n1", "uid": "n1-1", "creationTimestamp": "2026-02-01T00:00:00Z"},
        "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.36.3"}},
    }));
    world.known("13:59:00", config("app", "shop", "log:\n  level: info\n"));
    world.known("13:59:00", owned(config("app", "blog", "log:\n  level: warn\n")));
    world.known("13:59:00", json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "offers.example.com", "uid": "crd-1", "creationTimestamp": "2026-02-01T00:00:00Z"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "offers", "singular": "offer", "kind": "Offer", "shortNames": ["of"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": [
                    {"name": "Price", "type": "integer", "jsonPath": ".spec.price"},
                    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                ],
            }],
        },
    }));
    // A deployment that was created, changed by two managers, deleted, and created again.
    world.wrote("14:00:00", "helm", cart("cart-1", "web:1", 1, 1));
    world.wrote("14:01:00", "kubelet/status", pod("cart-a", 0, json!({"running": {}})));
    world.wrote("14:05:00", "kubectl-set", cart("cart-1", "web:2", 1, 1));
    world.wrote(
        "14:06:00",
        "kubelet/status",
        pod("cart-a", 3, json!({"waiting": {"reason": "CrashLoopBackOff"}})),
    );
    world.wrote("14:07:00", "kubectl-edit", config("app", "shop", "log:\n  level: debug\n"));
    world.wrote("14:10:00", "hpa/scale", cart("cart-1", "web:2", 3, 1));
    for resource in ["deployments.apps", "pods"] {
        world.gap("14:11:00", "14:12:00", Some(resource), "the server restarted");
    }
    world.wrote("14:13:00", "kubectl-edit", config("app", "shop", "log:\n  level: info\n"));
    world.deleted("14:15:00", "Pod", "cart-a");
    world.wrote("14:20:00", "operator", json!({
        "apiVersion": "example.com/v1", "kind": "Offer",
        "metadata": {
            "name": "sale", "namespace": "shop", "uid": "sale-1", "creationTimestamp": "2026-03-01T14:20:00Z",
            // A name must not write control characters to the terminal.
            "labels": {"note": "\u{1b}]0;owned\u{7}\u{202e}"},
        },
        "spec": {"price": 5}, "status": {"conditions": [{"type": "Ready", "status": "\u{1b}[31mTrue"}]},
    }));
    world.wrote("14:30:00", "helm", cart("cart-2", "web:2", 2, 0));
    world.wrote(
        "14:40:00",
        "kubectl-create",
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": "db", "namespace": "shop", "uid": "db-1", "creationTimestamp": "2026-03-01T14:40:00Z",
            },
            "data": {"password": "aHVudGVyMmh1bnRlcjI="},
        }),
    );
    world.deleted("14:50:00", "Secret", "db");
    let settled = Settled { position: Number(10), ..Settled::default() };
    world.history().settle_sink("slack", &settled).unwrap();
}
