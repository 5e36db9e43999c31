//! The entries of `metadata.managedFields`.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use super::owned::Owned;
use super::set::FieldSet;

/// The key of an entry. There is one entry for each owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) manager: String,
    pub(super) kind: Kind,
    /// Empty for `Apply`, which has one entry for all versions.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

/// The operation of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Apply,
    Update,
}

/// The fields of an owner.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) api_version: String,
    pub(super) fields: Owned,
    /// The time of the last change.
    pub(super) time: Option<String>,
}

/// All entries of an object.
pub(super) type Entries = BTreeMap<Owner, Entry>;

/// Decodes the entries that a client has sent, including their fields; `None` if they are malformed.
pub(super) fn read_closely(object: &Value) -> Option<Entries> {
    let mut entries = read(object)?;
    for entry in entries.values_mut() {
        if let Owned::Encoded(fields) = &entry.fields {
            entry.fields = Owned::Set(FieldSet::decode(fields).ok()?);
        }
    }
    Some(entries)
}

/// Decodes the entries of an object; `None` if they are malformed.
pub(super) fn read(object: &Value) -> Option<Entries> {
    let mut entries = Entries::new();
    for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let kind = match entry["operation"].as_str()? {
            "Apply" => Kind::Apply,
            "Update" => Kind::Update,
            _ => return None,
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() || entry["fieldsType"] != "FieldsV1" {
            return None;
        }
        let owner = Owner {
            manager: text("manager"),
            kind,
            api_version: if kind == Kind::Apply { String::new() } else { api_version.clone() },
            subresource: text("subresource"),
        };
        let fields = Owned::Encoded(entry["fieldsV1"].clone());
        let time = entry["time"].as_str().map(str::to_owned);
        entries.insert(owner, Entry { api_version, fields, time });
    }
    Some(entries)
}

/// Writes the entries of an object; removes `metadata.managedFields` if there are none.
pub(super) fn write(object: &mut Value, entries: impl IntoIterator<Item = (Owner, Entry)>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("managedFields");
    let mut sorted: Vec<(Owner, Entry)> = entries.into_iter().collect();
    if sorted.is_empty() {
        return;
    }
    sorted.sort_by(|(left_owner, left), (right_owner, right)| {
        left_owner
            .kind
            .cmp(&right_owner.kind)
            .then_with(|| left.time.cmp(&right.time))
            .then_with(|| left_owner.manager.cmp(&right_owner.manager))
            .then_with(|| left.api_version.cmp(&right.api_version))
            .then_with(|| left_owner.subresource.cmp(&right_owner.subresource))
    });
    let written = sorted.into_iter().map(|(owner, entry)| encode(&owner, entry)).collect();
    metadata.insert("managedFields".to_owned(), Value::Array(written));
}

fn encode(owner: &Owner, entry: Entry) -> Value {
    let mut encoded = Map::new();
    let mut text = |name: &str, value: &str| {
        if !value.is_empty() {
            encoded.insert(name.to_owned(), value.into());
        }
    };
    text("manager", &owner.manager);
    text("operation", if owner.kind == Kind::Apply { "Apply" } else { "Update" });
    text("apiVersion", &entry.api_version);
    text("time", entry.time.as_deref().unwrap_or_default());
    text("fieldsType", "FieldsV1");
    text("subresource", &owner.subresource);
    encoded.insert("fieldsV1".to_owned(), entry.fields.encode());
    Value::Object(encoded)
}

/// Whether an object clears its entries. For custom kinds the server does not distinguish an empty list from a missing
/// one.
pub(super) fn says_none(object: &Value, is_structure: bool) -> bool {
    match &object["metadata"]["managedFields"] {
        Value::Array(entries) => match &entries[..] {
            [] => is_structure,
            [only] => *only == json!({}),
            _ => false,
        },
        _ => false,
    }
}

/// The name in messages: `"kubectl" with subresource "status" using apps/v1`.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        if self.kind == Kind::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}
