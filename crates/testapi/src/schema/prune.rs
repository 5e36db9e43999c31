//! Removes unknown fields from an object, and sets defaults of its type.

use serde_json::{Map, Value};

use super::{Field, Object, Type, TypeRef, Use};

impl Object {
    /// The type of a part, unless unknown.
    pub(super) fn known(&self, name: &str) -> Option<Use> {
        let field = self.fields.get(name).map(|field| field.used);
        field.or_else(|| self.rest.filter(|_| self.declares_rest))
    }
}

impl TypeRef {
    /// Changes each object within a value, from the outside in. Below an object for which `change` returns false nothing
    /// changes.
    fn each_object(
        &self,
        value: &mut Value,
        change: &impl Fn(&Self, &Object, &mut Map<String, Value>) -> bool,
    ) {
        match (self.definition(), value) {
            (Type::Object(object), Value::Object(members)) => {
                if !change(self, object, members) {
                    return;
                }
                for (name, value) in members {
                    if let Some(used) = object.known(name) {
                        self.at(used).each_object(value, change);
                    }
                }
            }
            (Type::List { items, .. }, Value::Array(values)) => {
                values.iter_mut().for_each(|value| self.at(*items).each_object(value, change));
            }
            _ => {}
        }
    }

    /// Removes the fields that the type does not have and does not keep (`x-kubernetes-preserve-unknown-fields`).
    pub fn prune(&self, value: &mut Value) {
        self.each_object(value, &|_, object, members| {
            members.retain(|name, _| object.keeps_unknown || object.known(name).is_some());
            true
        });
    }

    /// Changes an object of a built-in kind as if a server had decoded it into Go structures and encoded it again:
    /// removes unknown fields, nulls, and empty values that are not required, and adds `{}` for embedded structures.
    /// Objects of other kinds stay as they are.
    pub fn normalize(&self, value: &mut Value) {
        self.each_object(value, &|of, object, members| {
            if !of.are_structures() {
                return false;
            }
            for (name, field) in object.fields.iter().filter(|(_, field)| field.is_structure()) {
                if members.get(&**name).is_none_or(Value::is_null) {
                    members.insert(name.to_string(), field.default.clone().unwrap_or_default());
                }
            }
            // A null in a map stays and becomes the zero value.
            for value in members.values_mut().filter(|value| value.is_null() && object.fields.is_empty()) {
                *value = object.rest.map(|rest| of.at(rest).zero()).unwrap_or_default();
            }
            members.retain(|name, value| match object.known(name) {
                None => false,
                Some(used) => !value.is_null() && !object.leaves_out(name, &of.at(used), value),
            });
            for (name, _) in object.fields.iter().filter(|(_, field)| field.kept) {
                members.entry(name.to_string()).or_insert(Value::Null);
            }
            true
        });
    }

    /// Adds the fields that a Go structure of a built-in kind always has: required ones and embedded structures. Other
    /// kinds stay as they are.
    pub(crate) fn fill_structure(&self, value: &mut Value) {
        self.each_object(value, &|of, object, members| {
            let is_always = |field: &Field| field.required || field.kept || field.is_structure();
            if of.are_structures() {
                for (name, field) in object.fields.iter().filter(|(_, field)| is_always(field)) {
                    if !members.contains_key(&**name) {
                        members.insert(name.to_string(), field.default.clone().unwrap_or_default());
                    }
                }
            }
            of.are_structures()
        });
    }

    /// Sets the missing fields of a custom kind that have a default in its structural schema.
    pub fn fill_defaults(&self, value: &mut Value) {
        self.each_object(value, &|_, object, members| {
            for (name, field) in &object.fields {
                let Some(default) = &field.default else { continue };
                if members.get(&**name).is_none_or(|value| value.is_null() && !field.nullable) {
                    members.insert(name.to_string(), default.clone());
                }
            }
            true
        });
    }

    /// The zero value of this type.
    fn zero(&self) -> Value {
        match self.definition() {
            Type::Scalar(scalar) if *scalar.name == *"string" => "".into(),
            _ => Value::Null,
        }
    }

    /// Whether a scalar has its zero value.
    fn is_zero(&self, value: &Value) -> bool {
        matches!(self.definition(), Type::Scalar(_))
            && match value {
                Value::String(text) => text.is_empty(),
                Value::Bool(yes) => !yes,
                Value::Number(number) => number.as_f64() == Some(0.0),
                _ => false,
            }
    }

    /// Whether a value is an empty list or an empty map, which structures omit. They keep empty structures.
    fn is_empty(&self, value: &Value) -> bool {
        match (self.definition(), value) {
            (Type::List { .. }, Value::Array(items)) => items.is_empty(),
            (Type::Object(object), Value::Object(members)) => object.declares_rest && members.is_empty(),
            _ => false,
        }
    }
}

impl Field {
    /// Whether it is a structure embedded in another one, and so never missing.
    fn is_structure(&self) -> bool {
        self.default.as_ref().is_some_and(Value::is_object)
    }
}

impl Object {
    /// Whether a field with this value is omitted.
    fn leaves_out(&self, name: &str, of: &TypeRef, value: &Value) -> bool {
        self.fields.get(name).is_some_and(|field| {
            let zero = !field.pointer && field.default.is_none() && of.is_zero(value);
            !field.required && !field.kept && (zero || of.is_empty(value))
        })
    }
}
