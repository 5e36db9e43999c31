//! Merges an applied configuration into an object, and removes fields from values.

use serde_json::{Map, Value};

use super::set::FieldSet;
use crate::schema::path::{Element, element_of};
use crate::schema::{Relation, Shape, TypeRef};

/// Merges `config` into `live`. Nothing is removed, `config` wins, and changed lists have the order of `config`.
pub(super) fn merge(of: &TypeRef, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let (live, config) = match (live, config) {
        (Some(live), None) => return Some(live.clone()),
        (Some(live), Some(config)) => (live, config),
        (None, config) => return merge_value(of, None, config?),
    };
    merge_value(of, Some(live), config)
}

fn merge_value(of: &TypeRef, live: Option<&Value>, config: &Value) -> Option<Value> {
    // Null counts as a value of the other's type.
    let seen = if config.is_null() { live.unwrap_or(config) } else { config };
    match of.shape(Some(seen)) {
        Shape::Scalar | Shape::List(Relation::Atomic) | Shape::Map { atomic: true } => Some(config.clone()),
        Shape::List(relation) => {
            let live = live.and_then(Value::as_array).map_or(&[][..], |items| items);
            let items = config.as_array().map_or(&[][..], |items| items);
            if live.is_empty() && items.is_empty() {
                return Some(config.clone());
            }
            let merged = merge_items(relation, &of.items()?, live, items);
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
        Shape::Map { .. } => {
            let none = Map::new();
            let live = live.and_then(Value::as_object).unwrap_or(&none);
            let members = config.as_object().unwrap_or(&none);
            if live.is_empty() && members.is_empty() {
                return Some(config.clone());
            }
            let mut merged = Map::new();
            for name in live.keys().chain(members.keys().filter(|name| !live.contains_key(*name))) {
                let Some(child) = of.child(name) else { continue };
                if let Some(value) = merge(&child, live.get(name), members.get(name)) {
                    merged.insert(name.clone(), value);
                }
            }
            (!merged.is_empty()).then_some(Value::Object(merged))
        }
    }
}

/// The items of a list with their keys. Items without a key are skipped.
fn known<'a>(relation: &Relation, of: &TypeRef, items: &'a [Value]) -> Vec<(Element, &'a Value)> {
    items.iter().filter_map(|item| Some((element_of(relation, of, item).ok()?, item))).collect()
}

fn merge_items(relation: &Relation, of: &TypeRef, live: &[Value], config: &[Value]) -> Vec<Value> {
    let live = known(relation, of, live);
    let config = known(relation, of, config);
    let in_config = |step: &Element| config.iter().any(|(known, _)| known == step);
    // Several items with the same key are not merged: the applied item replaces them.
    let live_item = |step: &Element| {
        let mut same = live.iter().filter(|(known, _)| known == step).map(|(_, item)| *item);
        same.next().filter(|_| same.next().is_none())
    };
    let in_live = |step: &Element| live.iter().any(|(known, _)| known == step);
    // Items of both lists come in the order of the applied list.
    let mut shared = config.iter().map(|(step, _)| step).filter(|step| in_live(step)).peekable();

    let mut merged: Vec<Option<Value>> = Vec::new();
    let (mut at_live, mut at_config) = (0, 0);
    while at_live < live.len() || at_config < config.len() {
        if let (Some((left, _)), Some((right, item))) = (live.get(at_live), config.get(at_config)) {
            if left == right {
                merged.push(merge(of, live_item(left), Some(item)));
                at_live += 1;
                at_config += 1;
                shared.next();
                continue;
            }
            if in_config(left) && shared.peek().is_some_and(|next| *next != left) {
                at_live += 1;
                continue;
            }
        }
        if let Some((left, item)) = live.get(at_live) {
            if !in_config(left) {
                merged.push(Some((*item).clone()));
                at_live += 1;
                continue;
            }
            if config[..at_config].iter().any(|(done, _)| done == left) {
                at_live += 1;
            }
        }
        if let Some((right, item)) = config.get(at_config) {
            merged.push(merge(of, live_item(right), Some(item)));
            at_config += 1;
            if shared.peek() == Some(&right) {
                shared.next();
            }
        }
    }
    merged.into_iter().flatten().collect()
}

/// A value without these fields; null if nothing is left.
pub(super) fn without(of: &TypeRef, value: &Value, fields: &FieldSet) -> Value {
    match (of.shape(Some(value)), value) {
        (Shape::Scalar, value) => value.clone(),
        (Shape::List(relation), Value::Array(items)) if *relation != Relation::Atomic => {
            let Some(of) = of.items() else { return Value::Null };
            let mut left = Vec::new();
            for item in items {
                match element_of(relation, &of, item) {
                    Ok(step) if fields.has_member(&step) => {}
                    Ok(step) => left.push(match fields.behind(&step) {
                        Some(below) => without(&of, item, below),
                        None => item.clone(),
                    }),
                    Err(_) => left.push(item.clone()),
                }
            }
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }
        (Shape::Map { atomic: false }, Value::Object(members)) => {
            let mut left = Map::new();
            for (name, value) in members {
                let step = Element::field(name);
                if fields.has_member(&step) {
                    continue;
                }
                let value = match (fields.behind(&step), of.child(name)) {
                    (Some(below), Some(child)) => without(&child, value, below),
                    _ => value.clone(),
                };
                left.insert(name.clone(), value);
            }
            if left.is_empty() { Value::Null } else { Value::Object(left) }
        }
        _ => Value::Null,
    }
}
