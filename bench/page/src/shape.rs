//! Objects as an API server has them.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The last write of an object.
#[derive(Clone, Copy)]
pub(crate) struct Write {
    pub(crate) version: u64,
    pub(crate) manager: &'static str,
    pub(crate) at: Timestamp,
}

#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) namespace: u16,
    pub(crate) number: u32,
    pub(crate) replicas: u16,
    /// Each rollout makes a new one.
    pub(crate) revision: u32,
    /// Whether its controller has reported the last rollout.
    pub(crate) is_reported: bool,
    pub(crate) write: Write,
}

#[derive(Clone, Copy)]
pub(crate) struct Set {
    pub(crate) revision: u32,
    pub(crate) replicas: u16,
    pub(crate) write: Write,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Pending,
    Scheduled,
    Running,
    Crashed,
    Going,
}

#[derive(Clone, Copy)]
pub(crate) struct Pod {
    pub(crate) serial: u64,
    pub(crate) revision: u32,
    pub(crate) stage: Stage,
    pub(crate) restarts: u32,
    pub(crate) write: Write,
}

/// An object with a few fields of its own: a ConfigMap, or a custom one.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    pub(crate) namespace: u16,
    /// 0 is a ConfigMap; others are custom kinds.
    pub(crate) kind: u8,
    pub(crate) number: u32,
    pub(crate) content: u32,
    pub(crate) write: Write,
}

pub(crate) fn namespace(number: u16) -> String {
    format!("team-{number}")
}

pub(crate) fn workload_name(number: u32) -> String {
    format!("app-{number}")
}

pub(crate) fn plain_name(plain: &Plain) -> String {
    let kind = if plain.kind == 0 { "settings" } else { "thing" };
    format!("{kind}-{}", plain.number)
}

fn uid(of: char, number: u64, revision: u64) -> String {
    format!("{:08x}-{revision:04x}-4000-8000-{number:012x}", u32::from(of))
}

fn metadata(name: &str, of: u16, uid: &str, write: Write) -> Value {
    json!({
        "name": name,
        "namespace": namespace(of),
        "uid": uid,
        "resourceVersion": write.version.to_string(),
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{
            "manager": write.manager, "operation": "Update", "apiVersion": "v1", "time": second(write.at),
            "fieldsType": "FieldsV1", "fieldsV1": {},
        }],
    })
}

fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn owned_by(metadata: &mut Value, api_version: &str, kind: &str, name: &str, uid: &str) {
    metadata["ownerReferences"] = json!([{
        "apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true,
        "blockOwnerDeletion": true,
    }]);
}

fn template(workload: &Workload, revision: u32) -> Value {
    let app = workload_name(workload.number);
    json!({
        "metadata": {"labels": {"app": app, "team": namespace(workload.namespace)}},
        "spec": {"containers": [{
            "name": "web",
            "image": format!("registry.example/{app}:1.{revision}"),
            "env": [{"name": "LOG", "value": "info"}, {"name": "PORT", "value": "8080"}],
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        }], "restartPolicy": "Always", "schedulerName": "default-scheduler", "serviceAccountName": app},
    })
}

pub(crate) fn deployment(it: &Workload) -> Value {
    let app = workload_name(it.number);
    let mut metadata = metadata(&app, it.namespace, &uid('d', it.number.into(), 0), it.write);
    metadata["generation"] = it.revision.into();
    metadata["labels"] = json!({"app": app});
    let reported = if it.is_reported { it.revision } else { it.revision - 1 };
    metadata["annotations"] = json!({"deployment.kubernetes.io/revision": reported.max(1).to_string()});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {
            "replicas": it.replicas, "selector": {"matchLabels": {"app": app}}, "template": template(it, it.revision),
        },
        "status": {
            "observedGeneration": reported, "replicas": it.replicas, "updatedReplicas": it.replicas,
            "readyReplicas": it.replicas, "availableReplicas": it.replicas,
        },
    })
}

