//! Strategic merge patches: merge patches in which lists of objects merge by the key of their type, and members that
//! begin with `$` are directives. The rules are those of apimachinery (`util/strategicpatch`), which no document
//! specifies.

use std::mem::take;

use serde_json::{Map, Value};
use serve::{Reason, Status};

use super::does_not_fit;
use super::ordered::{equal_by, in_order, join};
use crate::go;
use crate::object::remove_nulls;
use crate::schema::TypeRef;

/// In an object: `replace` or `delete` it instead of merging. In an item of a list: the action for that item.
const DIRECTIVE: &str = "$patch";
/// The members that stay.
const RETAIN_KEYS: &str = "$retainKeys";
/// Followed by the name of a list of plain values: the values to remove.
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
/// Followed by the name of a list: the order of its items.
const SET_ORDER: &str = "$setElementOrder/";

type Members = Map<String, Value>;

/// Applies a strategic merge patch to an object of that type, all of it or nothing.
///
/// # Errors
///
/// 415 if there is no type: custom resources have no strategic merge patch. 400, 422 and 500 for wrong directives, as
/// from the API server.
///
/// ```
/// use serde_json::json;
///
/// let pod = testapi::schema::builtin("", "v1", "Pod");
/// let mut object = json!({"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}});
/// let patch = json!({"spec": {"containers": [{"name": "b", "image": "b:2"}]}});
/// testapi::patch::strategic(pod.as_ref(), &mut object, patch)?;
/// assert_eq!(object["spec"]["containers"], json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]));
/// # Ok::<(), serve::Status>(())
/// ```
pub fn strategic(schema: Option<&TypeRef>, target: &mut Value, patch: Value) -> Result<(), Status> {
    let Some(schema) = schema else {
        let message = "the body of the request was in an unknown format - accepted media types include: \
                       application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
        return Err(Status::new(Reason::UnsupportedMediaType, message));
    };
    let (Value::Object(members), Value::Object(patch)) = (target.clone(), patch) else {
        return Err(Status::bad_request("invalid JSON document"));
    };
    *target = Value::Object(merge_objects(members, patch, Some(schema))?);
    Ok(())
}

fn merge_objects(mut target: Members, mut patch: Members, of: Option<&TypeRef>) -> Result<Members, Status> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Members::new()),
            _ => Err(failed(format!(
                "unknown patch type: {} in map: {}",
                go::print(directive),
                go::print_map(&patch)
            ))),
        };
    }
    retain_keys(&mut target, &mut patch)?;
    merge_ordered_lists(&mut target, &mut patch, of)?;
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(DELETE_FROM_LIST) {
            delete_from_list(&mut target, list, value, of)?;
            continue;
        }
        if value.is_null() {
            target.remove(&name);
            continue;
        }
        let merged = match (target.remove(&name), value) {
            (Some(Value::Object(current)), Value::Object(patch)) => {
                let way = way(of, &name)?;
                if way.replaces() {
                    Some(Value::Object(patch))
                } else {
                    Some(Value::Object(merge_objects(current, patch, way.of.as_ref())?))
                }
            }
            (Some(Value::Array(current)), Value::Array(patch)) => {
                Some(Value::Array(merge_lists(current, patch, &way(of, &name)?)?))
            }
            (Some(_), value @ (Value::String(_) | Value::Bool(_) | Value::Number(_))) => Some(value),
            (_, mut value) => {
                remove_nulls(&mut value);
                without_directives(value)
            }
        };
        if let Some(merged) = merged {
            target.insert(name, merged);
        }
    }
    Ok(target)
}

/// How a field of a type merges.
#[derive(Default)]
struct Way {
    /// The type of the field, or of its items.
    of: Option<TypeRef>,
    strategies: Box<[Box<str>]>,
    key: Option<Box<str>>,
}

impl Way {
    fn replaces(&self) -> bool {
        self.strategies.iter().any(|way| **way == *"replace")
    }

