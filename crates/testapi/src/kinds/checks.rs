//! Validation of built-in kinds, in part.

use serde_json::Value;

use super::pods;
use crate::definitions;
use crate::refusal::FieldError;
use crate::turn::Target;

/// The errors of an object, and of its change if it existed before.
///
/// `below` is the subresource of the write: some subresources exist to change fields of a pod that are immutable
/// otherwise.
pub(crate) fn errors(
    target: &Target,
    before: Option<&Value>,
    object: &Value,
    below: Option<&str>,
) -> Vec<FieldError> {
    if let Some(definition) = &target.definition {
        return definition.object_errors(&target.resource.version, object);
    }
    if target.status {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let plural = &*target.resource.plural;
    match (&*target.resource.group, plural) {
        ("", "pods") => {
            errors.extend(containers("spec", &object["spec"]));
            if !matches!(below, Some("ephemeralcontainers" | "resize")) {
                errors.extend(before.and_then(|before| pod_change(before, object)));
            }
        }
        ("", "configmaps" | "secrets") => {
            errors.extend(before.into_iter().flat_map(|then| kept(plural, then, object)))
        }
        ("", "services") => errors.extend(service(before, object)),
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets") => {
            errors.extend(workload(before, object));
        }
        ("batch", "jobs") => {
            errors.extend(containers("spec.template.spec", &object["spec"]["template"]["spec"]))
        }
        ("apiextensions.k8s.io", _) => errors.extend(definitions::errors(before, object)),
        _ => {}
    }
    errors
}

fn containers(path: &str, spec: &Value) -> Option<FieldError> {
    let none = spec["containers"].as_array().is_none_or(Vec::is_empty);
    none.then(|| FieldError::required(format!("{path}.containers"), ""))
}

/// Few fields of a pod's spec can be changed. The real server adds a diff in Go syntax to the message.
fn pod_change(before: &Value, object: &Value) -> Option<FieldError> {
    const WHY: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
        `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
        tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    let fixed = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        // A pod that was loaded (`Api::load`) has no defaults yet.
        pods::fill_pod(&mut spec);
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(container) = container.as_object_mut() {
                    container.remove("image");
                }
            }
        }
        if let Some(spec) = spec.as_object_mut() {
            // Fields that admission has set may be missing in the update.
            for name in
                ["activeDeadlineSeconds", "enableServiceLinks", "tolerations", "priority", "preemptionPolicy"]
            {
                spec.remove(name);
            }
        }
        spec
    };
    let changed = before["spec"] != object["spec"] && fixed(before) != fixed(object);
    changed.then(|| FieldError::forbidden("spec", WHY))
}

/// Changes of immutable ConfigMaps and Secrets, and of the type of a Secret.
fn kept(plural: &str, before: &Value, object: &Value) -> Vec<FieldError> {
    const WHY: &str = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    if plural == "secrets" && before["type"] != object["type"] {
        errors.push(FieldError::invalid("type", &object["type"], "field is immutable"));
    }
    if before["immutable"] == true {
        if object["immutable"] != true {
            errors.push(FieldError::forbidden("immutable", WHY));
        }
        for name in ["data", "binaryData"] {
            if before[name] != object[name] {
                errors.push(FieldError::forbidden(name, WHY));
            }
        }
    }
    errors
}

fn service(before: Option<&Value>, object: &Value) -> Option<FieldError> {
    let (spec, then) = (&object["spec"], before.map(|before| &before["spec"]));
    let headless = spec["clusterIP"] == "None" || spec["type"] == "ExternalName";
    if !headless && spec["ports"].as_array().is_none_or(Vec::is_empty) {
        return Some(FieldError::required("spec.ports", ""));
    }
    let moved =
        then.is_some_and(|then| then["clusterIP"].is_string() && then["clusterIP"] != spec["clusterIP"]);
    (moved && !headless && then.is_some_and(|then| then["type"] != "ExternalName"))
        .then(|| FieldError::invalid("spec.clusterIPs[0]", &spec["clusterIPs"], "may not change once set"))
}

fn workload(before: Option<&Value>, object: &Value) -> Vec<FieldError> {
    let (selector, template) = (&object["spec"]["selector"], &object["spec"]["template"]);
    let mut errors = Vec::new();
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    }
    let labels = &template["metadata"]["labels"];
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let mut wanted = wanted.map(|(name, value)| labels.get(name) == Some(value));
    if selector.is_null() || !wanted.all(|fits| fits) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, why));
    }
    errors.extend(containers("spec.template.spec", &template["spec"]));
    if before.is_some_and(|before| before["spec"]["selector"] != *selector) {
        errors.push(FieldError::invalid("spec.selector", selector, "field is immutable"));
    }
    errors
}
