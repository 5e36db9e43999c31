//! Finds the authors of each field, from the versions of one incarnation.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::record::{Incarnation, Manager, Number, ObjectId, Verb, Version};

/// A field of an object: the smallest thing that has an author.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name for people: `spec.containers[web].image`. Fields of two versions with the same path are the same field.
    pub path: String,
    /// Where it is in this version: a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// Its value.
    pub value: Value,
}

/// The fields of an object with their authors, as far as the history knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Blame {
    /// The object.
    pub object: ObjectId,
    /// When it was deleted or replaced.
    pub ended_at: Option<Timestamp>,
    /// The time of the first version here, when the object is older than that: earlier authors are unknown.
    pub starts_in_the_middle: Option<Timestamp>,
    /// Its fields, also those that were removed, by path.
    pub fields: Vec<FieldBlame>,
}

/// One field with its authors, as far as the history knows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldBlame {
    /// The field.
    pub path: String,
    /// Its value; `None` when it was removed.
    pub value: Option<Value>,
    /// When the field got this value, as far as it is known.
    pub since: Timestamp,
    /// The record that set this value.
    pub number: Number,
    /// Whether time and managers are known exactly: `false` means at that time or before it, probably by a manager that owns the field.
    pub exact: bool,
    /// The managers that may have set or removed it; empty if unknown.
    pub managers: Vec<Manager>,
    /// The managers that owned a removed field, where it is unknown who removed it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Manager>,
    /// The value before; `None` when there was none, or none is known.
    pub before: Option<Value>,
}

/// Collects versions, the oldest first.
pub(crate) struct Blaming<'a> {
    fields_of: &'a dyn Fn(&Value) -> Vec<Field>,
    found: BTreeMap<String, FieldBlame>,
    first: Option<(Timestamp, bool)>,
    /// The last version, and where its fields are in it.
    former: (Value, BTreeMap<String, String>),
}

impl<'a> Blaming<'a> {
    pub(crate) fn new(fields_of: &'a dyn Fn(&Value) -> Vec<Field>) -> Self {
        Self { fields_of, found: BTreeMap::new(), first: None, former: Default::default() }
    }

    pub(crate) fn version(&mut self, version: &Version) {
        let object = version.body.value();
        let verb = version.change.as_ref().map(|change| change.verb);
        let is_first = self.first.is_none();
        let exact = !is_first || matches!(verb, Some(Verb::Added | Verb::Recreated));
        self.first.get_or_insert((version.observed_at, exact));
        let wrote = match &version.change {
            Some(change) if exact => change.managers.as_slice(),
            _ => &[],
        };
        let blamed = |path: String, value, managers, owners, before| FieldBlame {
            path,
            value,
            since: version.observed_at,
            number: version.number,
            exact,
            managers,
            owners,
            before,
        };
        let mut before = std::mem::take(&mut self.found);
        let mut pointers = BTreeMap::new();
        for field in (self.fields_of)(&object) {
            let known = before.remove(&field.path);
            pointers.insert(field.path.clone(), field.pointer.clone());
            let entry = match known {
                Some(known) if known.value.as_ref() == Some(&field.value) => known,
                known => {
                    let managers = match exact {
                        true => authors(wrote, &object, &field.pointer),
                        false => owners(&object, &field.pointer),
                    };
                    let was = known.and_then(|known| known.value);
                    blamed(field.path, Some(field.value), managers, Vec::new(), was)
                }
            };
            self.found.insert(entry.path.clone(), entry);
        }
        for (path, known) in before {
            let entry = match known.value {
                None => known,
                Some(value) => {
                    let (former, pointers) = &self.former;
                    let owned = pointers.get(&path).filter(|_| wrote.is_empty());
                    let owners = owned.map(|pointer| owners(former, pointer)).unwrap_or_default();
                    blamed(path.clone(), None, wrote.to_vec(), owners, Some(value))
                }
            };
            self.found.insert(path, entry);
        }
        self.former = (object, pointers);
    }

    pub(crate) fn finish(self, incarnation: &Incarnation) -> Blame {
        Blame {
            object: incarnation.object.clone(),
            ended_at: incarnation.ended_at,
            starts_in_the_middle: self.first.filter(|(_, exact)| !exact).map(|(at, _)| at),
            fields: self.found.into_values().collect(),
        }
    }
}

