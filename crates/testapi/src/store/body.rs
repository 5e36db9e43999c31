//! Between an object as JSON and an object as it is kept.

use bytes::Bytes;
use serde_json::{Map, Value};
use serve::{Labels, Object};

/// In which order the members of an object are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// As built-in kinds come from a real server: `metadata` first, its members as in the type `ObjectMeta`.
    Declared,
    /// As custom resources come: sorted by name.
    Sorted,
}

/// The members of `ObjectMeta`, in their order.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// An object as it is kept, from its JSON, which gets the revision; 0 is none, for what is never kept.
pub(crate) fn encode(object: &mut Value, revision: u64, order: Order) -> Object {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.remove("resourceVersion");
        if revision > 0 {
            metadata.insert("resourceVersion".into(), revision.to_string().into());
        }
    }
    let metadata = &object["metadata"];
    let text = |name: &str| metadata[name].as_str().unwrap_or_default().into();
    let labels = metadata["labels"].as_object().into_iter().flatten();
    let labels: Labels =
        labels.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default())).collect();
    Object { namespace: text("namespace"), name: text("name"), revision, labels, body: body(object, order) }
}

/// The JSON of an object, without kind and version.
pub(crate) fn decode(object: &Object) -> Value {
    let mut text = Vec::with_capacity(object.body.len() + 1);
    text.push(b'{');
    text.extend_from_slice(&object.body);
    // What is kept was written by `body`.
    serde_json::from_slice(&text).unwrap_or_default()
}

fn body(object: &Value, order: Order) -> Bytes {
    let mut out = Vec::with_capacity(1024);
    let empty = Map::new();
    let members = object.as_object().unwrap_or(&empty);
    let first: &[&str] = if order == Order::Declared { &["metadata"] } else { &[] };
    let mut members: Vec<_> =
        members.iter().filter(|(name, _)| !matches!(name.as_str(), "kind" | "apiVersion")).collect();
    members.sort_by_key(|(name, _)| (rank(first, name), *name));
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(&mut out, name);
        out.push(b':');
        match value {
            Value::Object(metadata) if name == "metadata" && order == Order::Declared => {
                write_metadata(&mut out, metadata);
            }
            _ => write(&mut out, value),
        }
    }
    out.push(b'}');
    out.shrink_to_fit();
    out.into()
}

fn write_metadata(out: &mut Vec<u8>, metadata: &Map<String, Value>) {
    let mut members: Vec<_> = metadata.iter().collect();
    members.sort_by_key(|(name, _)| (rank(&METADATA, name), *name));
    out.push(b'{');
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, name);
        out.push(b':');
        write(out, value);
    }
    out.push(b'}');
}

fn rank(first: &[&str], name: &str) -> usize {
    first.iter().position(|candidate| *candidate == name).unwrap_or(first.len())
}

/// Memory takes everything, and JSON can always be written as JSON.
fn write<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(out, value);
}
