//! Converts between JSON and stored objects.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};
use serve::{Labels, Object};

/// The order of an object's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The order of built-in kinds in a real server: `metadata` first, its members as in the type `ObjectMeta`.
    Declared,
    /// The order of custom resources: sorted by name.
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

/// Makes a stored object from JSON, and sets the revision in both. 0 is for objects that are not stored.
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
    let body = body(members(metadata), members(object), order);
    Object { namespace: text("namespace"), name: text("name"), revision, labels, body }
}

fn members(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter).map(|(name, value)| (name.as_str(), value))
}

/// The JSON of an object, without kind and version.
pub(crate) fn decode(object: &Object) -> Value {
    let mut text = Vec::with_capacity(object.body.len() + 1);
    text.push(b'{');
    text.extend_from_slice(&object.body);
    // `body` has written this text.
    serde_json::from_slice(&text).unwrap_or_default()
}

/// The members of an object without kind and version, and the closing brace.
pub(super) fn body<'a, V: Serialize + 'a>(
    metadata: impl Iterator<Item = (&'a str, &'a V)>,
    others: impl Iterator<Item = (&'a str, &'a V)>,
    order: Order,
) -> Bytes {
    let mut out = Vec::with_capacity(1024);
    let declared = order == Order::Declared;
    let mut metadata = Some(in_order(if declared { &METADATA } else { &[] }, metadata));
    let others = others.filter(|(name, _)| !matches!(*name, "kind" | "apiVersion" | "metadata"));
    for (name, value) in in_order(&[], others) {
        if let Some(metadata) = metadata.take_if(|_| declared || name > "metadata") {
            write_metadata(&mut out, metadata);
        }
        write_member(&mut out, name, value);
    }
    if let Some(metadata) = metadata {
        write_metadata(&mut out, metadata);
    }
    out.push(b'}');
    out.shrink_to_fit();
    out.into()
}

/// The members in `first`, in this order, and then the others.
fn in_order<'a, V>(first: &[&str], members: impl Iterator<Item = (&'a str, V)>) -> Vec<(&'a str, V)> {
    let mut members: Vec<_> = members.collect();
    members.sort_by_key(|(name, _)| (rank(first, name), *name));
    members
}

fn write_metadata<V: Serialize>(out: &mut Vec<u8>, members: Vec<(&str, &V)>) {
    separate(out);
    out.extend_from_slice(b"\"metadata\":{");
    for (name, value) in members {
        write_member(out, name, value);
    }
    out.push(b'}');
}

fn write_member<V: Serialize>(out: &mut Vec<u8>, name: &str, value: &V) {
    separate(out);
    write(out, name);
    out.push(b':');
    write(out, value);
}

fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'{')) {
        out.push(b',');
    }
}

fn rank(first: &[&str], name: &str) -> usize {
    first.iter().position(|candidate| *candidate == name).unwrap_or(first.len())
}

/// Writing JSON to memory cannot fail.
fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(out, value);
}
