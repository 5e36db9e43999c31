//! The parts of a Secret that are shown: its owner, and the names of its fields.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::key::HashKey;
use super::marker::hidden;

/// Whether this is a Secret, or says that it is.
pub(super) fn is_secret(map: &Map<String, Value>) -> bool {
    map.get("kind").is_some_and(|kind| kind == "Secret")
}

/// Whether this is a list of Secrets, the elements of which need not say so.
pub(super) fn is_list(map: &Map<String, Value>) -> bool {
    map.get("kind").is_some_and(|kind| kind == "SecretList")
}

/// Replaces every value of a Secret but name, namespace, uid, type, versions, times, owners and managers.
pub(super) fn hide(key: &HashKey, secret: &mut Value) {
    let Value::Object(map) = secret else { return everything(key, secret) };
    for (name, value) in map.iter_mut() {
        match (name.as_str(), value) {
            ("kind" | "name" | "namespace" | "uid" | "type", Value::String(_)) => {}
            ("apiVersion", Value::String(text)) if is_api_version(text) => {}
            ("resourceVersion", Value::String(text)) if is_number(text) => {}
            ("metadata", Value::Object(metadata)) => self::metadata(key, metadata),
            ("data", Value::Object(data)) => data.values_mut().for_each(|value| encoded(key, value)),
            (_, value) => everything(key, value),
        }
    }
}

fn metadata(key: &HashKey, metadata: &mut Map<String, Value>) {
    for (name, value) in metadata.iter_mut() {
        match (name.as_str(), value) {
            ("name" | "generateName" | "namespace" | "uid", Value::String(_)) => {}
            ("resourceVersion", Value::String(text)) if is_number(text) => {}
            ("generation" | "deletionGracePeriodSeconds", Value::Number(_)) => {}
            ("creationTimestamp" | "deletionTimestamp", Value::String(text)) if is_time(text) => {}
            ("ownerReferences", Value::Array(owners)) => {
                const SHOWN: &[&str] = &["apiVersion", "kind", "name", "uid"];
                owners.iter_mut().for_each(|owner| all_but(key, SHOWN, owner));
            }
            ("managedFields", Value::Array(entries)) => {
                entries.iter_mut().for_each(|entry| manager(key, entry));
            }
            (_, value) => everything(key, value),
        }
    }
}

fn all_but(key: &HashKey, shown: &[&str], value: &mut Value) {
    match value {
        Value::Object(map) => map
            .iter_mut()
            .filter(|(name, value)| !(shown.contains(&name.as_str()) && value.is_string()))
            .for_each(|(_, value)| everything(key, value)),
        other => everything(key, other),
    }
}

fn manager(key: &HashKey, entry: &mut Value) {
    if let Some(fields) = entry.get_mut("fieldsV1") {
        owned(fields);
    }
    const SHOWN: &[&str] = &["manager", "operation", "apiVersion", "time", "fieldsType", "subresource"];
    all_but(key, SHOWN, entry);
}

/// Of the fields that a manager owns their names are kept, but no elements of lists: those are named by their values.
fn owned(fields: &mut Value) {
    if let Value::Object(map) = fields {
        map.retain(|name, _| name.starts_with("f:") || name.starts_with("k:{\"uid\":") || name == ".");
        map.values_mut().for_each(owned);
    }
}

/// Hides a value of `data`: by its bytes, so that it has the hash of the same value in `stringData`.
fn encoded(key: &HashKey, value: &mut Value) {
    match value {
        Value::String(text) => {
            let bytes = BASE64.decode(&*text).unwrap_or_else(|_| text.clone().into_bytes());
            *value = hidden(key, &bytes).into();
        }
        other => everything(key, other),
    }
}

/// Hides every text and number in `value`. Empty values stay.
pub(super) fn everything(key: &HashKey, value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => *value = hidden(key, text.as_bytes()).into(),
        Value::Number(number) => *value = hidden(key, number.to_string().as_bytes()).into(),
        Value::Array(list) => list.iter_mut().for_each(|element| everything(key, element)),
        Value::Object(map) => map.values_mut().for_each(|value| everything(key, value)),
    }
}

/// `v1`, `example.com/v1beta1`.
fn is_api_version(text: &str) -> bool {
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    let is_group = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
    let mut parts = version.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty());
    group.chars().all(is_group)
        && version.len() <= 12
        && version.starts_with('v')
        && version.ends_with(|c: char| c.is_ascii_digit())
        && parts.all(|part| matches!(part, "v" | "alpha" | "beta"))
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_time(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}
