//! Which manager owns what changed.

use serde_json::Value;

/// Whether a field that these `fieldsV1` own differs between the two states.
pub(super) fn owns_a_difference(fields: &Value, old: Option<&Value>, new: Option<&Value>) -> bool {
    differs(fields, old, new, false)
}

/// Whether a field that these `fieldsV1` own is in the old state alone.
pub(super) fn owns_what_is_gone(fields: &Value, old: Option<&Value>, new: Option<&Value>) -> bool {
    differs(fields, old, new, true)
}

fn differs(fields: &Value, old: Option<&Value>, new: Option<&Value>, gone: bool) -> bool {
    let Some(fields) = fields.as_object() else { return false };
    if fields.is_empty() {
        return old != new && (!gone || new.is_none());
    }
    fields.iter().any(|(step, inside)| match step.split_once(':') {
        Some(("f", name)) => differs(inside, field(old, name), field(new, name), gone),
        Some(("k", keys)) => differs(inside, element(old, keys), element(new, keys), gone),
        Some(("v", value)) => {
            let (old, new) = (member(old, value), member(new, value));
            old != new && (!gone || !new)
        }
        // The value itself, without what is in it.
        None if step == "." => old.is_some() != new.is_some() && (!gone || new.is_none()),
        _ => false,
    })
}

fn field<'a>(value: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    value?.get(name)
}

/// The element of a list whose fields are these: `{"name":"web"}`.
fn element<'a>(list: Option<&'a Value>, keys: &str) -> Option<&'a Value> {
    let keys: Value = serde_json::from_str(keys).ok()?;
    let keys = keys.as_object()?;
    let is_it = |element: &&Value| keys.iter().all(|(name, value)| element.get(name) == Some(value));
    list?.as_array()?.iter().find(is_it)
}

/// Whether a list has this value.
fn member(list: Option<&Value>, value: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(value) else { return false };
    list.and_then(Value::as_array).is_some_and(|list| list.contains(&value))
}
