//! The type of a custom kind, from `openAPIV3Schema` of its CustomResourceDefinition (a structural schema).

use std::sync::Arc;

use serde_json::{Map, Value};

use super::table;
use super::{Field, Object, Relation, Scalar, Type, TypeRef, Types, Use};

/// The type that a version of a CustomResourceDefinition describes in `openAPIV3Schema`.
///
/// ```
/// use serde_json::json;
///
/// let shop = testapi::schema::custom(&json!({
///     "type": "object",
///     "properties": {"spec": {"type": "object", "properties": {"open": {"type": "boolean"}}}},
/// }));
/// let mut object = json!({"metadata": {"name": "corner"}, "spec": {"open": true, "closed": false}});
/// shop.prune(&mut object);
/// assert_eq!(object, json!({"metadata": {"name": "corner"}, "spec": {"open": true}}));
/// ```
pub fn custom(openapi_v3_schema: &Value) -> TypeRef {
    let mut converter = Converter { types: table::metadata() };
    let mut root = converter.definition(openapi_v3_schema, false);
    if let Type::Object(object) = &mut root {
        converter.add_own_fields(object);
    }
    let at = converter.types.add(root);
    TypeRef::new(Arc::new(converter.types), at)
}

/// Converts a schema, and collects the types in it.
struct Converter {
    types: Types,
}

impl Converter {
    /// `preserving` says that a type around it keeps unknown fields, which may then be owned.
    fn definition(&mut self, schema: &Value, preserving: bool) -> Type {
        let says = |name: &str| schema[name] == true;
        let preserving = preserving || says("x-kubernetes-preserve-unknown-fields");
        let format = || Box::from(schema["format"].as_str().unwrap_or_default());
        if says("x-kubernetes-int-or-string") {
            return Type::Any { atomic: false, format: "int-or-string".into(), one_of: Box::default() };
        }
        match schema["type"].as_str() {
            Some("object") => Type::Object(self.object(schema, preserving)),
            Some("array") => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                Type::List { items: self.used(items, preserving), relation: relation(schema) }
            }
            Some(name) => Type::Scalar(Scalar { name: name.into(), format: format() }),
            None if schema.get("properties").is_some() => Type::Object(self.object(schema, preserving)),
            None => Type::Any { atomic: false, format: format(), one_of: Box::default() },
        }
    }

    fn object(&mut self, schema: &Value, preserving: bool) -> Object {
        let required: Vec<_> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut object = Object {
            keeps_unknown: schema["x-kubernetes-preserve-unknown-fields"] == true,
            embedded: schema["x-kubernetes-embedded-resource"] == true,
            atomic: schema["x-kubernetes-map-type"].as_str().map(|map| map == "atomic"),
            ..Object::default()
        };
        for (name, schema) in schema["properties"].as_object().into_iter().flat_map(Map::iter) {
            let field = Field {
                required: required.contains(&name.as_str()),
                default: schema.get("default").cloned(),
                nullable: schema["nullable"] == true,
                ..Field::of(self.used(schema, preserving))
            };
            object.fields.insert(name.as_str().into(), field);
        }
        if object.embedded {
            self.add_own_fields(&mut object);
        }
        object.rest = match &schema["additionalProperties"] {
            values @ Value::Object(_) => Some(self.used(values, preserving)),
            Value::Bool(allowed) => allowed.then(|| self.anything()),
            // An object without declared fields may have any, and unknown fields that are kept have owners.
            _ => (preserving || object.fields.is_empty()).then(|| self.anything()),
        };
        object.declares_rest =
            schema["additionalProperties"].is_object() || schema["additionalProperties"] == true;
        object
    }

    fn used(&mut self, schema: &Value, preserving: bool) -> Use {
        let definition = self.definition(schema, preserving);
        Use::of(self.types.add(definition))
    }

    fn anything(&mut self) -> Use {
        Use::of(self.types.add(Type::any(false)))
    }

    /// Adds the fields that every object has.
    fn add_own_fields(&mut self, object: &mut Object) {
        for name in ["apiVersion", "kind"] {
            let string = Scalar { name: "string".into(), format: Box::default() };
            let at = self.types.add(Type::Scalar(string));
            object.fields.insert(name.into(), Field::of(Use::of(at)));
        }
        let at = match self.types.names.get(table::OBJECT_META) {
            Some(at) => *at,
            None => self.types.add(Type::any(false)),
        };
        object.fields.insert("metadata".into(), Field::of(Use::of(at)));
    }
}

fn relation(schema: &Value) -> Relation {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Relation::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            Relation::Map(keys.filter_map(Value::as_str).map(Box::from).collect())
        }
        _ => Relation::Atomic,
    }
}
