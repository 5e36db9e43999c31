//! The part of JSON Schema (2020-12) that the description of `/v1` uses.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Keywords that decide nothing.
const WORDS: &[&str] = &["description", "default"];

/// The schemas of a document.
pub(super) struct Schemas<'a>(pub(super) &'a Value);

impl Schemas<'_> {
    /// What is wrong with a value.
    pub(super) fn errors(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.check(schema, value, "", &mut errors);
        errors
    }

    /// What a reference means.
    pub(super) fn resolve<'v>(&'v self, value: &'v Value) -> &'v Value {
        match value.get("$ref").and_then(Value::as_str) {
            Some(name) => {
                let pointer = name.strip_prefix('#').unwrap();
                self.resolve(self.0.pointer(pointer).unwrap_or_else(|| panic!("no {name}")))
            }
            None => value,
        }
    }

    /// Checks a value. The result is the fields that the schema knows.
    fn check(&self, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) -> BTreeSet<String> {
        let schema = schema.as_object().unwrap_or_else(|| panic!("{schema} is no schema"));
        let mut known = BTreeSet::new();
        let mut wrong = |text: String| errors.push(format!("{at}: {text}"));
        for (keyword, rule) in schema {
            let bound = || rule.as_u64().unwrap();
            let length = |count: Option<usize>| count.map(|count| u64::try_from(count).unwrap());
            let is_right = match keyword.as_str() {
                "$ref"
                | "oneOf"
                | "allOf"
                | "properties"
                | "additionalProperties"
                | "items"
                | "unevaluatedProperties" => true,
                "type" => match rule {
                    Value::Array(types) => types.iter().any(|rule| is(value, rule.as_str().unwrap())),
                    rule => is(value, rule.as_str().unwrap()),
                },
                "enum" => rule.as_array().unwrap().contains(value),
                "const" => rule == value,
                "required" => {
                    let names = || rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                    value.as_object().is_none_or(|map| names().all(|name| map.contains_key(name)))
                }
                "minimum" => value.as_u64().is_none_or(|number| number >= bound()),
                "maximum" => value.as_u64().is_none_or(|number| number <= bound()),
                "minItems" => length(value.as_array().map(Vec::len)).is_none_or(|count| count >= bound()),
                "maxItems" => length(value.as_array().map(Vec::len)).is_none_or(|count| count <= bound()),
                "minLength" => length(value.as_str().map(str::len)).is_none_or(|count| count >= bound()),
                "format" => {
                    assert_eq!(rule, "date-time");
                    value.as_str().is_none_or(|text| text.parse::<Timestamp>().is_ok() && text.ends_with('Z'))
                }
                word => {
                    assert!(WORDS.contains(&word), "the validator has no keyword {word}");
                    true
                }
            };
            if !is_right {
                wrong(format!("{keyword} {rule} against {value:.200}"));
            }
        }
        if schema.contains_key("$ref") {
            let schema = schema["$ref"].as_str().and_then(|name| self.0.pointer(name.strip_prefix('#')?));
            known.append(&mut self.check(schema.unwrap(), value, at, errors));
        }
        for part in parts(schema, "allOf") {
            known.append(&mut self.check(part, value, at, errors));
        }
        if schema.contains_key("oneOf") {
            let mut found = Vec::new();
            let mut others = Vec::new();
            for part in parts(schema, "oneOf") {
                let mut inner = Vec::new();
                let names = self.check(part, value, at, &mut inner);
                if inner.is_empty() { found.push(names) } else { others.push(inner.join(" and ")) }
            }
            match found.as_mut_slice() {
                [one] => known.append(one),
                found => errors.push(format!("{at}: {} of oneOf: {}", found.len(), others.join(", or "))),
            }
        }
        if let Some(map) = value.as_object() {
            self.fields(schema, map, at, errors, &mut known);
        }
        if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
            for (index, item) in list.iter().enumerate() {
                self.check(items, item, &format!("{at}/{index}"), errors);
            }
        }
        known
    }

    fn fields(
        &self,
        schema: &Map<String, Value>,
        map: &Map<String, Value>,
        at: &str,
        errors: &mut Vec<String>,
        known: &mut BTreeSet<String>,
    ) {
        let named = schema.get("properties").and_then(Value::as_object);
        for (name, value) in map {
            let place = format!("{at}/{name}");
            match (named.and_then(|named| named.get(name)), schema.get("additionalProperties")) {
                (Some(schema), _) => {
                    self.check(schema, value, &place, errors);
                    known.insert(name.clone());
                }
                (None, Some(Value::Bool(false))) => errors.push(format!("{place}: it is not described")),
                (None, Some(schema)) => {
                    self.check(schema, value, &place, errors);
                    known.insert(name.clone());
                }
                (None, None) => {}
            }
        }
        if schema.get("unevaluatedProperties") == Some(&Value::Bool(false)) {
            let unknown = map.keys().filter(|name| !known.contains(*name));
            errors.extend(unknown.map(|name| format!("{at}/{name}: it is not described")));
        }
    }
}

fn parts<'v>(schema: &'v Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'v Value> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn is(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the validator has no type {other}"),
    }
}

#[test]
fn the_validator_finds_what_is_wrong() {
    let document = serde_json::json!({"components": {"schemas": {
        "Open": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 1}}},
        "Closed": {
            "allOf": [{"$ref": "#/components/schemas/Open"}], "properties": {"b": {"enum": ["x", null]}},
            "unevaluatedProperties": false,
        },
        "Map": {"type": "object", "additionalProperties": {"type": ["string", "null"], "minLength": 1}},
        "One": {"oneOf": [{"type": "array", "items": {"const": 1}, "maxItems": 2}, {"type": "string", "format": "date-time"}]},
    }}});
    let schemas = Schemas(&document);
    for (name, value, is_right) in [
        ("Open", r#"{"a": 1, "c": 2}"#, true),
        ("Open", r#"{"a": 0}"#, false),
        ("Open", r#"{"a": 1.5}"#, false),
        ("Open", "{}", false),
        ("Closed", r#"{"a": 1, "b": "x"}"#, true),
        ("Closed", r#"{"a": 1, "b": null}"#, true),
        ("Closed", r#"{"a": 1, "b": "y"}"#, false),
        ("Closed", r#"{"a": 1, "c": 2}"#, false),
        ("Map", r#"{"any": "x", "other": null}"#, true),
        ("Map", r#"{"any": ""}"#, false),
        ("Map", r#"{"any": 1}"#, false),
        ("One", "[1, 1]", true),
        ("One", "[1, 2]", false),
        ("One", "[1, 1, 1]", false),
        ("One", r#""2026-03-01T14:00:00Z""#, true),
        ("One", r#""14:00""#, false),
        ("One", "1", false),
    ] {
        let schema = serde_json::json!({"$ref": format!("#/components/schemas/{name}")});
        let errors = schemas.errors(&schema, &serde_json::from_str(value).unwrap());
        assert_eq!(errors.is_empty(), is_right, "{name} {value}: {errors:?}");
    }
}
