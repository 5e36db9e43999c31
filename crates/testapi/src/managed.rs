//! Ownership of fields: `metadata.managedFields`, and server-side apply, which builds on it.
//!
//! Every write goes through here. [`update`] finds the fields that a create, update or patch has changed, and gives
//! them to its manager. [`apply`] merges the configuration that a manager applies, removes the fields that it no longer
//! applies, and refuses to change fields of other managers. The rules are those of structured-merge-diff and of
//! apimachinery around it.
//!
//! Limits: entries of another version of the API are read as if they were of this one, so that a manager loses a field
//! that has another name there. Lists and maps that became atomic, or granular, after an entry was written are not
//! translated.

mod applied;
mod differing;
mod entries;
mod ignored;
mod merge;
mod owned;
mod prune;
mod scale;
pub(crate) mod set;
mod typed;

pub use applied::{ApplyRequest, apply};
pub use ignored::Ignored;
pub(crate) use scale::{Scaling, scaled};

use std::sync::LazyLock;

use serde_json::Value;

use crate::object::remove_nulls;
use crate::schema::TypeRef;
use differing::differing;
use entries::{Entries, Entry, Kind, Owner};
use owned::Owned;
use set::FieldSet;
use typed::{Comparison, compare};

const MANAGED_FIELDS: &[&str] = &["metadata", "managedFields"];

/// The number of `Update` entries that an object keeps; older ones are merged.
const UPDATE_ENTRIES: usize = 10;

/// The manager of a write, and the kind of write.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// `fieldManager`, or [`default_manager`].
    pub manager: &'a str,
    /// `status`, `scale`, or empty for the object itself.
    pub subresource: &'a str,
    /// The version of the API in which the object is written: `apps/v1`.
    pub api_version: &'a str,
    /// The time in RFC 3339: `2026-01-31T12:00:00Z`.
    pub now: &'a str,
    /// The type of the object; [`TypeRef::any`] if it is unknown.
    pub schema: &'a TypeRef,
    /// Fields that this kind of write cannot change, and does not own.
    pub ignored: &'a Ignored,
}

/// The manager of a request that names none: the product in its `User-Agent`.
///
/// ```
/// assert_eq!(testapi::managed::default_manager("kubectl/v1.36.0 (linux/amd64)"), "kubectl");
/// ```
pub fn default_manager(user_agent: &str) -> String {
    const BYTES: usize = 128;
    let mut manager = String::new();
    for letter in
        user_agent.split('/').next().unwrap_or_default().chars().filter(|letter| !letter.is_control())
    {
        if manager.len() + letter.len_utf8() > BYTES {
            break;
        }
        manager.push(letter);
    }
    manager
}

/// Assigns the fields that a create, update or patch has changed to its manager, in `metadata.managedFields` of
/// `after`.
///
/// `before` is `None` for a create. Without a difference nothing changes. If the object contains entries, these replace
/// the stored ones, except in a write of a subresource. `managedFields: [{}]` (or `[]` for a built-in kind) clears the
/// entries. An object without entries gets none until it is applied.
///
/// ```
/// use serde_json::json;
/// use testapi::managed::{Ignored, Writer, update};
/// use testapi::schema;
///
/// let schema = schema::builtin("", "v1", "ConfigMap").unwrap();
/// let writer = Writer {
///     manager: "me",
///     subresource: "",
///     api_version: "v1",
///     now: "2026-01-31T12:00:00Z",
///     schema: &schema,
///     ignored: &Ignored::default(),
/// };
/// let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "c"}});
/// update(None, &mut object, writer);
/// assert_eq!(object["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:data": {".": {}, "f:b": {}}}));
/// ```
pub fn update(before: Option<&Value>, after: &mut Value, writer: Writer<'_>) {
    let live = || before.and_then(entries::read).unwrap_or_default();
    let is_as_it_was = before.is_some_and(|before| managed_fields(before) == managed_fields(after));
    let mut owned = if !writer.subresource.is_empty() || is_as_it_was {
        live()
    } else if entries::says_none(after, writer.schema.are_structures()) {
        Entries::new()
    } else {
        entries::read_closely(after).filter(|entries| !entries.is_empty()).unwrap_or_else(live)
    };
    forget(after);
    if before.is_none() || !owned.is_empty() {
        match before {
            Some(before) => track(before, after, &mut owned, writer),
            None => track(&without_entries(None, after), after, &mut owned, writer),
        }
        merge_oldest(&mut owned);
    }
    entries::write(after, owned);
}