    fn merges(&self) -> bool {
        self.strategies.iter().any(|way| **way == *"merge")
    }
}

fn way(of: Option<&TypeRef>, name: &str) -> Result<Way, Status> {
    let Some(of) = of else { return Ok(Way::default()) };
    let child = of.child(name);
    let Some(field) = of.field(name) else {
        return match child {
            // A map: the server cannot look up merge keys of its values and fails.
            Some(_) => Err(failed("merging an object in json but data type is not struct, instead is: map")),
            None => Err(failed(format!(
                "unable to find api field in struct {} for the json field {name:?}",
                of.name()
            ))),
        };
    };
    let of = child.map(|child| child.items_or_self());
    Ok(Way { of, strategies: field.patch.clone(), key: field.merge_key.clone() })
}

/// Removes all members of the target that the patch does not list.
fn retain_keys(target: &mut Members, patch: &mut Members) -> Result<(), Status> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let wrong = || Status::bad_request("invalid patch format of retainKeys");
    let retained = retained.as_array().ok_or_else(wrong)?;
    let is_retained = |name: &str| retained.iter().any(|key| key == name);
    let all_listed = patch.iter().all(|(name, value)| {
        value.is_null()
            || name.starts_with(DELETE_FROM_LIST)
            || name.starts_with(SET_ORDER)
            || is_retained(name)
    });
    if !all_listed {
        return Err(wrong());
    }
    target.retain(|name, _| is_retained(name));
    Ok(())
}

