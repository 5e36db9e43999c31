//! Defaults of kinds that need no other code.

use serde_json::{Value, json};

use super::fill::{fill, fill_all, items, part};
use super::{pods, services, workloads};
use crate::definitions;
use crate::turn::Target;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Sets the defaults of an object, new or not.
pub(super) fn fill_in(target: &Target, object: &mut Value) {
    let plural = &*target.resource.plural;
    match (&*target.resource.group, plural) {
        ("", "pods") => {
            if let Some(spec) = part(object, "spec") {
                pods::fill_pod(spec);
            }
        }
        ("", "podtemplates") => pods::fill_template(object, "template"),
        ("apps" | "batch", _) | ("", "replicationcontrollers") => workloads::fill_spec(plural, object),
        ("", "services") => services::fill_spec(object),
        ("apiextensions.k8s.io", _) => definitions::fill_in(object),
        ("", "secrets") => fill(object, &["type"], "Opaque".into()),
        ("", "endpoints") => items(object, "subsets").for_each(|subset| {
            items(subset, "ports").for_each(|port| fill(port, &["protocol"], "TCP".into()))
        }),
        ("", "events") => fill_all(
            object,
            json!({ "source": {}, "reportingComponent": "", "reportingInstance": "", "firstTimestamp": null,
                "lastTimestamp": null, "eventTime": null }),
        ),
        ("", "persistentvolumes") => {
            fill(object, &["spec", "persistentVolumeReclaimPolicy"], "Retain".into());
            fill(object, &["spec", "volumeMode"], "Filesystem".into());
            if object["spec"]["hostPath"].is_object() {
                fill(object, &["spec", "hostPath", "type"], "".into());
            }
        }
        ("", "persistentvolumeclaims") => fill(object, &["spec", "volumeMode"], "Filesystem".into()),
        ("", "limitranges") => {
            if let Some(spec) = part(object, "spec") {
                items(spec, "limits").for_each(fill_limit);
            }
        }
        ("discovery.k8s.io", "endpointslices") => {
            items(object, "ports").for_each(|port| fill_all(port, json!({ "name": "", "protocol": "TCP" })));
            items(object, "endpoints").for_each(|endpoint| fill(endpoint, &["conditions"], json!({})));
        }
        ("networking.k8s.io", "networkpolicies") => fill_network_policy(object),
        ("autoscaling", _) => {
            fill(object, &["spec", "minReplicas"], 1.into());
            let target = json!({ "type": "Utilization", "averageUtilization": 80 });
            let cpu = json!([{ "type": "Resource", "resource": { "name": "cpu", "target": target } }]);
            fill(object, &["spec", "metrics"], cpu);
        }
        (RBAC, "rolebindings" | "clusterrolebindings") => {
            fill(object, &["roleRef", "apiGroup"], RBAC.into());
            for subject in items(object, "subjects") {
                if subject["kind"] != "ServiceAccount" {
                    fill(subject, &["apiGroup"], RBAC.into());
                }
            }
        }
        ("storage.k8s.io", "storageclasses") => {
            fill_all(object, json!({ "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate" }));
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            fill(object, &["preemptionPolicy"], "PreemptLowerPriority".into());
        }
        ("admissionregistration.k8s.io", _) => items(object, "webhooks").for_each(fill_webhook),
        _ => {}
    }
}

/// The initial status of a kind; `None` for kinds without one.
pub(super) fn first_status(target: &Target, now: &str) -> Option<Value> {
    let empty = || Some(json!({}));
    match (&*target.resource.group, &*target.resource.plural) {
        ("", "nodes") => {
            let names = [
                "machineID",
                "systemUUID",
                "bootID",
                "kernelVersion",
                "osImage",
                "containerRuntimeVersion",
                "kubeletVersion",
                "kubeProxyVersion",
                "operatingSystem",
                "architecture",
            ];
            let info: serde_json::Map<_, _> = names.iter().map(|name| ((*name).into(), "".into())).collect();
            Some(json!({ "daemonEndpoints": { "kubeletEndpoint": { "Port": 0 } }, "nodeInfo": info }))
        }
        ("", "persistentvolumes") => Some(json!({ "phase": "Pending", "lastPhaseTransitionTime": now })),
        ("", "persistentvolumeclaims") => Some(json!({ "phase": "Pending" })),
        ("networking.k8s.io", "ingresses") => Some(json!({ "loadBalancer": {} })),
        ("policy", _) => Some(json!({
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
        })),
        ("autoscaling", _) => Some(json!({ "desiredReplicas": 0, "currentMetrics": null })),
        ("", "resourcequotas") | ("certificates.k8s.io" | "apiregistration.k8s.io", _) => empty(),
        _ => None,
    }
}

fn fill_limit(limit: &mut Value) {
    if limit["type"] == "Container" {
        let defaults = limit["default"].as_object().cloned().into_iter().flatten();
        defaults.for_each(|(name, value)| fill(limit, &["defaultRequest", &name], value));
    }
}

fn fill_network_policy(object: &mut Value) {
    let Some(spec) = part(object, "spec") else { return };
    for rules in ["ingress", "egress"] {
        items(spec, rules)
            .for_each(|rule| items(rule, "ports").for_each(|port| fill(port, &["protocol"], "TCP".into())));
    }
    let egress = spec["egress"].as_array().is_some_and(|rules| !rules.is_empty());
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    fill(spec, &["policyTypes"], types);
    for name in ["ingress", "egress"] {
        if spec[name].is_null()
            && let Some(members) = spec.as_object_mut()
        {
            members.remove(name);
        }
    }
}

fn fill_webhook(webhook: &mut Value) {
    fill_all(
        webhook,
        json!({
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
            "timeoutSeconds": 10,
        }),
    );
    items(webhook, "rules").for_each(|rule| fill(rule, &["scope"], "*".into()));
}
