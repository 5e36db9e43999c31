//! Validates values by their types, with the messages of server-side apply (structured-merge-diff).

use serde_json::Value;

use super::path::{Element, element_of};
use super::{Relation, Scalar, Shape, Type, TypeRef};
use crate::go;

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The path: `.spec.replicas`.
    pub path: String,
    /// The message.
    pub message: String,
}

impl TypeRef {
    /// Everything in a value that does not fit this type, including unknown fields.
    ///
    /// `duplicates` says whether two items of a list may have the same key, as in existing objects.
    pub fn mismatches(&self, value: &Value, duplicates: bool) -> Vec<Mismatch> {
        let mut found = Vec::new();
        self.check(value, "", duplicates, &mut found);
        found
    }

    fn check(&self, value: &Value, path: &str, duplicates: bool, found: &mut Vec<Mismatch>) {
        let mut wrong = |message: String| found.push(Mismatch { path: path.to_owned(), message });
        match (self.shape(Some(value)), value) {
            (_, Value::Null) => {}
            (Shape::Scalar, value) => {
                if let Type::Scalar(scalar) = self.definition()
                    && let Some(message) = scalar.mismatch(value)
                {
                    wrong(message);
                }
            }
            (Shape::List(relation), Value::Array(items)) => {
                let relation = relation.clone();
                self.check_items(&relation, items, path, duplicates, found);
            }
            (Shape::Map { .. }, Value::Object(members)) => {
                for (name, value) in members {
                    let path = format!("{path}.{name}");
                    match self.child(name) {
                        Some(child) => child.check(value, &path, duplicates, found),
                        None => {
                            found.push(Mismatch { path, message: "field not declared in schema".to_owned() });
                            // The server reports only the first error of an object.
                            return;
                        }
                    }
                }
            }
            (Shape::List(_), value) => wrong(format!("expected list, got {}", printed(value))),
            (Shape::Map { .. }, value) => wrong(format!("expected map, got {}", printed(value))),
        }
    }

    fn check_items(
        &self,
        relation: &Relation,
        items: &[Value],
        path: &str,
        duplicates: bool,
        found: &mut Vec<Mismatch>,
    ) {
        let Some(of) = self.items() else { return };
        let mut seen: Vec<Element> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let element = match relation {
                Relation::Atomic => Element::Index(at),
                _ => match element_of(relation, &of, item) {
                    Ok(element) => element,
                    Err(message) => {
                        let message = format!("element {at}: {message}");
                        found.push(Mismatch { path: path.to_owned(), message });
                        return;
                    }
                },
            };
            if *relation != Relation::Atomic {
                if seen.contains(&element) && !duplicates {
                    let message = format!("duplicate entries for key {element}");
                    found.push(Mismatch { path: path.to_owned(), message });
                }
                seen.push(element.clone());
            }
            of.check(item, &format!("{path}{element}"), duplicates, found);
        }
    }
}

impl Scalar {
    fn mismatch(&self, value: &Value) -> Option<String> {
        match (&*self.name, &*self.format) {
            ("integer" | "number", _) if !value.is_number() => {
                Some(format!("expected numeric (int or float), got {}", go::type_of(value)))
            }
            ("boolean", _) if !value.is_boolean() => {
                Some(format!("expected boolean, got {}", printed(value)))
            }
            ("string", "" | "byte") if !value.is_string() => {
                Some(format!("expected string, got {}", described(value)))
            }
            (_, _) if value.is_object() || value.is_array() => {
                Some(format!("expected any scalar, got {}", printed(value)))
            }
            _ => None,
        }
    }
}

/// The value as Go prints its structure (`%v`).
fn printed(value: &Value) -> String {
    format!("&{{{}}}", go::print(value))
}

/// The value as Go prints its structure with types (`%#v`).
fn described(value: &Value) -> String {
    let value = match value {
        Value::String(text) => format!("{text:?}"),
        Value::Array(_) | Value::Object(_) => format!("{}{}", go::type_of(value), go::literal(value)),
        other => go::print(other),
    };
    format!("&value.valueUnstructured{{Value:{value}}}")
}
