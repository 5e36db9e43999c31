//! JSON Merge Patch (RFC 7396), as the API server's library implements it.

use serde_json::{Map, Value};

use crate::object::remove_nulls;

/// Applies a merge patch: objects are merged, null removes, everything else replaces.
///
/// ```
/// use serde_json::json;
///
/// let mut object = json!({"spec": {"replicas": 1, "paused": true}});
/// testapi::patch::merge(&mut object, json!({"spec": {"replicas": 2, "paused": null}}));
/// assert_eq!(object, json!({"spec": {"replicas": 2}}));
/// ```
pub fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_members(target, patch),
        (target @ Value::Object(_), patch) => *target = patch,
        (target, mut patch) => {
            remove_nulls(&mut patch);
            *target = patch;
        }
    }
}

fn merge_members(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, mut value) in patch {
        match target.get_mut(&name) {
            _ if value.is_null() => {
                target.remove(&name);
            }
            Some(current) if !current.is_null() => merge(current, value),
            _ => {
                remove_nulls(&mut value);
                target.insert(name, value);
            }
        }
    }
}
