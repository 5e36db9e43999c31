//! The end of a run, in a form in which two runs can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use crate::history::{History, Objects, key, uid};
use crate::reconciliations::failing;

/// The objects and external things of an end, field by field, without what differs by nature: uids, versions, times,
/// generated names and managed fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EndState {
    /// By object (`Secret shop/a`, with a number if several have that name) and path; the value as JSON. The path of the
    /// object itself is empty.
    fields: BTreeMap<(String, String), String>,
}

/// A field that differs from that of the undisturbed runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `Secret shop/a`.
    pub object: String,
    /// `/data/x`; empty for the object as a whole.
    pub path: String,
    /// The value without disturbances, as JSON; `None` if it does not exist there.
    pub expected: Option<String>,
    /// The value in this run.
    pub found: Option<String>,
}

/// Metadata that says when and how an object was written, not what it is.
const INCIDENTAL: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"];

/// The beginning of the name of the external things of an owner.
pub(crate) const THINGS: &str = "external things of ";
/// The path of an external thing's owner.
const OWNER: &str = "/owner";
/// The beginning of the name of a reconciliation that goes on failing.
pub(crate) const FAILING: &str = "an endless error of ";

impl EndState {
    pub(crate) fn of(
        history: &History,
        things: &BTreeMap<String, String>,
        ignored: &BTreeSet<String>,
    ) -> Self {
        let objects = history.objects();
        let names = Names::of(&objects);
        let mut plain: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for object in objects.all() {
            let kind = object["kind"].as_str().unwrap_or_default();
            if !ignored.contains(kind) {
                let name = format!("{kind} {}", names.key(object));
                let mut object = names.plain(object);
                for field in ignored.iter().filter_map(|ignored| ignored.strip_prefix(kind)) {
                    remove(&mut object, field);
                }
                plain.entry(name).or_default().push(object);
            }
        }
        let mut counts: BTreeMap<_, u64> = BTreeMap::new();
        for (name, owner) in things {
            let name = names.simple(name).unwrap_or_else(|| name.clone());
            plain.entry(format!("external {name}")).or_default().push(Value::String(owner.clone()));
            *counts.entry(owner).or_default() += 1;
        }
        for (owner, count) in counts {
            plain.insert(format!("{THINGS}{owner}"), vec![json!({ "count": count })]);
        }
        for failing in failing(history) {
            plain.insert(format!("{FAILING}{} by {}", failing.key, failing.controller), vec![Value::Null]);
        }
        let mut fields = BTreeMap::new();
        for (name, mut alike) in plain {
            alike.sort_by_cached_key(Value::to_string);
            let count = alike.len();
            for (number, object) in alike.into_iter().enumerate() {
                let name = if count == 1 { name.clone() } else { format!("{name} #{}", number + 1) };
                fields.insert((name.clone(), String::new()), "exists".to_owned());
                flatten(&object, &name, String::new(), &mut fields);
            }
        }
        Self { fields }
    }

    /// How this end differs from those of undisturbed runs. Differences between those are left out.
    pub(crate) fn differences(&self, undisturbed: &[Self]) -> Vec<Difference> {
        let Some((first, others)) = undisturbed.split_first() else { return Vec::new() };
        let is_stable = |field: &(String, String)| {
            let value = first.fields.get(field);
            others.iter().all(|other| other.fields.get(field) == value)
        };
        let is_everywhere =
            |field: &(String, String)| undisturbed.iter().all(|end| end.fields.contains_key(field));
        // The owners of things with random names.
        let owners = undisturbed.iter().flat_map(|end| &end.fields);
        let owners = owners.filter(|(field, _)| field.1 == OWNER && !is_everywhere(field));
        let random: BTreeSet<&String> = owners.map(|(_, owner)| owner).collect();
        // Either the names are compared, or how many there are.
        let is_left_out = |object: &str| match object.strip_prefix(THINGS) {
            Some(owner) => !random.contains(&format!("{owner:?}")),
            None => self
                .fields
                .get(&(object.to_owned(), OWNER.to_owned()))
                .is_some_and(|owner| random.contains(owner)),
        };
        let all: BTreeSet<_> = first.fields.keys().chain(self.fields.keys()).collect();
        let mut differences: Vec<Difference> = Vec::new();
        for field in all {
            let (object, path) = field;
            let (expected, found) = (first.fields.get(field), self.fields.get(field));
            let whole = (object.clone(), String::new());
            if expected == found || !is_stable(field) || !is_stable(&whole) || is_left_out(object) {
                continue;
            }
            // A whole object that is missing, or too many, is one difference.
            if differences.last().is_some_and(|last| last.object == *object && last.path.is_empty()) {
                continue;
            }
            differences.push(Difference {
                object: object.clone(),
                path: path.clone(),
                expected: expected.cloned(),
                found: found.cloned(),
            });
        }
        differences
    }
}

