//! A record as an event of OpenTelemetry ([`Form::Otlp`](kubediff_delivery::Form)): its name, its severity and its
//! attributes. Those of objects have the names of the [semantic
//! conventions](https://opentelemetry.io/docs/specs/semconv/registry/attributes/k8s/) where those have one.

use kubediff_history::{Gap, Gvk, ObjectId, Scrubbed};
use serde_json::{Value, json};

use crate::Change;
use crate::config::Severity;
use crate::story::{MilestoneKind, Story};

/// The kinds whose objects have `k8s.NAME.name` and `k8s.NAME.uid`: group, kind, and the name in the conventions.
const KINDS: &[(&str, &str, &str)] = &[
    ("", "Node", "node"),
    ("", "PersistentVolume", "persistentvolume"),
    ("", "PersistentVolumeClaim", "persistentvolumeclaim"),
    ("", "Pod", "pod"),
    ("", "ReplicationController", "replicationcontroller"),
    ("", "ResourceQuota", "resourcequota"),
    ("", "Service", "service"),
    ("apps", "DaemonSet", "daemonset"),
    ("apps", "Deployment", "deployment"),
    ("apps", "ReplicaSet", "replicaset"),
    ("apps", "StatefulSet", "statefulset"),
    ("autoscaling", "HorizontalPodAutoscaler", "hpa"),
    ("batch", "CronJob", "cronjob"),
    ("batch", "Job", "job"),
];

pub(super) fn change(change: &Change, severity: Severity) -> Value {
    let managers: Vec<&str> = change.managers.iter().map(|manager| &*manager.manager).collect();
    let attributes = json!({
        "kubediff.change": change.verb,
        "kubediff.source": change.origin,
        "kubediff.managers": managers,
        "kubediff.paths": change.paths,
        "kubediff.key": change.key,
        "kubediff.object.resource_version": change.rv,
        "kubediff.object.previous_resource_version": change.rv_before,
    });
    event(&format!("change.{}", change.verb.as_str()), severity, object(&change.object, attributes))
}

pub(super) fn story(story: &Story, tells: MilestoneKind, severity: Severity) -> Value {
    let tells = json!(tells);
    let attributes = json!({
        "kubediff.story.id": story.id,
        "kubediff.story.kind": story.kind,
        "kubediff.story.verdict": story.verdict,
        "kubediff.story.milestone": tells,
    });
    let name = format!("story.{}", tells.as_str().unwrap_or_default());
    event(&name, severity, object(&story.object, attributes))
}

pub(super) fn gap(gap: &Gap) -> Value {
    let attributes = json!({
        "kubediff.gap.from": gap.from,
        "kubediff.gap.to": gap.to,
        "kubediff.gap.resource": gap.resource,
        "kubediff.gap.cause": gap.reason,
    });
    event("gap", Severity::Warning, attributes)
}

pub(super) fn scrubbed(scrubbed: &Scrubbed) -> Value {
    let attributes = json!({
        "kubediff.scrub.from": scrubbed.from,
        "kubediff.scrub.to": scrubbed.to,
        "kubediff.scrub.masked": scrubbed.masked,
        "kubediff.scrub.cause": scrubbed.cause,
    });
    event("scrubbed", Severity::Warning, attributes)
}

fn event(name: &str, severity: Severity, mut attributes: Value) -> Value {
    if let Some(attributes) = attributes.as_object_mut() {
        attributes.retain(|_, value| !value.is_null());
    }
    // INFO, WARN and ERROR of the data model of logs.
    let number = match severity {
        Severity::Info => 9,
        Severity::Warning => 13,
        Severity::Critical => 17,
    };
    json!({
        "eventName": format!("io.kubediff.{name}"), "severityNumber": number, "severityText": severity.as_str(),
        "attributes": attributes,
    })
}

/// These attributes, and those of the object.
fn object(object: &ObjectId, attributes: Value) -> Value {
    let ObjectId { gvk: Gvk { group, version, kind }, resource, namespace, name, uid } = object;
    let mut all = json!({
        "kubediff.object.group": group,
        "kubediff.object.version": version,
        "kubediff.object.kind": kind,
        "kubediff.object.resource": resource,
        "kubediff.object.name": name,
        "kubediff.object.uid": uid,
        "k8s.namespace.name": namespace,
    });
    match KINDS.iter().find(|(of, known, _)| of == group && known == kind) {
        Some((_, _, known)) => {
            all[format!("k8s.{known}.name")] = json!(name);
            all[format!("k8s.{known}.uid")] = json!(uid);
        }
        // These have names in the conventions, and no uids.
        None if group.is_empty() && kind == "Namespace" => all["k8s.namespace.name"] = json!(name),
        None if group == "storage.k8s.io" && kind == "StorageClass" => {
            all["k8s.storageclass.name"] = json!(name);
        }
        None => {}
    }
    if let (Some(all), Value::Object(attributes)) = (all.as_object_mut(), attributes) {
        all.extend(attributes);
    }
    all
}
