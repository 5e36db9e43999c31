//! Field selectors: `metadata.name=web,spec.nodeName!=n1`.

use kube_selector::InvalidSelector;
use kube_selector::fields::{Condition, terms};
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

/// Parses a selector. Its conditions are in the order in which the server checks them.
pub(crate) fn parse(text: &str) -> Result<Vec<Condition<'_>>, InvalidSelector> {
    let mut terms: Vec<_> = terms(text).filter(|term| !term.text.is_empty()).collect();
    terms.sort_unstable_by_key(|term| term.text);
    terms.into_iter().map(|term| term.condition(text)).collect()
}

impl Fields {
    /// Selects an object by name.
    pub(crate) fn name(name: &str) -> Self {
        Self(vec![Term { field: Field::Name, value: name.to_string(), equal: true }])
    }

    /// The conditions on the fields of a resource; the error is in the server's words.
    pub(crate) fn of(resource: &Resource, conditions: Vec<Condition<'_>>) -> Result<Self, String> {
        let terms = conditions.into_iter().map(|Condition { field, value, equal }| {
            Ok(Term { field: Field::find(resource, field)?, value, equal })
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