/// Removes the field at a JSON pointer.
fn remove(object: &mut Value, field: &str) {
    let Some((above, name)) = field.rsplit_once('/') else { return };
    if let Some(members) = object.pointer_mut(above).and_then(Value::as_object_mut) {
        members.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

/// The meaning of uids and generated names.
struct Names {
    /// By uid.
    owners: BTreeMap<String, String>,
    /// The prefixes of generated names.
    generated: BTreeMap<String, String>,
}

impl Names {
    fn of(objects: &Objects) -> Self {
        let mut names = Self { owners: BTreeMap::new(), generated: BTreeMap::new() };
        for object in objects.all() {
            if let (Some(prefix), Some(name)) =
                (object["metadata"]["generateName"].as_str(), object["metadata"]["name"].as_str())
                && name.starts_with(prefix)
            {
                names.generated.insert(name.to_owned(), format!("{prefix}*"));
            }
        }
        for object in objects.all() {
            let what = format!("{} {}", object["kind"].as_str().unwrap_or_default(), names.key(object));
            names.owners.insert(uid(object).to_owned(), what);
        }
        names
    }

    /// The key, without a generated part.
    fn key(&self, object: &Value) -> String {
        let key = key(object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        match self.generated.get(name) {
            Some(pattern) => format!("{}{pattern}", key.strip_suffix(name).unwrap_or_default()),
            // A name that follows from a uid.
            None => replace_uids(&key, &|_| "<uid>".to_owned()).unwrap_or(key),
        }
    }

    fn plain(&self, object: &Value) -> Value {
        let generation = &object["metadata"]["generation"];
        let mut plain = object.clone();
        if let Some(metadata) = plain["metadata"].as_object_mut() {
            metadata.retain(|name, _| !INCIDENTAL.contains(&name.as_str()));
        }
        self.simplify(&mut plain, generation);
        plain
    }

    fn simplify(&self, value: &mut Value, generation: &Value) {
        match value {
            Value::String(text) => {
                if let Some(simple) = self.simple(text) {
                    *text = simple;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.simplify(item, generation)),
            Value::Object(members) => {
                for (name, member) in members {
                    if name == "observedGeneration" && !generation.is_null() {
                        let is_current = member == generation;
                        *member = Value::String(if is_current { "current" } else { "old" }.to_owned());
                    } else {
                        self.simplify(member, generation);
                    }
                }
            }
            _ => {}
        }
    }

    fn simple(&self, text: &str) -> Option<String> {
        if let Some(name) = self.generated.get(text) {
            return Some(name.clone());
        }
        let named = |uid: &str| match self.owners.get(uid) {
            Some(owner) => format!("<uid of {owner}>"),
            None => "<uid of nothing that exists>".to_owned(),
        };
        if let Some(replaced) = replace_uids(text, &named) {
            return Some(replaced);
        }
        let is_time = text.len() >= 20 && text.parse::<jiff::Timestamp>().is_ok();
        is_time.then(|| "<time>".to_owned())
    }
}

/// The text with one word for all uids, and for the words that the end state has for them.
pub(crate) fn without_uids(text: &str) -> String {
    let text = replace_uids(text, &|_| "<uid>".to_owned()).unwrap_or_else(|| text.to_owned());
    match (text.find("<uid of "), text.rfind('>')) {
        (Some(begin), Some(end)) => format!("{}<uid>{}", &text[..begin], &text[end + 1..]),
        _ => text,
    }
}

fn is_uid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match dashes.contains(&at) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}

/// The text with other words for the uids in it; `None` if it has none.
fn replace_uids(text: &str, named: &dyn Fn(&str) -> String) -> Option<String> {
    let (at, uid) = (0..text.len()).find_map(|at| {
        let uid = text.get(at..at + 36)?;
        is_uid(uid).then_some((at, uid))
    })?;
    let (before, rest) = (text.get(..at)?, text.get(at + 36..)?);
    let rest = replace_uids(rest, named).unwrap_or_else(|| rest.to_owned());
    Some(format!("{before}{}{rest}", named(uid)))
}

fn flatten(value: &Value, object: &str, path: String, into: &mut BTreeMap<(String, String), String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                flatten(member, object, format!("{path}/{name}"), into);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                flatten(item, object, format!("{path}/{at}"), into);
            }
        }
        // An external thing is a plain value.
        _ if path.is_empty() => drop(into.insert((object.to_owned(), OWNER.to_owned()), value.to_string())),
        _ => drop(into.insert((object.to_owned(), path), value.to_string())),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, path, expected, found } = self;
        let is_secret = object.starts_with("Secret ") && !path.starts_with("/metadata");
        let shown = |value: &str| if is_secret { "<hidden>".to_owned() } else { value.to_owned() };
        if let Some(reconciliation) = object.strip_prefix(FAILING) {
            let is = if found.is_some() {
                "fails again and again, and does not"
            } else {
                "does not fail, and does"
            };
            return write!(f, "the reconciliation of {reconciliation} {is} without disturbances");
        }
        match (path.as_str(), expected, found) {
            ("", None, _) => write!(f, "{object} exists, and does not without disturbances"),
            ("", _, _) => write!(f, "{object} does not exist, and does without disturbances"),
            (_, Some(expected), Some(found)) => {
                write!(f, "{object} has {} at {path} instead of {}", shown(found), shown(expected))
            }
            (_, None, Some(found)) => write!(f, "{object} has {} at {path} instead of nothing", shown(found)),
            (_, expected, None) => {
                write!(f, "{object} lacks {path}, which is {}", shown(expected.as_deref().unwrap_or("")))
            }
        }
    }
}
