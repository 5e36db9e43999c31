//! Finds the authors of each field, from the versions of one incarnation.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::places::{Places, above, is_below, within};
use crate::record::{Incarnation, Manager, Number, ObjectId, Origin, Version};

/// A field of an object: the smallest thing that has an author.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name for people: `spec.containers[web].image`. Fields of two versions with the same path are the same field.
    pub path: String,
    /// Where it is in this version: a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// Its value.
    pub value: Value,
    /// Whether something in it, or in its path, is hidden: with other knowledge the same would be written in another way.
    pub masked: bool,
    /// Whether the question is about it. The fields around it say what became of it.
    pub is_asked: bool,
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
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    found: Fields,
    first: Option<(Timestamp, bool)>,
    /// The last version, and the key of its hashes.
    former: Value,
    key: Option<String>,
}

/// Also those that were removed.
type Fields = BTreeMap<String, Known>;

struct Known {
    blame: FieldBlame,
    /// As the last version that had it.
    field: Field,
}

impl<'a> Blaming<'a> {
    pub(crate) fn new(fields_of: &'a dyn Fn(&Value) -> Vec<Field>) -> Self {
        Self { fields_of, found: Fields::new(), first: None, former: Value::Null, key: None }
    }

    pub(crate) fn version(&mut self, version: &Version) {
        let object = version.body.value();
        let change = version.change.as_deref();
        let key = change.and_then(|change| change.key.clone()).or_else(|| self.key.clone());
        let mut places = Places::default();
        change.into_iter().for_each(|change| places.add(change));
        self.first.get_or_insert((version.observed_at, places.everywhere));
        let fields = (self.fields_of)(&object).into_iter();
        let step = Step {
            before: self,
            now: fields.map(|field| (field.path.clone(), field)).collect(),
            version,
            object: &object,
            wrote: change.map_or(&[], |change| &change.managers),
            places,
            other_key: self.key.is_some() && self.key != key,
        };
        let found = step.now.values().map(|field| Known { blame: step.blame(field), field: field.clone() });
        let found: Vec<Known> = found.chain(step.gone()).collect();
        self.found = found.into_iter().map(|known| (known.field.path.clone(), known)).collect();
        (self.former, self.key) = (object, key);
    }

    pub(crate) fn finish(self, incarnation: &Incarnation) -> Blame {
        let asked = self.found.into_values().filter(|known| known.field.is_asked);
        Blame {
            object: incarnation.object.clone(),
            ended_at: incarnation.ended_at,
            starts_in_the_middle: self.first.filter(|(_, exact)| !exact).map(|(at, _)| at),
            fields: asked.map(|known| known.blame).collect(),
        }
    }
}

/// A version after the one before it.
///
/// A manager has written a field where the record of the version says so. Elsewhere the two differ in noise, which somebody has written
/// between them, or because something is hidden in one of them only, and nobody has written.
struct Step<'a> {
    before: &'a Blaming<'a>,
    now: BTreeMap<String, Field>,
    version: &'a Version,
    object: &'a Value,
    wrote: &'a [Manager],
    places: Places,
    other_key: bool,
}

