//! Cutting an object to what its type has, and filling in what its type has for it.

use serde_json::Value;

use super::{Field, Object, Type, TypeRef, Use};

impl Object {
    /// The type of a part, unless unknown.
    pub(super) fn known(&self, name: &str) -> Option<Use> {
        let field = self.fields.get(name).map(|field| field.used);
        field.or_else(|| self.rest.filter(|_| self.declares_rest))
    }
}

impl TypeRef {
    /// Removes the fields that the type does not have and does not keep (`x-kubernetes-preserve-unknown-fields`).
    pub fn prune(&self, value: &mut Value) {
        match (self.definition(), value) {
            (Type::Object(object), Value::Object(members)) => {
                members.retain(|name, _| object.keeps_unknown || object.known(name).is_some());
                for (name, value) in members {
                    if let Some(used) = object.known(name) {
                        self.at(used).prune(value);
                    }
                }
            }
            (Type::List { items, .. }, Value::Array(values)) => {
                values.iter_mut().for_each(|value| self.at(*items).prune(value));
            }
            _ => {}
        }
    }

    /// As a server that decodes into structures and encodes them again leaves an object of a built-in kind: without
    /// unknown fields, without null, without values that are empty and not required, with `{}` for structures that are
    /// part of others. Objects of other kinds stay as they are.
    pub fn normalize(&self, value: &mut Value) {
        match (self.definition(), value) {
            (Type::Object(object), Value::Object(members)) if self.are_structures() => {
                for (name, field) in object.fields.iter().filter(|(_, field)| field.is_structure()) {
                    let part = members.entry(name.to_string()).or_insert(Value::Null);
                    if part.is_null() {
                        *part = field.default.clone().unwrap_or_default();
                    }
                }
                // What is null in a map is there, and nothing.
                for value in members.values_mut().filter(|value| value.is_null() && object.fields.is_empty())
                {
                    *value = object.rest.map(|rest| self.at(rest).zero()).unwrap_or_default();
                }
                members.retain(|name, value| match object.known(name) {
                    None => false,
                    Some(used) => !value.is_null() && !object.leaves_out(name, &self.at(used), value),
                });
                for (name, _) in object.fields.iter().filter(|(_, field)| field.kept) {
                    members.entry(name.to_string()).or_insert(Value::Null);
                }
                for (name, value) in members {
                    if let Some(used) = object.known(name) {
                        self.at(used).normalize(value);
                    }
                }
            }
            (Type::List { items, .. }, Value::Array(values)) => {
                values.iter_mut().for_each(|value| self.at(*items).normalize(value));
            }
            _ => {}
        }
    }

    /// With the fields that a Go structure of a built-in kind has although nobody has set them: those that may not be
    /// missing, and structures that are part of it. Other kinds stay as they are.
    pub(crate) fn fill_structure(&self, value: &mut Value) {
        match (self.definition(), value) {
            (Type::Object(object), Value::Object(members)) if self.are_structures() => {
                for (name, field) in &object.fields {
                    if (field.required || field.kept || field.is_structure())
                        && !members.contains_key(&**name)
                    {
                        members.insert(name.to_string(), field.default.clone().unwrap_or_default());
                    }
                }
                for (name, value) in members {
                    if let Some(used) = object.known(name) {
                        self.at(used).fill_structure(value);
                    }
                }
            }
            (Type::List { items, .. }, Value::Array(values)) => {
                values.iter_mut().for_each(|value| self.at(*items).fill_structure(value));
            }
            _ => {}
        }
    }

    /// Sets the defaults of a custom kind where nothing is set, as structural schemas have them.
    pub fn fill_defaults(&self, value: &mut Value) {
        match (self.definition(), value) {
            (Type::Object(object), Value::Object(members)) => {
                for (name, field) in &object.fields {
                    let Some(default) = &field.default else { continue };
                    let is_missing = match members.get(&**name) {
                        None => true,
                        Some(value) => value.is_null() && !field.nullable,
                    };
                    if is_missing {
                        members.insert(name.to_string(), default.clone());
                    }
                }
                for (name, value) in members {
                    if let Some(used) = object.known(name) {
                        self.at(used).fill_defaults(value);
                    }
                }
            }
            (Type::List { items, .. }, Value::Array(values)) => {
                values.iter_mut().for_each(|value| self.at(*items).fill_defaults(value));
            }
            _ => {}
        }
    }

    /// What a value of this type is where nothing is said of it.
    fn zero(&self) -> Value {
        match self.definition() {
            Type::Scalar(scalar) if *scalar.name == *"string" => "".into(),
            _ => Value::Null,
        }
    }

    /// Whether a scalar is what it is where nobody has set it.
    fn is_zero(&self, value: &Value) -> bool {
        matches!(self.definition(), Type::Scalar(_))
            && match value {
                Value::String(text) => text.is_empty(),
                Value::Bool(yes) => !yes,
                Value::Number(number) => number.as_f64() == Some(0.0),
                _ => false,
            }
    }

    /// Whether a value is an empty list or an empty map, which structures leave out; an empty structure they keep.
    fn is_empty(&self, value: &Value) -> bool {
        match (self.definition(), value) {
            (Type::List { .. }, Value::Array(items)) => items.is_empty(),
            (Type::Object(object), Value::Object(members)) => object.declares_rest && members.is_empty(),
            _ => false,
        }
    }
}

impl Field {
    /// A structure that is part of another, and so is always there.
    fn is_structure(&self) -> bool {
        self.default.as_ref().is_some_and(Value::is_object)
    }
}

impl Object {
    /// Whether a field with such a value is not written at all.
    fn leaves_out(&self, name: &str, of: &TypeRef, value: &Value) -> bool {
        self.fields.get(name).is_some_and(|field| {
            let zero = !field.pointer && field.default.is_none() && of.is_zero(value);
            !field.required && !field.kept && (zero || of.is_empty(value))
        })
    }
}
