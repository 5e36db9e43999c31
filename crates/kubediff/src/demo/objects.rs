//! The objects of the shop.

use serde_json::{Value, json};

use super::act::Owner;
use super::app::App;

/// Where the shop is.
pub(super) const NAMESPACE: &str = "shop";

/// The path of the objects of a resource in the shop.
pub(super) fn path(api: &str, plural: &str) -> String {
    let root = if api == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api}") };
    format!("{root}/namespaces/{NAMESPACE}/{plural}")
}

/// The path of one of them.
pub(super) fn path_of(api: &str, plural: &str, name: &str) -> String {
    format!("{}/{name}", path(api, plural))
}

pub(super) fn namespace() -> Value {
    json!({ "metadata": { "name": NAMESPACE, "labels": { "team": "commerce" } } })
}

pub(super) fn node(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "m7.large",
        } },
        "spec": { "podCIDR": "10.244.0.0/24" },
        "status": {
            "capacity": { "cpu": "8", "memory": "32Gi", "pods": "110" },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
            "nodeInfo": { "kubeletVersion": "v1.37.2", "osImage": "Debian GNU/Linux 13" },
        },
    })
}

pub(super) fn deployment(app: &App) -> Value {
    json!({
        "metadata": { "name": app.name, "labels": { "app": app.name, "team": "commerce" } },
        "spec": {
            "replicas": app.replicas,
            "selector": { "matchLabels": { "app": app.name } },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
            "template": {
                "metadata": { "labels": { "app": app.name } },
                "spec": { "containers": [container(app)] },
            },
        },
    })
}

/// The controller of an app's replica sets.
pub(super) fn owner_of_sets(app: &App) -> Owner {
    let path = path_of("apps/v1", "deployments", app.name);
    Owner { api: "apps/v1", kind: "Deployment", name: app.name.to_owned(), path }
}

/// The controller of an app's pods.
pub(super) fn owner_of_pods(app: &App) -> Owner {
    let name = app.replica_set();
    let path = path_of("apps/v1", "replicasets", &name);
    Owner { api: "apps/v1", kind: "ReplicaSet", name, path }
}

pub(super) fn replica_set(app: &App) -> Value {
    let labels = json!({ "app": app.name, "pod-template-hash": app.hash });
    json!({
        "metadata": {
            "name": app.replica_set(),
            "labels": labels,
            "annotations": { "deployment.kubernetes.io/revision": app.revision.to_string() },
        },
        "spec": {
            "replicas": app.replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container(app)] } },
        },
    })
}

pub(super) fn pod(app: &App, name: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "generateName": format!("{}-", app.replica_set()),
            "labels": { "app": app.name, "pod-template-hash": app.hash },
        },
        "spec": {
            "containers": [container(app)],
            "restartPolicy": "Always",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 0,
        },
        "status": { "phase": "Pending" },
    })
}

/// The kubelet's status of a running pod.
pub(super) fn running(app: &App, ip: &str, restarts: u32) -> Value {
    json!({ "status": {
        "phase": "Running",
        "podIP": ip,
        "conditions": [
            { "type": "PodScheduled", "status": "True" },
            { "type": "Ready", "status": "True" },
            { "type": "ContainersReady", "status": "True" },
        ],
        "containerStatuses": [{
            "name": app.name, "image": app.image(), "ready": true, "restartCount": restarts,
            "state": { "running": {} },
        }],
    } })
}

/// The status of one that has crashed once more.
pub(super) fn crashed(app: &App, restarts: u32) -> Value {
    json!({ "status": {
        "conditions": [
            { "type": "PodScheduled", "status": "True" },
            { "type": "Ready", "status": "False", "reason": "ContainersNotReady" },
            { "type": "ContainersReady", "status": "False", "reason": "ContainersNotReady" },
        ],
        "containerStatuses": [{
            "name": app.name, "image": app.image(), "ready": false, "restartCount": restarts,
            "state": { "waiting": {
                "reason": "CrashLoopBackOff",
                "message": format!("back-off {}s restarting failed container", 10 << restarts.min(5)),
            } },
            "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } },
        }],
    } })
}

fn container(app: &App) -> Value {
    json!({
        "name": app.name,
        "image": app.image(),
        "ports": [{ "name": "http", "containerPort": app.port }],
        "envFrom": [{ "configMapRef": { "name": format!("{}-config", app.name) } }],
        "resources": {
            "requests": { "cpu": "100m", "memory": "128Mi" },
            "limits": { "memory": app.memory },
        },
        "readinessProbe": { "httpGet": { "path": "/healthz", "port": "http" }, "periodSeconds": 5 },
    })
}

pub(super) fn service(app: &App) -> Value {
    json!({
        "metadata": { "name": app.name, "labels": { "app": app.name } },
        "spec": {
            "selector": { "app": app.name },
            "ports": [{ "name": "http", "port": 80, "targetPort": "http", "protocol": "TCP" }],
        },
    })
}

pub(super) fn config(app: &App, pool: u32, log: &str) -> Value {
    json!({
        "metadata": { "name": format!("{}-config", app.name), "labels": { "app": app.name } },
        "data": { "app.yaml": settings(app, pool, log) },
    })
}

/// The settings of an app, as a file in its config map.
pub(super) fn settings(app: &App, pool: u32, log: &str) -> String {
    format!(
        "server:\n  port: {}\n  timeout: 30s\ndatabase:\n  host: db.shop.svc\n  pool: {pool}\nlog:\n  level: {log}\n",
        app.port
    )
}

pub(super) fn autoscaler(app: &App) -> Value {
    json!({
        "metadata": { "name": app.name },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": app.name },
            "minReplicas": 2,
            "maxReplicas": 6,
            "metrics": [{ "type": "Resource", "resource": {
                "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 70 },
            } }],
        },
    })
}

/// The definition of an operator's custom resource.
pub(super) fn backup_definition() -> Value {
    json!({
        "metadata": { "name": "backups.ops.example.com" },
        "spec": {
            "group": "ops.example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "backups", "singular": "backup", "kind": "Backup", "listKind": "BackupList", "shortNames": ["bk"],
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": [
                    { "name": "Schedule", "type": "string", "jsonPath": ".spec.schedule" },
                    { "name": "Phase", "type": "string", "jsonPath": ".status.phase" },
                ],
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": {
                        "schedule": { "type": "string" },
                        "keep": { "type": "integer" },
                        "target": { "type": "string" },
                    } },
                    "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                } } },
            }],
        },
    })
}

pub(super) fn backup() -> Value {
    json!({
        "apiVersion": "ops.example.com/v1",
        "kind": "Backup",
        "metadata": { "name": "db-nightly" },
        "spec": { "schedule": "0 3 * * *", "keep": 7, "target": "s3://shop-backups/db" },
    })
}

pub(super) fn grant(person: &str, role: &str) -> Value {
    json!({
        "metadata": { "name": format!("{person}-{role}") },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("{person}@example.com") }],
    })
}

pub(super) fn job(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": "invoices" } },
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 3,
            "template": {
                "metadata": { "labels": { "app": "invoices", "job-name": name } },
                "spec": {
                    "restartPolicy": "OnFailure",
                    "containers": [{ "name": "invoices", "image": "registry.example.com/shop/invoices:5.2.0" }],
                },
            },
        },
    })
}