impl Step<'_> {
    fn is_recorded(&self, path: &str) -> bool {
        // An element may have another name there: it had one before, or has one by another schema. Where something is hidden, names may be.
        let before = &self.before.found;
        let had = |it: &str| before.contains_key(path) && within(before, it).next().is_some();
        let has = |it: &str| within(&self.now, it).next().is_some() || had(it);
        let hides = |it: &&str| {
            within(&self.now, it).any(|(_, it)| it.masked)
                || within(before, it).any(|(_, it)| it.field.masked)
        };
        let lists = path.match_indices('[').map(|(at, _)| path.split_at(at).0);
        let mut elements = lists.filter(|list| !hides(list)).flat_map(|list| self.places.elements(list));
        self.places.has(path) || elements.any(|element| !has(element))
    }

    fn blame(&self, field: &Field) -> FieldBlame {
        let live = |path: &str| self.before.found.get(path).filter(|it| it.blame.value.is_some());
        let was = live(&field.path).or_else(|| above(&field.path).rev().find_map(live)).or_else(|| {
            within(&self.before.found, &field.path).map(|(_, it)| it).max_by_key(|it| it.blame.number)
        });
        if let Some(same) = live(&field.path).filter(|it| it.field.value == field.value) {
            return same.blame.clone();
        }
        // The record of a restart compares what was hidden then with what is hidden now.
        let is_restart = self.version.change.as_ref().is_some_and(|it| it.origin == Origin::Restart);
        let differs = |was: &Known| was.field.masked != field.masked || field.masked && self.other_key;
        let is_unknown = is_restart && was.is_some_and(differs);
        let was = was.filter(|_| !is_unknown);
        let exact = !is_unknown && self.is_recorded(&field.path);
        if let Some(was) = was.filter(|was| !exact && (was.field.masked || field.masked)) {
            return was.shown_as(field);
        }
        let managers = match exact {
            true => authors(self.wrote, self.object, &field.pointer),
            false => owners(self.object, &field.pointer),
        };
        let before = was.and_then(|was| self.value_before(was, field));
        FieldBlame { exact, managers, before, ..self.set(field) }
    }

    /// The value before a field, from itself, from what it is in now, or from what was in it.
    fn value_before(&self, was: &Known, field: &Field) -> Option<Value> {
        if is_below(&was.field.path, &field.path) {
            // The pointer of a removed field leads elsewhere, and that of one in a document to the whole text.
            let is_in_document = self.object.pointer(&field.pointer) != Some(&field.value);
            if was.blame.value.is_none() || is_in_document {
                return None;
            }
            // An element of a list may have had another index.
            let depth = field.pointer.matches('/').count();
            let pointer = was.field.pointer.as_str();
            let place =
                pointer.match_indices('/').nth(depth).map_or(pointer, |(at, _)| pointer.split_at(at).0);
            return self.before.former.pointer(place).cloned();
        }
        was.blame.value.clone().filter(|value| was.field.path == field.path || !is_empty(value))
    }

    /// The fields that the version has no more.
    fn gone(&self) -> impl Iterator<Item = Known> {
        // Its place has other fields now, or a text or a hash.
        let is_there = |path: &str| {
            let has = |place| self.now.get(place).is_some_and(|field| !is_empty(&field.value));
            within(&self.now, path).next().is_some() || above(path).any(has)
        };
        let gone = self.before.found.iter().filter(move |(path, _)| !is_there(path));
        gone.filter_map(|(path, Known { blame, field })| {
            let blame = match &blame.value {
                None => blame.clone(),
                Some(_) if !self.is_recorded(path) => return None,
                before => {
                    // A removal leaves no trace of its manager. Only the manager of a single write is that of its removals.
                    let managers = if self.is_one_write() { self.wrote.to_vec() } else { Vec::new() };
                    let owners = match managers.as_slice() {
                        [] => owners(&self.before.former, &field.pointer),
                        _ => Vec::new(),
                    };
                    let before = before.clone();
                    FieldBlame { value: None, managers, owners, before, ..self.set(field) }
                }
            };
            Some(Known { blame, field: field.clone() })
        })
    }

    fn is_one_write(&self) -> bool {
        let change = self.version.change.as_ref();
        change.is_some_and(|change| change.origin == Origin::Watch && change.merged <= 1)
    }

    fn set(&self, field: &Field) -> FieldBlame {
        FieldBlame {
            path: field.path.clone(),
            value: Some(field.value.clone()),
            since: self.version.observed_at,
            number: self.version.number,
            exact: true,
            ..FieldBlame::default()
        }
    }
}

impl Known {
    /// The blame of a field whose text differs only because of hiding. It is unknown which part of a hashed value a manager wrote.
    fn shown_as(&self, field: &Field) -> FieldBlame {
        let mut blame = FieldBlame { value: Some(field.value.clone()), ..self.blame.clone() };
        if blame.path != field.path {
            let is_part = is_below(&field.path, &blame.path);
            blame.exact &= !is_part;
            blame.managers.iter_mut().for_each(|manager| manager.probable |= is_part);
            (blame.path, blame.owners, blame.before) = (field.path.clone(), Vec::new(), None);
        }
        blame
    }
}

/// Whether it is a map or list without anything in it.
fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// The managers that own the field in this version; if none does, the managers of an enclosing node. It is unknown which of them set it,
/// and when.
fn owners(object: &Value, pointer: &str) -> Vec<Manager> {
    let owners = owners_of(object, pointer, false);
    if owners.is_empty() { owners_of(object, pointer, true) } else { owners }
}

/// The managers that own the field in this version; all of them when none does.
fn authors(wrote: &[Manager], object: &Value, pointer: &str) -> Vec<Manager> {
    let owners = if wrote.len() < 2 { Vec::new() } else { owners_of(object, pointer, true) };
    let owns_it = |it: &&Manager| {
        let name = |it: &Manager| (it.manager.clone(), it.operation.clone(), it.subresource.clone());
        owners.iter().any(|owner| name(owner) == name(it))
    };
    let authors: Vec<Manager> = wrote.iter().filter(owns_it).cloned().collect();
    if authors.is_empty() { wrote.to_vec() } else { authors }
}

fn owners_of(object: &Value, pointer: &str, by_node: bool) -> Vec<Manager> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let manager = |entry: &Value| Some(Manager { probable: true, ..Manager::deserialize(entry).ok()? });
    let owns =
        |entry: &&Value| entry.get("fieldsV1").is_some_and(|fields| owns(fields, by_node, object, pointer));
    entries.into_iter().flatten().filter(owns).filter_map(manager).collect()
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