/// The managers that own the field in this version; if nobody does, those that own a node that it is in. Which of them set it, and when,
/// is not known.
fn owners(object: &Value, pointer: &str) -> Vec<Manager> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let manager = |entry: &Value| {
        Some(Manager {
            manager: text(entry, "manager")?,
            operation: text(entry, "operation").unwrap_or_default(),
            subresource: text(entry, "subresource").filter(|name| !name.is_empty()),
            time: text(entry, "time").and_then(|time| time.parse().ok()),
            probable: true,
        })
    };
    let of = |by_node: bool| {
        let owns = |entry: &&Value| {
            entry.get("fieldsV1").is_some_and(|fields| owns(fields, by_node, object, pointer))
        };
        entries.into_iter().flatten().filter(owns).filter_map(manager).collect::<Vec<_>>()
    };
    let owners = of(false);
    if owners.is_empty() { of(true) } else { owners }
}

/// The managers that own the field in this version; all of them when none does.
fn authors(wrote: &[Manager], object: &Value, pointer: &str) -> Vec<Manager> {
    if wrote.len() < 2 {
        return wrote.to_vec();
    }
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = entries.map_or(&[][..], Vec::as_slice);
    let text = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let owns_it = |manager: &&Manager| {
        entries.iter().any(|entry| {
            text(entry, "manager").as_deref() == Some(manager.manager.as_str())
                && text(entry, "operation").as_deref() == Some(manager.operation.as_str())
                && text(entry, "subresource") == manager.subresource
                && entry.get("fieldsV1").is_some_and(|fields| owns(fields, true, object, pointer))
        })
    };
    let owners: Vec<Manager> = wrote.iter().filter(owns_it).cloned().collect();
    if owners.is_empty() { wrote.to_vec() } else { owners }
}

/// Whether `fields` (FieldsV1) has what is at `pointer` in `value`. A map or list without fields of its own is owned as a whole, or is a node
/// in which others own the fields.
fn owns(fields: &Value, by_node: bool, value: &Value, pointer: &str) -> bool {
    let Some(rest) = pointer.strip_prefix('/') else { return true };
    let Some(owned) = fields.as_object() else { return false };
    if owned.is_empty() {
        return by_node;
    }
    let (token, rest) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let token = token.replace("~1", "/").replace("~0", "~");
    match value {
        Value::Object(map) => {
            let inside = owned.get(&format!("f:{token}")).zip(map.get(&token));
            inside.is_some_and(|(fields, value)| owns(fields, by_node, value, rest))
        }
        Value::Array(list) => {
            let Some(element) = token.parse().ok().and_then(|at: usize| list.get(at)) else { return false };
            owned.iter().any(|(key, fields)| is_element(key, element) && owns(fields, by_node, element, rest))
        }
        _ => false,
    }
}

/// Whether a key of FieldsV1 means this element of a list: `k:` with the fields that identify it, or `v:` with its value.
fn is_element(key: &str, element: &Value) -> bool {
    let parse = |json: &str| serde_json::from_str::<Value>(json).ok();
    match key.split_once(':') {
        Some(("k", keys)) => parse(keys).is_some_and(|keys| {
            keys.as_object()
                .is_some_and(|keys| keys.iter().all(|(name, value)| element.get(name) == Some(value)))
        }),
        Some(("v", value)) => parse(value).as_ref() == Some(element),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::owns;

    #[test]
    fn managed_fields_say_who_owns_a_field() {
        let object = json!({"spec": {"replicas": 3, "containers": [
            {"name": "log", "image": "b"}, {"name": "web", "image": "a", "args": ["x"]}
        ]}, "metadata": {"finalizers": ["f"], "labels": {"a/b": "c"}}});
        let fields = json!({"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:args": {}}}},
            "f:metadata": {"f:finalizers": {"v:\"f\"": {}}, "f:labels": {"f:a/b": {}}}});
        for (pointer, expected) in [
            ("/spec/containers/1/image", true),
            ("/spec/containers/1/args/0", true),
            ("/spec/containers/0/image", false),
            ("/spec/replicas", false),
            ("/metadata/finalizers/0", true),
            ("/metadata/labels/a~1b", true),
        ] {
            assert_eq!(owns(&fields, true, &object, pointer), expected, "{pointer}");
        }
    }
}
