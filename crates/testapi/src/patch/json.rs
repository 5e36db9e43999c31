//! JSON Patch (RFC 6902), as lenient as the API server's library: an index may count from the end, `replace` may add a
//! member, and a missing member equals null.

use serde_json::Value;
use serve::{Reason, Status};

use super::does_not_fit;
use crate::go;

/// The maximum number of operations in a patch.
const OPERATIONS: usize = 10_000;

/// Applies a JSON patch, all of it or nothing.
///
/// # Errors
///
/// 400 for a malformed patch, 413 for more than 10,000 operations, 422 for a patch that does not fit `target`.
pub fn json(target: &mut Value, patch: &[u8]) -> Result<(), Status> {
    let operations = parse(patch)?;
    let mut patched = target.clone();
    for operation in &operations {
        apply(&mut patched, operation).ok_or_else(does_not_fit)?;
    }
    *target = patched;
    Ok(())
}

fn parse(patch: &[u8]) -> Result<Vec<Value>, Status> {
    let operations = match serde_json::from_slice(patch) {
        Ok(Value::Array(operations)) => operations,
        Ok(other) => return Err(undecodable(&other, "[]handlers.jsonPatchOp")),
        Err(error) => {
            let message = go::syntax_error(&error);
            return Err(Status::bad_request(format!("error decoding patch: {message}")));
        }
    };
    if let Some(other) = operations.iter().find(|operation| !operation.is_object()) {
        return Err(undecodable(other, "handlers.jsonPatchOp"));
    }
    if operations.len() > OPERATIONS {
        let message = format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS}, got {}",
            operations.len()
        );
        return Err(Status::new(Reason::RequestEntityTooLarge, message));
    }
    Ok(operations)
}

fn undecodable(value: &Value, wanted: &str) -> Status {
    let kind = go::json_kind(value);
    Status::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {kind} into Go value of type {wanted}"
    ))
}

/// `None` if the operation does not fit.
fn apply(document: &mut Value, operation: &Value) -> Option<()> {
    let path = || operation.get("path")?.as_str();
    let from = || operation.get("from")?.as_str();
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match operation.get("op")?.as_str()? {
        "add" => add(document, path()?, value()),
        "remove" => remove(document, path()?).map(drop),
        "replace" => replace(document, path()?, value()),
        "move" => {
            let moved = remove(document, from()?)?;
            add(document, path()?, moved)
        }
        "copy" => {
            let copied = get(document, from()?)?;
            add(document, path()?, copied)
        }
        "test" => {
            let path = path()?;
            let found = if path.is_empty() { document.clone() } else { get(document, path)? };
            (found == value()).then_some(())
        }
        _ => None,
    }
}

fn get(document: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(members) => Some(members.get(&key).cloned().unwrap_or(Value::Null)),
        Value::Array(items) => items.get(index(&key, items.len())?).cloned(),
        _ => None,
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Option<()> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(members) => {
            members.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        // A negative index counts from the place after the last item.
        Value::Array(items) => items.insert(index(&key, items.len() + 1)?, value),
        _ => return None,
    }
    Some(())
}

fn replace(document: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *document = Some(value).filter(|value| value.is_object() || value.is_array())?;
        return Some(());
    }
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(members) => {
            members.insert(key, value);
        }
        Value::Array(items) => {
            let at = index(&key, items.len())?;
            items[at] = value;
        }
        _ => return None,
    }
    Some(())
}

fn remove(document: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = parent(document, path)?;
    match parent {
        Value::Object(members) => members.remove(&key),
        Value::Array(items) => Some(items.remove(index(&key, items.len())?)),
        _ => None,
    }
}

/// The value that contains the end of a path, and the last part of the path.
fn parent<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    // Text before the first slash is ignored.
    let (_, path) = path.split_once('/')?;
    let (parents, key) = path.rsplit_once('/').map_or((None, path), |(parents, key)| (Some(parents), key));
    let mut parent = document;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let part = unescaped(part);
        parent = match parent {
            Value::Object(members) => members.get_mut(&part)?,
            Value::Array(items) => {
                let at = index(&part, items.len())?;
                &mut items[at]
            }
            _ => return None,
        };
    }
    Some((parent, unescaped(key)))
}

/// An index below `places`; a negative one counts from the end.
fn index(key: &str, places: usize) -> Option<usize> {
    let index: i64 = key.parse().ok()?;
    let at = if index < 0 { index.checked_add(i64::try_from(places).ok()?)? } else { index };
    usize::try_from(at).ok().filter(|at| *at < places)
}

fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}
