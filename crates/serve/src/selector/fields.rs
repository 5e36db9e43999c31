//! Field selectors: `metadata.name=web,spec.nodeName!=n1`.

use serde_json::Value;

use crate::{Object, Resource, SelectableField, json};

/// Conditions on fields, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    Selectable(SelectableField),
}

/// A condition on a field that the resource may not have.
pub(crate) struct Condition<'a> {
    name: &'a str,
    value: String,
    equal: bool,
}

/// Parses a selector; the error is in the server's words.
pub(crate) fn parse(text: &str) -> Result<Vec<Condition<'_>>, String> {
    let mut split = split(text);
    split.sort_unstable();
    let conditions = split.into_iter().filter(|term| !term.is_empty()).map(|term| {
        let (name, rest) = term
            .char_indices()
            .map(|(at, _)| term.split_at(at))
            .find(|(_, rest)| rest.starts_with('=') || rest.starts_with("!="))
            .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{term}'"))?;
        let (equal, value) = match rest.strip_prefix("!=") {
            Some(value) => (false, value),
            None => (true, rest.strip_prefix("==").unwrap_or(&rest[1..])),
        };
        Ok(Condition { name, value: unescaped(value)?, equal })
    });
    conditions.collect()
}

impl Fields {
    /// Selects an object by name.
    pub(crate) fn name(name: &str) -> Self {
        Self(vec![Term { field: Field::Name, value: name.to_string(), equal: true }])
    }

    /// The conditions on the fields of a resource; the error is in the server's words.
    pub(crate) fn of(resource: &Resource, conditions: Vec<Condition<'_>>) -> Result<Self, String> {
        let terms = conditions.into_iter().map(|Condition { name, value, equal }| {
            Ok(Term { field: Field::find(resource, name)?, value, equal })
        });
        Ok(Self(terms.collect::<Result<_, String>>()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The only name that an object may have.
    pub(crate) fn exact_name(&self) -> Option<&str> {
        let name = self.0.iter().find(|term| term.equal && term.field == Field::Name)?;
        Some(&name.value)
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.0.iter().all(|term| {
            let equal = match &term.field {
                Field::Name => *object.name == *term.value,
                Field::Namespace => *object.namespace == *term.value,
                Field::Selectable(field) => value(field, object) == term.value,
            };
            equal == term.equal
        })
    }
}

impl Field {
    fn find(resource: &Resource, name: &str) -> Result<Self, String> {
        match name {
            "metadata.name" => return Ok(Self::Name),
            "metadata.namespace" if has_namespace(resource) => return Ok(Self::Namespace),
            _ => {}
        }
        let field = resource.selectable.iter().find(|field| *field.label == *name);
        field.cloned().map(Self::Selectable).ok_or_else(|| unknown(resource, name))
    }
}

/// A built-in kind without fields of its own accepts the namespace even if its objects have none.
fn has_namespace(resource: &Resource) -> bool {
    resource.namespaced || (!resource.typed_items && resource.selectable.is_empty())
}

/// The server words the error for an unknown field differently from kind to kind.
fn unknown(resource: &Resource, name: &str) -> String {
    match &*resource.kind {
        "Job" if !resource.typed_items => format!("field label {name:?} not supported for Job"),
        _ if !resource.selectable.is_empty() || resource.typed_items => {
            format!("field label not supported: {name}")
        }
        _ => {
            format!("{name:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    }
}

fn value(field: &SelectableField, object: &Object) -> String {
    let names = field.pointer.split('/').skip(1);
    let value = json::path(&object.body, names)
        .and_then(|range| serde_json::from_slice::<Value>(&object.body[range]).ok());
    match value {
        None | Some(Value::Null) => field.missing.to_string(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}

/// The terms between commas that no backslash precedes.
fn split(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => {
                let code = u32::from(character);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            other => value.push(other),
        }
    }
    Ok(value)
}
