//! An object in JSON: its type, its metadata, and values in it by path.

use serde_json::{Map, Value, json};
use serve::{Object, Resource};

use crate::store::decode;

/// The metadata of an object; created if it is missing.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(metadata) => metadata,
        _ => unreachable!("it has just been made an object"),
    }
}

/// Read access to the metadata of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta<'a>(pub(crate) &'a Value);

impl<'a> Meta<'a> {
    fn text(self, name: &str) -> &'a str {
        self.0["metadata"][name].as_str().unwrap_or_default()
    }

    pub(crate) fn name(self) -> &'a str {
        self.text("name")
    }

    pub(crate) fn generate_name(self) -> &'a str {
        self.text("generateName")
    }

    pub(crate) fn namespace(self) -> &'a str {
        self.text("namespace")
    }

    pub(crate) fn uid(self) -> &'a str {
        self.text("uid")
    }

    pub(crate) fn resource_version(self) -> &'a str {
        self.text("resourceVersion")
    }

    pub(crate) fn generation(self) -> Option<i64> {
        self.0["metadata"]["generation"].as_i64()
    }

    pub(crate) fn is_being_deleted(self) -> bool {
        self.0["metadata"]["deletionTimestamp"].is_string()
    }

    pub(crate) fn grace_period(self) -> Option<i64> {
        self.0["metadata"]["deletionGracePeriodSeconds"].as_i64()
    }

    pub(crate) fn finalizers(self) -> Vec<&'a str> {
        let finalizers = self.0["metadata"]["finalizers"].as_array().into_iter().flatten();
        finalizers.filter_map(Value::as_str).collect()
    }
}

/// Sets a member, or removes it if there is no value.
pub(crate) fn set(metadata: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => metadata.insert(name.into(), value),
        None => metadata.remove(name),
    };
}

/// Sets a list of strings, or removes it if it is empty.
pub(crate) fn set_list(metadata: &mut Map<String, Value>, name: &str, list: &[String]) {
    set(metadata, name, (!list.is_empty()).then(|| list.into()));
}

/// An object's JSON with its kind and version.
pub(crate) fn typed(resource: &Resource, object: &Object) -> Value {
    let mut value = decode(object);
    set_type(resource, &mut value);
    value
}

pub(crate) fn set_type(resource: &Resource, object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert("kind".into(), (&*resource.kind).into());
        members.insert("apiVersion".into(), resource.api_version().into());
    }
}

/// Sets a value at a path (RFC 6901, without lists and escapes). Creates the objects on the way, and replaces other
/// values there. Indexing a `Value` that is not an object would panic.
pub(crate) fn set_pointer(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for part in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[part];
    }
    *at = value;
}

/// Removes null members, also of objects in lists. Null items of lists stay.
pub(crate) fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}
