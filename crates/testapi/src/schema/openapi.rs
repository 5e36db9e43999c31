//! Converts the built-in types back to OpenAPI, for `kubectl explain` and client-side validation. Descriptions are
//! missing, because the table leaves them out.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::table;
use super::{Field, Relation, Type, Types, Use};

/// `components.schemas` of one group and version: its kinds and all that they refer to; `None` for an unknown one.
pub fn openapi(group: &str, version: &str) -> Option<Value> {
    let types = table::builtin();
    let kinds = types
        .kinds
        .iter()
        .filter(|([its_group, its_version, _], _)| **its_group == *group && **its_version == *version);
    let schemas = with_parts(types, kinds.map(|(_, at)| *at).collect());
    (!schemas.is_empty()).then_some(Value::Object(schemas))
}

/// The properties that every object has in addition to its definition, and the schemas that they refer to.
pub(crate) fn common() -> (Map<String, Value>, Map<String, Value>) {
    let types = table::builtin();
    let metadata = types.names.get(table::OBJECT_META).copied().unwrap_or_default();
    let properties = [
        ("apiVersion", json!({"type": "string"})),
        ("kind", json!({"type": "string"})),
        ("metadata", used(types, Use::of(metadata))),
    ];
    let properties = properties.map(|(name, schema)| (name.to_string(), schema));
    (Map::from_iter(properties), with_parts(types, vec![metadata]))
}

/// The schemas of types and of all that they refer to.
fn with_parts(types: &Types, mut wanted: Vec<usize>) -> Map<String, Value> {
    let mut seen: BTreeSet<usize> = wanted.iter().copied().collect();
    while let Some(at) = wanted.pop() {
        for used in parts(&types.all[at]) {
            if seen.insert(used.at) {
                wanted.push(used.at);
            }
        }
    }
    let named_ones = types.names.iter().filter(|(_, at)| seen.contains(at));
    named_ones.map(|(name, at)| (name.to_string(), named(types, name, *at))).collect()
}

fn parts(definition: &Type) -> Vec<Use> {
    match definition {
        Type::Any { .. } | Type::Scalar(_) => Vec::new(),
        Type::List { items, .. } => vec![*items],
        Type::Object(object) => object.fields.values().map(|field| field.used).chain(object.rest).collect(),
    }
}

fn named(types: &Types, name: &str, at: usize) -> Value {
    let mut schema = definition(types, &types.all[at]);
    // Server-side apply treats these two types as anything.
    if name.ends_with(".RawExtension") || name.ends_with(".FieldsV1") {
        schema = json!({"type": "object"});
    }
    let kinds: Vec<_> = types
        .kinds
        .iter()
        .filter(|(_, kind)| *kind == at)
        .map(|([group, version, kind], _)| json!({"group": group, "version": version, "kind": kind}))
        .collect();
    if !kinds.is_empty() {
        schema["x-kubernetes-group-version-kind"] = kinds.into();
    }
    schema
}

fn used(types: &Types, used: Use) -> Value {
    let named = types.names.iter().find(|(_, at)| **at == used.at);
    match named {
        Some((name, _)) => {
            let mut schema = json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}]});
            if let Some(atomic) = used.atomic {
                schema["x-kubernetes-map-type"] = map_type(atomic);
            }
            schema
        }
        None => definition(types, &types.all[used.at]),
    }
}

fn definition(types: &Types, definition: &Type) -> Value {
    match definition {
        Type::Any { format, one_of, .. } => {
            let mut schema = json!({});
            if !format.is_empty() {
                schema["format"] = (**format).into();
            }
            if !one_of.is_empty() {
                schema["oneOf"] = one_of.iter().map(|one| json!({"type": one})).collect();
            }
            schema
        }
        Type::Scalar(scalar) => {
            let mut schema = json!({"type": scalar.name});
            if !scalar.format.is_empty() {
                schema["format"] = (*scalar.format).into();
            }
            schema
        }
        Type::List { items, relation } => {
            let mut schema = json!({"type": "array", "items": used(types, *items)});
            if let Relation::Map(keys) = relation {
                schema["x-kubernetes-list-map-keys"] = json!(keys);
            }
            schema
        }
        Type::Object(object) => {
            let mut schema = json!({"type": "object"});
            if let Some(atomic) = object.atomic {
                schema["x-kubernetes-map-type"] = map_type(atomic);
            }
            if object.fields.is_empty() {
                // A named type without fields may have any fields, although the schema does not say so.
                let is_free = |rest: &Use| {
                    matches!(types.all[rest.at], Type::Any { .. })
                        && !types.names.values().any(|at| *at == rest.at)
                };
                if let Some(rest) = object.rest.filter(|rest| !is_free(rest)) {
                    schema["additionalProperties"] = used(types, rest);
                }
                return schema;
            }
            let fields = object.fields.iter();
            schema["properties"] =
                fields.clone().map(|(name, field)| (name.to_string(), property(types, field))).collect();
            let required: Vec<_> = fields.filter(|(_, field)| field.required).map(|(name, _)| name).collect();
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            schema
        }
    }
}

fn property(types: &Types, field: &Field) -> Value {
    let mut schema = used(types, field.used);
    if let Some(default) = &field.default {
        schema["default"] = default.clone();
    }
    if !field.values.is_empty() {
        schema["enum"] = json!(field.values);
    }
    if let Some(list) = &field.list {
        schema["x-kubernetes-list-type"] = list.split(':').next().unwrap_or_default().into();
    }
    if !field.patch.is_empty() {
        schema["x-kubernetes-patch-strategy"] = field.patch.join(",").into();
    }
    if let Some(key) = &field.merge_key {
        schema["x-kubernetes-patch-merge-key"] = (**key).into();
    }
    schema
}

fn map_type(atomic: bool) -> Value {
    if atomic { "atomic".into() } else { "granular".into() }
}
