//! Defaults of pods and pod templates, and the fields that admission adds to a pod.

use serde_json::{Value, json};

use super::fill::{fill, fill_all, items, part};

/// Sets the fields of a new pod that its template lacks: defaults, those of the admission plugins for priorities and
/// tolerations, and the initial status.
pub(super) fn prepare_create(pod: &mut Value) {
    let toleration = |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
    if let Some(spec) = part(pod, "spec") {
        fill_all(spec, json!({ "priority": 0, "preemptionPolicy": "PreemptLowerPriority" }));
        fill(spec, &["tolerations"], json!([]));
        if let Some(tolerations) = spec["tolerations"].as_array_mut() {
            for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
                let tolerated = |toleration: &Value| {
                    let matches = toleration["key"] == key || toleration["key"].is_null();
                    matches && (toleration["effect"] == "NoExecute" || toleration["effect"].is_null())
                };
                if !tolerations.iter().any(tolerated) {
                    tolerations.push(toleration(key));
                }
            }
        }
    }
    pod["status"] = json!({ "phase": "Pending", "qosClass": quality(&pod["spec"]) });
}

/// Sets the defaults of a workload's pod template.
pub(super) fn fill_template(spec: &mut Value, name: &str) {
    if let Some(template) = part(spec, name) {
        fill(template, &["metadata"], json!({}));
        if let Some(spec) = part(template, "spec") {
            fill_spec(spec);
        }
    }
}

/// Sets the defaults of a pod's spec. Unlike in a template, requests default to limits.
pub(super) fn fill_pod(spec: &mut Value) {
    fill_spec(spec);
    for list in ["initContainers", "containers"] {
        for resources in items(spec, list).filter_map(|container| part(container, "resources")) {
            let limits = resources.get("limits").and_then(Value::as_object).cloned().into_iter().flatten();
            limits.for_each(|(name, limit)| fill(resources, &["requests", &name], limit));
        }
    }
    fill(spec, &["enableServiceLinks"], true.into());
}

/// Sets the defaults that the specs of pods and of templates share.
pub(super) fn fill_spec(spec: &mut Value) {
    fill_all(
        spec,
        json!({
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
        }),
    );
    for list in ["initContainers", "containers"] {
        items(spec, list).for_each(fill_container);
    }
    items(spec, "volumes").for_each(fill_volume);
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        fill(spec, &["serviceAccount"], account);
    }
}

fn fill_container(container: &mut Value) {
    let policy =
        if is_latest(container["image"].as_str().unwrap_or_default()) { "Always" } else { "IfNotPresent" };
    fill_all(
        container,
        json!({
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": policy,
        }),
    );
    items(container, "ports").for_each(|port| fill(port, &["protocol"], "TCP".into()));
    for variable in items(container, "env") {
        if variable["valueFrom"]["fieldRef"].is_object() {
            fill(variable, &["valueFrom", "fieldRef", "apiVersion"], "v1".into());
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = part(container, name) {
            fill_probe(probe);
        }
    }
    if let Some(resources) = part(container, "resources") {
        drop_null(resources);
    }
}

fn fill_probe(probe: &mut Value) {
    fill_all(
        probe,
        json!({ "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3 }),
    );
    if let Some(get) = part(probe, "httpGet") {
        fill_all(get, json!({ "path": "/", "scheme": "HTTP" }));
    }
}

fn fill_volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|members| members.len() == 1) {
        fill(volume, &["emptyDir"], json!({}));
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = part(volume, source) {
            fill(source, &["defaultMode"], 0o644.into());
        }
    }
    if let Some(path) = part(volume, "hostPath") {
        fill(path, &["type"], "".into());
    }
}

/// Whether an image has no tag or the tag `latest`.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// The QoS class of a pod, by the requests and limits of its containers.
fn quality(spec: &Value) -> &'static str {
    let containers = || {
        let list = |name: &str| spec[name].as_array().into_iter().flatten();
        list("initContainers").chain(list("containers")).map(|container| &container["resources"])
    };
    let says =
        |resources: &Value, what: &str| resources[what].as_object().is_some_and(|some| !some.is_empty());
    if !containers().any(|resources| says(resources, "limits") || says(resources, "requests")) {
        return "BestEffort";
    }
    let guaranteed = |resources: &Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = &resources["limits"][name];
            !limit.is_null()
                && (resources["requests"][name] == *limit || resources["requests"][name].is_null())
        })
    };
    if containers().all(guaranteed) { "Guaranteed" } else { "Burstable" }
}

fn drop_null(object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
}
