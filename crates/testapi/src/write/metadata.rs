//! An object's metadata, read and written in JSON.

use serde_json::{Map, Value};

/// The metadata of an object, made if it is missing.
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

/// The metadata of an object, read.
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
