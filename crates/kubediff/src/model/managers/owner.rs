//! Which manager owns what changed.

use serde_json::Value;

/// The part of a difference whose owner is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Values that are new or changed.
    Came,
    /// Values that only the old state has.
    Gone,
}

/// Whether these `fieldsV1` own a part of the difference. `{}` of a map or list means the node alone when others own what is in it, and
/// all of it when the API takes it for one value: `by_node` takes it for all.
pub(super) fn owns(
    fields: &Value,
    part: Part,
    by_node: bool,
    old: Option<&Value>,
    new: Option<&Value>,
) -> bool {
    let Some(fields) = fields.as_object() else { return false };
    if fields.is_empty() {
        let is_node = |value: Option<&Value>| value.is_some_and(|it| it.is_object() || it.is_array());
        return (by_node || !is_node(old) && !is_node(new))
            && match part {
                Part::Came => new.is_some_and(|new| adds(old, new)),
                Part::Gone => old.is_some() && new.is_none(),
            };
    }
    let is_part = |was: bool, is: bool| match part {
        Part::Came => !was && is,
        Part::Gone => was && !is,
    };
    fields.iter().any(|(step, inside)| match step.split_once(':') {
        Some(("f", name)) => owns(inside, part, by_node, field(old, name), field(new, name)),
        Some(("k", keys)) => owns(inside, part, by_node, element(old, keys), element(new, keys)),
        Some(("v", value)) => is_part(member(old, value), member(new, value)),
        // The value itself, without what is in it.
        None if step == "." => is_part(old.is_some(), new.is_some()),
        _ => false,
    })
}

/// Whether there is anything new. Anybody may remove or reorder what others own, and leaves no trace.
fn adds(old: Option<&Value>, new: &Value) -> bool {
    match (old, new) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            new.iter().any(|(name, new)| adds(old.get(name), new))
        }
        (Some(Value::Array(old)), Value::Array(new)) => new.iter().any(|element| !old.contains(element)),
        (old, new) => old != Some(new),
    }
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
