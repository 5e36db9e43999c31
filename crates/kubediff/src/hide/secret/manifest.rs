//! The parts of a Secret that are shown: its owner, and the names of its fields.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::marker::Marker;

/// The kind of object that a map names itself.
pub(super) enum Kind {
    /// A Secret, or a part of one: `stringData` without a kind.
    Secret,
    /// A list of Secrets, the elements of which need not say so.
    List,
    Other,
}

impl Kind {
    pub(super) fn of(map: &Map<String, Value>) -> Self {
        let (mut kind, mut has_data) = (None, false);
        // Most maps are small, and most names have other lengths: this is quicker than two searches in order.
        for (name, value) in map {
            match name.as_str() {
                "kind" => kind = Some(value),
                "stringData" => has_data = value.is_object(),
                _ => {}
            }
        }
        match kind {
            Some(kind) if kind == "Secret" => Self::Secret,
            Some(kind) if kind == "SecretList" => Self::List,
            None if has_data => Self::Secret,
            _ => Self::Other,
        }
    }
}

/// Whether this is a Secret.
pub(super) fn is_secret(map: &Map<String, Value>) -> bool {
    matches!(Kind::of(map), Kind::Secret)
}

/// Replaces every value of a Secret but name, namespace, uid, type, versions, times, owners and managers.
pub(super) fn hide(marker: Marker<'_>, secret: &mut Value) {
    let Value::Object(map) = secret else { return everything(marker, secret) };
    for (name, value) in map.iter_mut() {
        match (name.as_str(), value) {
            ("kind" | "name" | "namespace" | "uid" | "type", Value::String(_)) => {}
            ("apiVersion", Value::String(text)) if is_api_version(text) => {}
            ("resourceVersion", Value::String(text)) if is_number(text) => {}
            ("metadata", Value::Object(metadata)) => self::metadata(marker, metadata),
            ("data", Value::Object(data)) => data.values_mut().for_each(|value| encoded(marker, value)),
            (_, value) => everything(marker, value),
        }
    }
}

fn metadata(marker: Marker<'_>, metadata: &mut Map<String, Value>) {
    for (name, value) in metadata.iter_mut() {
        match (name.as_str(), value) {
            ("name" | "generateName" | "namespace" | "uid", Value::String(_)) => {}
            ("resourceVersion", Value::String(text)) if is_number(text) => {}
            ("generation" | "deletionGracePeriodSeconds", Value::Number(_)) => {}
            ("creationTimestamp" | "deletionTimestamp", Value::String(text)) if is_time(text) => {}
            ("ownerReferences", Value::Array(owners)) => {
                const SHOWN: &[&str] = &["apiVersion", "kind", "name", "uid"];
                owners.iter_mut().for_each(|owner| all_but(marker, SHOWN, owner));
            }
            ("managedFields", Value::Array(entries)) => {
                entries.iter_mut().for_each(|entry| manager(marker, entry));
            }
            (_, value) => everything(marker, value),
        }
    }
}

fn all_but(marker: Marker<'_>, shown: &[&str], value: &mut Value) {
    match value {
        Value::Object(map) => map
            .iter_mut()
            .filter(|(name, value)| !(shown.contains(&name.as_str()) && value.is_string()))
            .for_each(|(_, value)| everything(marker, value)),
        other => everything(marker, other),
    }
}

fn manager(marker: Marker<'_>, entry: &mut Value) {
    if let Some(fields) = entry.get_mut("fieldsV1") {
        owned(fields);
    }
    const SHOWN: &[&str] = &["manager", "operation", "apiVersion", "time", "fieldsType", "subresource"];
    all_but(marker, SHOWN, entry);
}

/// Of the fields that a manager owns their names are kept, but no elements of lists: those are named by their values.
fn owned(fields: &mut Value) {
    if let Value::Object(map) = fields {
        map.retain(|name, _| name.starts_with("f:") || name.starts_with("k:{\"uid\":") || name == ".");
        map.values_mut().for_each(owned);
    }
}

/// Hides a value of `data`: by its bytes, so that it has the hash of the same value in `stringData`.
fn encoded(marker: Marker<'_>, value: &mut Value) {
    match value {
        Value::String(text) => {
            let hidden =
                BASE64.decode(&*text).map_or_else(|_| marker.hidden(text), |bytes| marker.bytes(&bytes));
            *value = hidden.into();
        }
        other => everything(marker, other),
    }
}

/// Hides every text and number in `value`. Empty values stay.
pub(super) fn everything(marker: Marker<'_>, value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => *value = marker.hidden(text).into(),
        Value::Number(number) => *value = marker.hidden(&number.to_string()).into(),
        Value::Array(list) => list.iter_mut().for_each(|element| everything(marker, element)),
        Value::Object(map) => map.values_mut().for_each(|value| everything(marker, value)),
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
