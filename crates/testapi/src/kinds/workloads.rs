//! Workloads: Deployments and the rest of `apps`, Jobs, ReplicationControllers.

use serde_json::{Value, json};

use super::fill::{fill, fill_all, items, part};
use super::pods;
use crate::object::{Meta, metadata_mut};

/// Sets the defaults of a workload's spec.
pub(super) fn fill_spec(plural: &str, object: &mut Value) {
    if plural == "replicationcontrollers" {
        take_labels(object);
    }
    if plural == "daemonsets" {
        let annotation = "deprecated.daemonset.template.generation";
        fill(object, &["metadata", "annotations", annotation], "1".into());
    }
    let Some(spec) = part(object, "spec") else { return };
    match plural {
        "deployments" => {
            fill_all(
                spec,
                json!({ "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600 }),
            );
            fill(spec, &["strategy", "type"], "RollingUpdate".into());
            rolling(&mut spec["strategy"], json!({ "maxUnavailable": "25%", "maxSurge": "25%" }));
        }
        "replicasets" | "replicationcontrollers" => fill(spec, &["replicas"], 1.into()),
        "statefulsets" => {
            let retain = json!({ "whenDeleted": "Retain", "whenScaled": "Retain" });
            fill_all(
                spec,
                json!({
                    "replicas": 1,
                    "podManagementPolicy": "OrderedReady",
                    "revisionHistoryLimit": 10,
                    "persistentVolumeClaimRetentionPolicy": retain,
                }),
            );
            fill(spec, &["updateStrategy", "type"], "RollingUpdate".into());
            rolling(&mut spec["updateStrategy"], json!({ "partition": 0 }));
            items(spec, "volumeClaimTemplates").for_each(fill_claim_template);
        }
        "daemonsets" => {
            fill(spec, &["revisionHistoryLimit"], 10.into());
            fill(spec, &["updateStrategy", "type"], "RollingUpdate".into());
            rolling(&mut spec["updateStrategy"], json!({ "maxUnavailable": 1, "maxSurge": 0 }));
        }
        "jobs" => fill_job(spec),
        "cronjobs" => {
            fill_all(
                spec,
                json!({
                    "concurrencyPolicy": "Allow",
                    "suspend": false,
                    "successfulJobsHistoryLimit": 3,
                    "failedJobsHistoryLimit": 1,
                }),
            );
            fill(spec, &["jobTemplate", "metadata"], json!({}));
            if let Some(job) = part(&mut spec["jobTemplate"], "spec") {
                pods::fill_template(job, "template");
            }
        }
        _ => {}
    }
    pods::fill_template(spec, "template");
}

/// Sets the fields that only a new workload gets.
pub(super) fn prepare_create(plural: &str, object: &mut Value) {
    if plural == "jobs" {
        let labels = object["spec"]["template"]["metadata"]["labels"].clone();
        select_own_pods(object);
        let all = object["spec"]["template"]["metadata"]["labels"].clone();
        let metadata = metadata_mut(object);
        if !metadata.contains_key("labels") {
            metadata.insert("labels".into(), if labels.is_object() { labels } else { all });
        }
    }
    object["status"] = first_status(plural);
}

/// Labels and selector of a ReplicationController default to the labels of its template.
fn take_labels(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() {
        fill(object, &["metadata", "labels"], labels.clone());
        fill(object, &["spec", "selector"], labels);
    }
}

/// A Job labels its pods with its uid, and selects them by this label.
fn select_own_pods(job: &mut Value) {
    let (name, uid) = (Meta(job).name().to_owned(), Meta(job).uid().to_owned());
    let Some(spec) = part(job, "spec").filter(|spec| spec["manualSelector"] != true) else { return };
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        fill(spec, &["template", "metadata", "labels", label], value.as_str().into());
    }
    fill(spec, &["selector", "matchLabels", "batch.kubernetes.io/controller-uid"], uid.into());
}

/// The initial status of a workload.
fn first_status(plural: &str) -> Value {
    match plural {
        "replicasets" | "replicationcontrollers" => json!({ "replicas": 0 }),
        "statefulsets" => json!({ "replicas": 0, "availableReplicas": 0 }),
        "daemonsets" => json!({
            "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
        }),
        _ => json!({}),
    }
}

fn rolling(strategy: &mut Value, defaults: Value) {
    if strategy["type"] == "RollingUpdate" {
        fill(strategy, &["rollingUpdate"], json!({}));
        fill_all(&mut strategy["rollingUpdate"], defaults);
    }
}

fn fill_claim_template(claim: &mut Value) {
    fill_all(claim, json!({ "kind": "PersistentVolumeClaim", "apiVersion": "v1" }));
    fill(claim, &["spec", "volumeMode"], "Filesystem".into());
    fill(claim, &["status", "phase"], "Pending".into());
}

fn fill_job(spec: &mut Value) {
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        fill(spec, &["completions"], 1.into());
    }
    fill_all(
        spec,
        json!({
            "parallelism": 1,
            "backoffLimit": 6,
            "manualSelector": false,
            "completionMode": "NonIndexed",
            "suspend": false,
            "podReplacementPolicy": "TerminatingOrFailed",
        }),
    );
}
