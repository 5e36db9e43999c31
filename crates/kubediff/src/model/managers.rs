//! The managers of a change, as recorded in the object.

use serde_json::Value;

pub use kubediff_history::Manager;

mod owner;

/// The managers that turned `old` into `new`: those whose entry in `metadata.managedFields` is new, has a newer time,
/// or owns additional fields. The latest first.
///
/// A second write of a manager within one second leaves no trace there. Then the manager that owns all that changed has
/// probably written, if there is one ([`Manager::probable`]). Empty when unknown: entries are missing, or a deletion.
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

/// The one manager that owns what differs, if all of it has one.
fn owner_of_the_difference(old: &Value, new: &Value) -> Option<Manager> {
    let owned = |entry: &Value| entry.get("fieldsV1").cloned().unwrap_or_default();
    let now =
        entries(new).iter().filter(|entry| owner::owns_a_difference(&owned(entry), Some(old), Some(new)));
    let before =
        entries(old).iter().filter(|entry| owner::owns_what_is_gone(&owned(entry), Some(old), Some(new)));
    let mut owners: Vec<Manager> = now.chain(before).filter_map(manager).collect();
    owners.sort_by_key(|manager| std::cmp::Reverse(manager.time));
    owners.dedup_by(|next, first| next.manager == first.manager);
    match owners.as_slice() {
        [owner] => Some(Manager { probable: true, ..owner.clone() }),
        _ => None,
    }
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
