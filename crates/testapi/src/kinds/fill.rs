//! Functions to set defaults in JSON.

use serde_json::{Value, json};

/// Sets a missing value below `object`, and creates the objects on the way to it.
pub(super) fn fill(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut at = object;
    for name in parents {
        at = member(at, name);
        if at.is_null() {
            *at = json!({});
        }
        if !at.is_object() {
            return;
        }
    }
    let at = member(at, last);
    if at.is_null() {
        *at = value;
    }
}

/// Sets several missing members of an object.
pub(super) fn fill_all(object: &mut Value, values: Value) {
    if let Value::Object(values) = values {
        values.into_iter().for_each(|(name, value)| fill(object, &[&name], value));
    }
}

/// A member that exists and is an object.
pub(super) fn part<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    object.get_mut(name).filter(|part| part.is_object())
}

/// The items of a list; none if the list is missing.
pub(super) fn items<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter(|item| item.is_object())
}

/// Indexing a `Value` that is not an object would panic.
fn member<'a>(object: &'a mut Value, name: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = json!({});
    }
    &mut object[name]
}