pub(crate) fn replica_set(of: &Workload, it: &Set) -> Value {
    let app = workload_name(of.number);
    let hash = format!("{:x}", 4_096 + it.revision);
    let name = format!("{app}-{hash}");
    let mut metadata =
        metadata(&name, of.namespace, &uid('r', of.number.into(), it.revision.into()), it.write);
    owned_by(&mut metadata, "apps/v1", "Deployment", &app, &uid('d', of.number.into(), 0));
    metadata["labels"] = json!({"app": app, "pod-template-hash": hash});
    metadata["annotations"] = json!({"deployment.kubernetes.io/revision": it.revision.to_string()});
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata,
        "spec": {"replicas": it.replicas, "template": template(of, it.revision)},
        "status": {"replicas": it.replicas, "readyReplicas": it.replicas},
    })
}

pub(crate) fn pod(of: &Workload, it: &Pod) -> Value {
    let app = workload_name(of.number);
    let hash = format!("{:x}", 4_096 + it.revision);
    let name = format!("{app}-{hash}-{:05x}", it.serial);
    let mut metadata = metadata(&name, of.namespace, &uid('p', it.serial, 0), it.write);
    let set = uid('r', of.number.into(), it.revision.into());
    owned_by(&mut metadata, "apps/v1", "ReplicaSet", &format!("{app}-{hash}"), &set);
    metadata["labels"] = json!({"app": app, "pod-template-hash": hash});
    if it.stage == Stage::Going {
        metadata["deletionTimestamp"] = second(it.write.at).into();
        metadata["deletionGracePeriodSeconds"] = 30.into();
    }
    let mut spec = template(of, it.revision)["spec"].take();
    if it.stage != Stage::Pending {
        spec["nodeName"] = format!("node-{}", it.serial % 200).into();
    }
    let status = match it.stage {
        Stage::Pending => json!({"phase": "Pending", "qosClass": "Burstable"}),
        Stage::Scheduled => json!({
            "phase": "Pending", "qosClass": "Burstable", "conditions": [{"type": "PodScheduled", "status": "True"}],
        }),
        Stage::Running | Stage::Going => running(it, true, &json!({"running": {}})),
        Stage::Crashed => running(it, false, &json!({"waiting": {"reason": "CrashLoopBackOff"}})),
    };
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
}

fn running(pod: &Pod, is_ready: bool, state: &Value) -> Value {
    let ready = if is_ready { "True" } else { "False" };
    json!({
        "phase": "Running", "qosClass": "Burstable", "hostIP": format!("10.0.0.{}", pod.serial % 200),
        "podIP": format!("10.{}.{}.{}", pod.serial >> 16 & 255, pod.serial >> 8 & 255, pod.serial & 255),
        "conditions": [
            {"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready},
            {"type": "ContainersReady", "status": ready}, {"type": "Initialized", "status": "True"},
        ],
        "containerStatuses": [{
            "name": "web", "ready": is_ready, "restartCount": pod.restarts, "state": state,
            "imageID": format!("sha256:{:064x}", pod.revision),
        }],
    })
}

pub(crate) fn plain(it: &Plain) -> Value {
    let name = plain_name(it);
    let uid = uid('o', it.number.into(), it.kind.into());
    let metadata = metadata(&name, it.namespace, &uid, it.write);
    if it.kind == 0 {
        let lines: String =
            (0..12).map(|line| format!("key-{line}: {}\n", (it.content + line) / 12)).collect();
        return json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"level": (it.content % 7).to_string(), "file.yaml": lines},
        });
    }
    let mode = ["a", "b", "c"][it.content as usize % 3];
    json!({
        "apiVersion": format!("kind{}.example.com/v1", it.kind), "kind": format!("Thing{}", it.kind), "metadata": metadata,
        "spec": {"size": it.content % 100, "mode": mode, "step": it.content},
    })
}
