//! The fields of a value, and the differences of two values, by the rules of structured-merge-diff.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::FieldSet;
use crate::schema::path::{Element, element_of};
use crate::schema::{Relation, Shape, TypeRef};

/// The difference of two values.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// All fields that differ.
    pub(super) fn all(&self) -> FieldSet {
        self.modified.clone().union(&self.added).union(&self.removed)
    }

    /// The difference without these paths and everything below them.
    pub(super) fn outside(self, ignored: &FieldSet) -> Self {
        Self {
            added: self.added.outside(ignored),
            modified: self.modified.outside(ignored),
            removed: self.removed.outside(ignored),
        }
    }
}

pub(super) fn compare(of: &TypeRef, before: &Value, after: &Value) -> Comparison {
    let mut walk = Walk::default();
    walk.compare(of, Some(before), Some(after));
    walk.found
}

/// The fields of a value.
pub(super) fn fields(of: &TypeRef, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(of, value, &mut Vec::new(), &mut set);
    set
}

fn collect(of: &TypeRef, value: &Value, path: &mut Vec<Element>, set: &mut FieldSet) {
    match of.shape(Some(value)) {
        Shape::Scalar | Shape::List(Relation::Atomic) | Shape::Map { atomic: true } => set.insert(path),
        Shape::List(relation) => {
            let (Some(items_of), Some(items)) = (of.items(), value.as_array()) else { return };
            for (step, items) in grouped(relation, &items_of, Some(items)) {
                path.push(step);
                if let [item] = items[..] {
                    collect(&items_of, item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
        Shape::Map { .. } => {
            for (name, value) in value.as_object().into_iter().flatten() {
                let Some(child) = of.child(name) else { continue };
                path.push(Element::field(name));
                collect(&child, value, path, set);
                let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if is_empty || of.field(name).is_none() {
                    set.insert(path);
                }
                path.pop();
            }
        }
    }
}

#[derive(Default)]
struct Walk {
    path: Vec<Element>,
    found: Comparison,
}

impl Walk {
    fn compare(&mut self, of: &TypeRef, before: Option<&Value>, after: Option<&Value>) {
        let is_leaf = match (before, after) {
            (Some(before), Some(after))
                if kind(of, before).zip(kind(of, after)).is_some_and(|(before, after)| before != after) =>
            {
                // A value of any type that changes its kind counts as removed and added.
                self.compare_as(&of.shape(Some(before)), of, Some(before), Some(after));
                self.compare_as(&of.shape(Some(after)), of, Some(before), Some(after))
            }
            // Null counts as a value of the other's type.
            (Some(before), Some(Value::Null)) => {
                self.compare_as(&of.shape(Some(before)), of, Some(before), after)
            }
            _ => self.compare_as(&of.shape(after.or(before)), of, before, after),
        };
        if !is_leaf {
            match (before, after) {
                (None, _) => self.found.added.insert(&self.path),
                (_, None) => self.found.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Returns whether it is a leaf.
    fn compare_as(
        &mut self,
        shape: &Shape<'_>,
        of: &TypeRef,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> bool {
        match shape {
            Shape::Scalar => self.compare_leaf(before, after),
            Shape::List(relation) => {
                let list =
                    |value: Option<&'_ Value>| value.and_then(Value::as_array).is_none_or(Vec::is_empty);
                match of.items() {
                    Some(items) if **relation != Relation::Atomic && !(list(before) && list(after)) => {
                        self.compare_items(relation, &items, before, after);
                        false
                    }
                    _ => self.compare_leaf(before, after),
                }
            }
            Shape::Map { atomic } => {
                let before_members = before.and_then(Value::as_object);
                let after_members = after.and_then(Value::as_object);
                let is_empty = |members: Option<&Map<_, _>>| members.is_none_or(Map::is_empty);
                if *atomic || (is_empty(before_members) && is_empty(after_members)) {
                    return self.compare_leaf(before, after);
                }
                self.compare_members(of, before_members, after_members);
                false
            }
        }
    }

    fn compare_leaf(&mut self, before: Option<&Value>, after: Option<&Value>) -> bool {
        match (before, after) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(before), Some(after)) if !equal(before, after) => self.found.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn compare_members(
        &mut self,
        of: &TypeRef,
        before: Option<&Map<String, Value>>,
        after: Option<&Map<String, Value>>,
    ) {
        let mut names: Vec<&String> = before.into_iter().chain(after).flat_map(Map::keys).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let Some(child) = of.child(name) else { continue };
            self.path.push(Element::field(name));
            self.compare(
                &child,
                before.and_then(|members| members.get(name)),
                after.and_then(|members| members.get(name)),
            );
            self.path.pop();
        }
    }

    fn compare_items(
        &mut self,
        relation: &Relation,
        of: &TypeRef,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        let before = grouped(relation, of, before.and_then(Value::as_array));
        let after = grouped(relation, of, after.and_then(Value::as_array));
        let mut steps: Vec<&Element> = before.keys().chain(after.keys()).collect();
        steps.sort_unstable();
        steps.dedup();
        for step in steps {
            let none = Vec::new();
            let before = before.get(step).unwrap_or(&none);
            let after = after.get(step).unwrap_or(&none);
            self.path.push(step.clone());
            match (&before[..], &after[..]) {
                ([] | [_], [] | [_]) => {
                    self.compare(of, before.first().copied(), after.first().copied());
                }
                // Several items with the same key count as one value.
                ([_, _, ..], [_, _, ..]) => {
                    let is_equal = before.len() == after.len()
                        && before.iter().zip(after).all(|(before, after)| equal(before, after));
                    if !is_equal {
                        self.found.modified.insert(&self.path);
                    }
                }
                ([_, _, ..], _) => {
                    if let Some(after) = after.first() {
                        self.compare(of, None, Some(after));
                    }
                    self.found.removed.insert(&self.path);
                }
                (_, [_, _, ..]) => {
                    if let Some(before) = before.first() {
                        self.compare(of, Some(before), None);
                    }
                    self.found.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
    }
}

/// Items by their keys. Items without a key are skipped.
fn grouped<'a>(
    relation: &Relation,
    of: &TypeRef,
    items: Option<&'a Vec<Value>>,
) -> BTreeMap<Element, Vec<&'a Value>> {
    let mut groups: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
    for item in items.into_iter().flatten() {
        if let Ok(step) = element_of(relation, of, item) {
            groups.entry(step).or_default().push(item);
        }
    }
    groups
}

/// The kind of a value, which can change only for values of any type. Null has the kind of the other value.
fn kind(of: &TypeRef, value: &Value) -> Option<u8> {
    match of.shape(Some(value)) {
        _ if value.is_null() => None,
        Shape::Scalar => Some(1),
        Shape::List(_) => Some(2),
        Shape::Map { .. } => Some(3),
    }
}

/// Whether two values are equal; 1 and 1.0 are.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| equal(left, right)))
        }
        _ => left == right,
    }
}