/// Keeps the times of `before` if nothing else has changed, so that a write without effect makes no new version.
pub fn keep_times(before: &Value, after: &mut Value) {
    let timeless = |object: &Value| {
        let mut entries = managed_fields(object).clone();
        for entry in entries.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries
    };
    let (cut_before, cut_after) = differing(before, after, MANAGED_FIELDS);
    if cut_before == cut_after && timeless(before) == timeless(after) {
        *after = before.clone();
    }
}

/// The former object, or an empty one of the same kind.
fn without_entries(before: Option<&Value>, after: &Value) -> Value {
    match before {
        Some(before) => {
            let mut before = before.clone();
            forget(&mut before);
            before
        }
        None => {
            let members = ["apiVersion", "kind"];
            let mut empty: Value =
                members.into_iter().map(|name| (name.to_owned(), after[name].clone())).collect();
            // Go writes these fields even if they are empty, so a missing one is no difference.
            if after["kind"] == "Event" && after["apiVersion"] == "v1" {
                for name in ["reportingComponent", "reportingInstance"] {
                    empty[name] = "".into();
                }
            }
            empty
        }
    }
}

fn managed_fields(object: &Value) -> &Value {
    &object["metadata"]["managedFields"]
}

fn forget(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Makes the writer the only owner of the fields that differ.
fn track(before: &Value, after: &Value, owned: &mut Entries, writer: Writer<'_>) {
    let (mut before, mut after) = differing(before, after, MANAGED_FIELDS);
    // Go structures have no null.
    if writer.schema.are_structures() {
        remove_nulls(&mut before);
        remove_nulls(&mut after);
    }
    let found = filled_differences(before, after, writer);
    take(owned, &found.all(), None);
    let changed = found.modified.union(&found.added).outside(&writer.ignored.fields).difference(&STRIPPED);
    if changed.is_empty() {
        return;
    }
    let owner = writer.owner(Kind::Update);
    let fields = match owned.get(&owner) {
        Some(entry) => changed.union(&entry.fields.set()),
        None => changed,
    };
    let time = Some(writer.now.to_owned());
    let api_version = writer.api_version.to_owned();
    owned.insert(owner, Entry { api_version, fields: Owned::Set(fields), time });
}

/// The fields that an apply changes. The result of an apply may contain null.
fn differences(before: &Value, after: &Value, writer: Writer<'_>) -> Comparison {
    let (before, after) = differing(before, after, MANAGED_FIELDS);
    filled_differences(before, after, writer)
}

fn filled_differences(mut before: Value, mut after: Value, writer: Writer<'_>) -> Comparison {
    writer.schema.fill_structure(&mut before);
    writer.schema.fill_structure(&mut after);
    compare(writer.schema, &before, &after).outside(&writer.ignored.fields)
}

/// Removes the changed and removed fields from all managers but one.
fn take(owned: &mut Entries, taken: &FieldSet, but: Option<&Owner>) {
    for (owner, entry) in owned.iter_mut() {
        if Some(owner) != but && entry.fields.has_any(taken) {
            entry.fields = Owned::Set(entry.fields.set().difference(taken));
        }
    }
    owned.retain(|_, entry| !entry.fields.is_empty());
}

/// Fields of every object that nobody owns.
static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of(&[
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});

/// Merges the oldest entries of kind `Update`, those of each version of the API, until there are not too many.
fn merge_oldest(owned: &mut Entries) {
    let mut updates: Vec<(Option<String>, Owner)> = owned
        .iter()
        .filter(|(owner, _)| owner.kind == Kind::Update)
        .map(|(owner, entry)| (entry.time.clone(), owner.clone()))
        .collect();
    updates.sort();
    let mut left = updates.len();
    let mut firsts: Vec<Owner> = Vec::new();
    for (time, owner) in updates {
        if left <= UPDATE_ENTRIES {
            break;
        }
        let Some(first) = firsts.iter().find(|first| first.api_version == owner.api_version) else {
            firsts.push(owner);
            continue;
        };
        let bucket = Owner {
            manager: "ancient-changes".to_owned(),
            kind: Kind::Update,
            api_version: owner.api_version.clone(),
            subresource: String::new(),
        };
        let merged = owned.remove(&bucket).or_else(|| owned.remove(first));
        let (Some(merged), Some(entry)) = (merged, owned.remove(&owner)) else { continue };
        let fields = entry.fields.set().into_owned().union(&merged.fields.set());
        owned.insert(bucket, Entry { fields: Owned::Set(fields), time, ..entry });
        left -= 1;
    }
}

impl Writer<'_> {
    fn owner(&self, kind: Kind) -> Owner {
        let manager = if self.manager.is_empty() { "unknown" } else { self.manager };
        Owner {
            manager: manager.to_owned(),
            kind,
            api_version: if kind == Kind::Apply { String::new() } else { self.api_version.to_owned() },
            subresource: self.subresource.to_owned(),
        }
    }
}
