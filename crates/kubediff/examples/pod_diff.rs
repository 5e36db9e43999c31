//! How long the difference between two versions of a pod takes, from decoded trees:
//! `cargo run --release -p kubectl-changes --example pod_diff`.
//!
//! The pod has 10 KB of JSON, as one in a cluster with two containers, a status and managed fields. Its next version is
//! what a kubelet writes when a container is not ready any more.

#![allow(clippy::print_stdout, reason = "it prints its result")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use kubediff::{Gvk, Secrets, diff, patch};
use serde_json::{Value, json};

const ROUNDS: usize = 2_000;
const PER_ROUND: u32 = 20;

fn main() {
    let old = pod();
    let mut new = old.clone();
    next(&mut new);
    let secrets = Secrets::with_key([7; 32]);
    let before = resident();
    for at in 0..1_000 {
        let data = json!({"a": format!("cGFzc3dvcmQgbnVtYmVy{at:04}"), "b": format!("YW5vdGhlcg{at:04}==")});
        let secret = json!({"kind": "Secret", "metadata": {"name": at.to_string()}, "stringData": data});
        secrets.learn(&Gvk::new("v1", "Secret"), &secret);
    }
    if let (Some(before), Some(after)) = (before, resident()) {
        println!(
            "{} bytes of memory for each of 2,000 values that are looked for",
            (after - before) * 1024 / 2_000
        );
    }
    let gvk = Gvk::new("v1", "Pod");
    println!("{} bytes of JSON, {} differences", old.to_string().len(), diff(&old, &new).len());
    report("diff", || drop(black_box(diff(black_box(&old), black_box(&new)))));
    report("patch", || drop(black_box(patch(black_box(&old), black_box(&new)))));
    report("a copy of the tree", || drop(black_box(black_box(&old).clone())));
    report("a copy without secrets, 2,000 known", || drop(black_box(secrets.redact(&gvk, old.clone()))));
}

/// Resident memory in KiB, where the system says it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

/// The median and the best of some rounds, each short enough that few are interrupted.
fn report(name: &str, run: impl Fn()) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            (0..PER_ROUND).for_each(|_| run());
            started.elapsed() / PER_ROUND
        })
        .collect();
    times.sort();
    let micros = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e6);
    println!("{name}: {:.1} us (best {:.1})", micros(times.get(ROUNDS / 2)), micros(times.first()));
}

fn next(pod: &mut Value) {
    pod["metadata"]["resourceVersion"] = "48213377".into();
    pod["metadata"]["managedFields"][1]["time"] = "2026-03-01T14:03:22Z".into();
    pod["status"]["containerStatuses"][0]["ready"] = false.into();
    pod["status"]["containerStatuses"][0]["restartCount"] = 1.into();
    for at in [1, 2] {
        pod["status"]["conditions"][at]["status"] = "False".into();
        pod["status"]["conditions"][at]["lastTransitionTime"] = "2026-03-01T14:03:22Z".into();
        pod["status"]["conditions"][at]["reason"] = "ContainersNotReady".into();
    }
}

fn pod() -> Value {
    let env: Vec<Value> = (0..24)
        .map(|at| json!({"name": format!("SETTING_{at}"), "value": format!("https://service-{at}.shop.svc.cluster.local:8443/api")}))
        .collect();
    let container = |name: &str| {
        json!({"name": name, "image": format!("registry.example.com/shop/{name}:1.27.3"), "imagePullPolicy": "IfNotPresent",
            "env": env, "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1},
            "volumeMounts": [{"mountPath": "/etc/app", "name": "config"},
                {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access-x7k2p", "readOnly": true}],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})
    };
    let status = |name: &str| {
        json!({"name": name, "ready": true, "restartCount": 0, "started": true,
            "image": format!("registry.example.com/shop/{name}:1.27.3"),
            "imageID": "registry.example.com/shop/web@sha256:4a9c5e0f37a1b4c2e85f7b4f5f6c8e7d2b1a0918273645546372819a0b1c2d3e",
            "containerID": "containerd://9b1f7c5d3e2a4b6c8d0e1f2a3b4c5d6e7f8a9b0c1d2e3f4a5b6c7d8e9f0a1b2c",
            "state": {"running": {"startedAt": "2026-02-26T10:00:05Z"}}, "lastState": {}})
    };
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-02-26T10:00:05Z"});
    let owned: Value = (0..30)
        .map(|at| (format!("f:field{at}"), json!({".": {}, "f:name": {}, "f:value": {}})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-644b5b8945-wr62f", "generateName": "web-644b5b8945-", "namespace": "shop",
            "uid": "2c3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e11", "resourceVersion": "48213001", "creationTimestamp": "2026-02-26T10:00:00Z",
            "labels": {"app": "web", "pod-template-hash": "644b5b8945", "tier": "front"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-644b5b8945", "uid": "1", "controller": true}],
            "managedFields": [
                {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-02-26T10:00:00Z", "fieldsV1": {"f:spec": owned}},
                {"manager": "kubelet", "operation": "Update", "subresource": "status", "apiVersion": "v1", "time": "2026-02-26T10:00:05Z", "fieldsV1": {"f:status": owned}}]},
        "spec": {"containers": [container("web"), container("proxy")], "nodeName": "node-17", "restartPolicy": "Always",
            "serviceAccountName": "web", "volumes": [{"name": "config", "configMap": {"name": "web", "defaultMode": 420}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]},
        "status": {"phase": "Running", "hostIP": "10.1.2.3", "podIP": "10.244.3.17", "qosClass": "Burstable", "startTime": "2026-02-26T10:00:00Z",
            "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
            "containerStatuses": [status("web"), status("proxy")]},
    })
}
