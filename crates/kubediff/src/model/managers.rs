//! The managers of a change, as recorded in the object.

use std::collections::BTreeSet;

use serde_json::Value;

pub use kubediff_history::Manager;

use owner::Part;

mod owner;

/// The managers that turned `old` into `new`: those whose entry in `metadata.managedFields` is new, has a newer time,
/// or owns additional fields. The latest first.
///
/// A second write of a manager within one second leaves no trace there. Then the manager that owns all that changed has
/// probably written, if there is one ([`Manager::probable`]). Empty when unknown: entries are missing, or a deletion. The
/// removal of a field leaves no trace either, and anybody may have removed it: its former owner is not returned for that.
pub fn managers(old: Option<&Value>, new: Option<&Value>) -> Vec<Manager> {
    let Some(new) = new else { return Vec::new() };
    let before = old.map(entries).unwrap_or_default();
    let wrote = |entry: &&Value| {
        let mut same =
            before.iter().filter(|other| IDENTITY.iter().all(|name| other.get(name) == entry.get(name)));
        !same.any(|other| {
            // Others may have taken fields from it: an entry that only lost some did not write.
            other.get("time") == entry.get("time") && !gains(other.get("fieldsV1"), entry.get("fieldsV1"))
        })
    };
    let mut managers: Vec<Manager> = entries(new).iter().filter(wrote).filter_map(manager).collect();
    managers.sort_by_key(|manager| std::cmp::Reverse(manager.time));
    if managers.is_empty()
        && let Some(old) = old
    {
        managers.extend(owner_of_the_difference(old, new));
    }
    managers
}

/// The one manager that owns what came or changed, if all of it has one. It may not have removed what else is gone.
fn owner_of_the_difference(old: &Value, new: &Value) -> Option<Manager> {
    match owners(entries(new), Part::Came, old, new).as_slice() {
        [owner] => Some(Manager { probable: true, ..owner.clone() }),
        _ => None,
    }
}

/// The managers that owned the fields that only `old` has. It is unknown who removed them, unless [`managers`] says so.
pub(crate) fn former_owners(old: &Value, new: &Value) -> Vec<Manager> {
    owners(entries(old), Part::Gone, old, new)
}

/// The managers that own the fields; if none does, the managers of the enclosing nodes.
fn owners(entries: &[Value], part: Part, old: &Value, new: &Value) -> Vec<Manager> {
    let of = |by_node: bool| {
        let owns = |entry: &&Value| owner::owns(fields(entry), part, by_node, Some(old), Some(new));
        distinct(entries.iter().filter(owns))
    };
    let owners = of(false);
    if owners.is_empty() { of(true) } else { owners }
}

fn fields(entry: &Value) -> &Value {
    entry.get("fieldsV1").unwrap_or(&Value::Null)
}

/// The managers of these entries, the latest first, each name once.
fn distinct<'a>(entries: impl Iterator<Item = &'a Value>) -> Vec<Manager> {
    let mut managers: Vec<Manager> = entries.filter_map(manager).collect();
    managers.sort_by_key(|manager| std::cmp::Reverse(manager.time));
    let mut seen = BTreeSet::new();
    managers.retain(|manager| seen.insert(manager.manager.clone()));
    managers
}

/// `kubelet/status`. Where its characters could be taken for the words around it, the name is in quotes.
pub(crate) fn name(manager: &Manager) -> String {
    let Manager { manager, subresource, .. } = manager;
    let name = match subresource {
        Some(subresource) => format!("{manager}/{subresource}"),
        None => manager.clone(),
    };
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, ',' | '(' | ')' | '"');
    if name.chars().all(is_plain) { name } else { Value::from(name).to_string() }
}

const IDENTITY: &[&str] = &["manager", "operation", "subresource", "apiVersion"];

/// Whether `new` owns a field that `old` does not.
fn gains(old: Option<&Value>, new: Option<&Value>) -> bool {
    let Some(new) = new.and_then(Value::as_object) else { return false };
    let old = old.and_then(Value::as_object);
    new.iter().any(|(name, inside)| match old.and_then(|old| old.get(name)) {
        None => true,
        owned => gains(owned, Some(inside)),
    })
}

fn entries(object: &Value) -> &[Value] {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn manager(entry: &Value) -> Option<Manager> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    Some(Manager {
        manager: text("manager")?.to_owned(),
        operation: text("operation").unwrap_or_default().to_owned(),
        subresource: text("subresource").map(str::to_owned),
        time: text("time").and_then(|time| time.parse().ok()),
        probable: false,
    })
}
