//! Objects as the history has them.

use kubediff_history::{Gvk, ObjectId, Version};
use serde_json::{Value, json};

use crate::Redacted;

/// The object of a version, with its kind.
pub(crate) fn object(version: &Version) -> Redacted<Value> {
    let mut object = version.body.value();
    name_kind(&mut object, &version.object.gvk);
    // A history takes redacted objects only.
    Redacted::vouched(object)
}

/// `deployments.apps shop/cart`.
pub(crate) fn full_name(object: &ObjectId) -> String {
    let resource = object.qualified_resource();
    match &object.namespace {
        Some(namespace) => format!("{resource} {namespace}/{}", object.name),
        None => format!("{resource} {}", object.name),
    }
}

/// The object of a version for people who want to read or apply it.
pub(crate) fn shown(version: &Version, managed_fields: bool) -> Value {
    let mut object = object(version).into_inner();
    if !managed_fields && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Items of a list do not always say what they are.
fn name_kind(object: &mut Value, gvk: &Gvk) {
    if let Some(map) = object.as_object_mut() {
        map.entry("apiVersion").or_insert_with(|| json!(gvk.api_version()));
        map.entry("kind").or_insert_with(|| json!(gvk.kind));
    }
}