/// Merges the lists for which the patch gives an order.
fn merge_ordered_lists(
    target: &mut Members,
    patch: &mut Members,
    of: Option<&TypeRef>,
) -> Result<(), Status> {
    let orders: Vec<String> = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in orders {
        let list = directive.trim_start_matches(SET_ORDER);
        let order = array(patch.remove(&directive).unwrap_or_default())?;
        let current = target.remove(list).map(array).transpose()?;
        let patched = patch.remove(list).map(array).transpose()?;
        let way = way(of, list)?;
        check_order(patched.as_deref().unwrap_or_default(), &order, way.key.as_deref())?;
        let before = current.clone().unwrap_or_default();
        let is_empty = before.is_empty() && patched.as_ref().is_none_or(Vec::is_empty);
        if is_empty && (current.is_some() || patched.is_some()) {
            return Err(failed("no elements in any of the given slices"));
        }
        let merged = match (current, patched) {
            (None, None) => continue,
            (Some(current), None) => current,
            (None, Some(patched)) => match without_directives(Value::Array(patched)) {
                Some(Value::Array(patched)) => patched,
                _ => continue,
            },
            (Some(current), Some(patched)) => merge_lists(current, patched, &way)?,
        };
        let ordered =
            join(merged, &order, &before, way.key.as_deref()).ok_or_else(|| no_key(way.key.as_deref()))?;
        target.insert(list.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

/// The patch's items must be in the order that it gives.
fn check_order(patched: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Status> {
    if order.is_empty() || patched.is_empty() {
        return Ok(());
    }
    let kept: Vec<_> = patched.iter().filter(|item| item.get(DIRECTIVE).is_none()).collect();
    if in_order(&kept, order, key) {
        return Ok(());
    }
    Err(failed(format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        go::print_list(patched),
        go::print_list(order)
    )))
}

fn delete_from_list(
    target: &mut Members,
    list: &str,
    deleted: Value,
    of: Option<&TypeRef>,
) -> Result<(), Status> {
    let Some(Value::Array(current)) = target.get_mut(list) else { return Ok(()) };
    let Value::Array(deleted) = deleted else { return Ok(()) };
    way(of, list)?;
    current.retain(|item| !deleted.contains(item));
    Ok(())
}

fn merge_lists(current: Vec<Value>, patch: Vec<Value>, way: &Way) -> Result<Vec<Value>, Status> {
    if !way.merges() {
        return Ok(patch);
    }
    if current.is_empty() && patch.is_empty() {
        return Ok(current);
    }
    if !kinds_agree(&current, &patch)? {
        let lists = format!("[{} {}]", go::print_list(&current), go::print_list(&patch));
        return Err(failed(format!("list element types are not identical: {lists}")));
    }
    if !current.iter().chain(&patch).any(Value::is_object) {
        let mut merged: Vec<Value> = Vec::new();
        for item in current.iter().chain(&patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return join(merged, &patch, &current, None).ok_or_else(does_not_fit);
    }
    let Some(key) = way.key.as_deref() else {
        return Err(failed("cannot merge lists without merge key for struct"));
    };
    let (current, patch) = obey_items(current, patch, key)?;
    let before = current.clone();
    let merged = merge_items(current, &patch, key, way.of.as_ref())?;
    join(merged, &patch, &before, Some(key)).ok_or_else(|| no_key(Some(key)))
}

/// Lists that merge must hold values of one kind, and no lists.
fn kinds_agree(current: &[Value], patch: &[Value]) -> Result<bool, Status> {
    let mut items = current.iter().chain(patch);
    let Some(first) = items.next() else { return Ok(true) };
    if first.is_array() {
        return Err(does_not_fit());
    }
    Ok(items.all(|item| std::mem::discriminant(item) == std::mem::discriminant(first)))
}

/// Applies the directives in items of the patch. Returns the new list and the other items of the patch.
fn obey_items(
    mut current: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Status> {
    let mut rest = Vec::new();
    let mut replaces = false;
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            rest.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let name = item.get(key).ok_or_else(|| lacks_key(&item, key))?;
                current.retain(|candidate| candidate.get(key) != Some(name));
            }
            Some("replace") => replaces = true,
            Some("merge") => return Err(failed("merging lists cannot yet be specified in the patch")),
            _ => {
                let members = item.as_object().cloned().unwrap_or_default();
                return Err(failed(format!(
                    "unknown patch type: {} in map: {}",
                    go::print(directive),
                    go::print_map(&members)
                )));
            }
        }
    }
    Ok(if replaces { (rest, Vec::new()) } else { (current, rest) })
}

fn merge_items(
    mut current: Vec<Value>,
    patch: &[Value],
    key: &str,
    of: Option<&TypeRef>,
) -> Result<Vec<Value>, Status> {
    for item in patch {
        if item.get(key).is_none() {
            return Err(lacks_key(item, key));
        }
        let same = current.iter_mut().find(|candidate| equal_by(Some(key), candidate, item));
        match (same, item) {
            (Some(Value::Object(same)), Value::Object(item)) => {
                *same = merge_objects(take(same), item.clone(), of)?;
            }
            (Some(same), item) => *same = item.clone(),
            (None, item) => current.push(item.clone()),
        }
    }
    Ok(current)
}

/// The value of a patch for a missing object: the patch without its directives.
fn without_directives(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => return None,
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter_map(|(name, member)| Some((name, without_directives(member)?)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().filter_map(without_directives).collect()),
        other => other,
    })
}

fn array(value: Value) -> Result<Vec<Value>, Status> {
    match value {
        Value::Array(items) => Ok(items),
        other => {
            let received = go::type_of(&other);
            Err(failed(format!("expected a []interface {{}}, but received a {received}")))
        }
    }
}

fn lacks_key(item: &Value, key: &str) -> Status {
    let members = item.as_object().cloned().unwrap_or_default();
    failed(format!("map: {} does not contain declared merge key: {key}", go::print_map(&members)))
}

fn no_key(key: Option<&str>) -> Status {
    failed(format!("map: map[] does not contain declared merge key: {}", key.unwrap_or_default()))
}

/// The server answers such an error with 500.
fn failed(message: impl Into<String>) -> Status {
    Status::new(Reason::Unknown, message)
}
