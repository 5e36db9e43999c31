//! The kinds with a generation, and the changes that increment it.

use serde_json::Value;

use crate::turn::Target;

/// Whether objects of the kind have a generation.
pub(crate) fn has_generation(target: &Target) -> bool {
    if target.definition.is_some() {
        return true;
    }
    let plural = &*target.resource.plural;
    match &*target.resource.group {
        "" => matches!(plural, "pods" | "podtemplates" | "replicationcontrollers"),
        "apps" => plural != "controllerrevisions",
        "batch" | "discovery.k8s.io" | "policy" | "scheduling.k8s.io" => true,
        "networking.k8s.io" => matches!(plural, "ingresses" | "ingressclasses" | "networkpolicies"),
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" | "flowcontrol.apiserver.k8s.io" => true,
        "resource.k8s.io" => matches!(plural, "resourceslices" | "deviceclasses"),
        _ => false,
    }
}

/// Whether a change increments the generation.
pub(crate) fn is_new_generation(target: &Target, before: &Value, object: &Value) -> bool {
    if !has_generation(target) || target.status {
        return false;
    }
    // `kubectl rollout restart` changes an annotation of a deployment.
    let annotations = |object: &Value| object["metadata"]["annotations"].clone();
    if target.is("apps", "deployments") && annotations(before) != annotations(object) {
        return true;
    }
    content(target, before) != content(target, object)
}

/// The members except metadata and status.
fn content<'a>(target: &Target, object: &'a Value) -> Vec<(&'a String, &'a Value)> {
    let apart = |name: &str| {
        matches!(name, "metadata" | "kind" | "apiVersion") || name == "status" && target.has_status()
    };
    let members = object.as_object().into_iter().flatten();
    let mut members: Vec<_> = members.filter(|(name, _)| !apart(name)).collect();
    members.sort_by_key(|(name, _)| *name);
    members
}
