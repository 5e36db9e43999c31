//! The server's additions to a definition.

use serde_json::{Value, json};

use crate::object::{Meta, metadata_mut};

/// The finalizer of a definition that is being deleted and still has objects.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Sets the defaults of a definition.
pub(crate) fn fill_in(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if spec["names"].is_object() {
        let missing = |name: &Value| name.as_str().unwrap_or_default().is_empty();
        if missing(&spec["names"]["singular"]) && !kind.is_empty() {
            spec["names"]["singular"] = kind.to_lowercase().into();
        }
        if missing(&spec["names"]["listKind"]) && !kind.is_empty() {
            spec["names"]["listKind"] = format!("{kind}List").into();
        }
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({ "strategy": "None" });
    }
}

/// Sets the status of a new definition.
pub(crate) fn prepare_create(object: &mut Value) {
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Vec<Value> = versions
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    object["status"] = json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": stored });
}

/// Marks a definition as being deleted. It stays until its objects are removed.
pub(crate) fn terminate(object: &mut Value, now: &str) {
    if Meta(object).is_being_deleted() {
        return;
    }
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".into(), now.into());
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut() {
        finalizers.push(CLEANUP.into());
    }
    let terminating = json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now,
        "reason": "InstanceDeletionPending", "message": "CustomResourceDefinition marked for deletion; \
            CustomResource deletion will begin soon",
    });
    if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.push(terminating);
    }
}
