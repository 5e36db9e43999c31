//! Finds values that a server could not decode into the Go structures of a built-in kind, with the messages of Go's
//! decoder.

use serde_json::Value;

use super::{Scalar, Type, TypeRef};
use crate::go;

const QUANTITY: &str =
    r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

impl TypeRef {
    /// The reason why an object is undecodable as the Go structures of its kind: `json: cannot unmarshal string into Go
    /// struct field DeploymentSpec.spec.replicas of type int32`. For a custom kind only the metadata is a structure.
    pub fn undecodable(&self, object: &Value) -> Option<String> {
        if self.are_structures() {
            return self.decode(object, "", &mut Vec::new());
        }
        let metadata = object.get("metadata")?;
        self.child("metadata")?.decode(metadata, "", &mut Vec::new())
    }

    /// `structure` contains the value, `path` has the names on the way to it.
    fn decode<'a>(&self, value: &'a Value, structure: &str, path: &mut Vec<&'a str>) -> Option<String> {
        let refused = |kind: &str, path: &[&str]| {
            let kind = if value.is_number() { number(value, kind) } else { go::json_kind(value).to_owned() };
            let path = path.join(".");
            Some(if structure.is_empty() && path.is_empty() {
                format!("json: cannot unmarshal {kind} into Go value of type {}", self.go_name())
            } else {
                format!(
                    "json: cannot unmarshal {kind} into Go struct field {structure}.{path} of type {}",
                    self.go_name()
                )
            })
        };
        match (self.definition(), value) {
            (_, Value::Null) => None,
            (Type::Object(object), Value::Object(members)) => {
                let structure = if object.fields.is_empty() { structure } else { self.name() };
                for (name, value) in members {
                    let Some(used) = object.known(name) else { continue };
                    let child = self.at(used);
                    let is_field = object.fields.contains_key(name.as_str());
                    if is_field {
                        path.push(name);
                    }
                    let found = child.decode(value, structure, path);
                    if found.is_some() {
                        return found;
                    }
                    if is_field {
                        path.pop();
                    }
                }
                None
            }
            (Type::List { items, .. }, Value::Array(values)) => {
                let items = self.at(*items);
                values.iter().find_map(|value| items.decode(value, structure, path))
            }
            (Type::Scalar(scalar), value) => {
                (!scalar.decodes(value)).then(|| refused(&scalar.name, path)).flatten()
            }
            (Type::Any { .. }, value) => match (self.name(), value) {
                ("Quantity", Value::String(text)) if !is_quantity(text) => Some(QUANTITY.to_owned()),
                ("IntOrString" | "Quantity", Value::Array(_) | Value::Object(_) | Value::Bool(_)) => {
                    refused("", path)
                }
                _ => None,
            },
            _ => refused("", path),
        }
    }

    /// Go's name of the type.
    fn go_name(&self) -> String {
        match self.definition() {
            Type::Scalar(scalar) => scalar.go_name().to_owned(),
            Type::List { items, .. } => format!("[]{}", self.at(*items).go_name()),
            Type::Object(object) => {
                match object.rest.filter(|_| object.fields.is_empty()).map(|rest| self.at(rest)) {
                    Some(values) if values.name() == "Quantity" => "v1.ResourceList".to_owned(),
                    Some(values) => format!("map[string]{}", values.go_name()),
                    None => self.qualified_name(),
                }
            }
            Type::Any { .. } if self.name() == "IntOrString" => "int32".to_owned(),
            Type::Any { .. } => self.qualified_name(),
        }
    }
}

impl Scalar {
    fn go_name(&self) -> &'static str {
        match (&*self.name, &*self.format) {
            ("integer", "int64") => "int64",
            ("integer", _) => "int32",
            ("number", _) => "float64",
            ("boolean", _) => "bool",
            (_, "byte") => "[]uint8",
            _ => "string",
        }
    }

    fn decodes(&self, value: &Value) -> bool {
        match (self.go_name(), value) {
            ("int32", Value::Number(number)) => {
                number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
            }
            ("int64", Value::Number(number)) => number.is_i64(),
            ("float64", Value::Number(_)) | ("bool", Value::Bool(_)) => true,
            ("[]uint8" | "string", Value::String(_)) => true,
            _ => false,
        }
    }
}

/// The message includes the number if it is only out of range.
fn number(value: &Value, kind: &str) -> String {
    if kind == "integer" { format!("number {value}") } else { "number".to_owned() }
}

fn is_quantity(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if rest.len() == text.len() {
        return false;
    }
    let rest = rest.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.chars().all(|letter| letter.is_ascii_digit())
}
