//! Validates custom resources by their schemas, with the messages of the real server.
//!
//! Types, required members, enumerations and bounds are checked; patterns, formats, combinations (`oneOf` and the like)
//! and rules in CEL are not.

use serde_json::{Value, json};

use crate::refusal::FieldError;

/// Everything in an object that its schema does not allow.
pub(super) fn errors(schema: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = object.get(name).filter(|_| name != "metadata") {
            check(schema, value, name, &mut errors);
        }
    }
    required(schema, object, "", &mut errors);
    errors
}

fn check(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    let free = schema["x-kubernetes-int-or-string"] == true && (value.is_string() || value.is_i64());
    if let Some(expected) = schema["type"].as_str().filter(|expected| !free && !is_of(expected, value)) {
        let found = kind(value);
        let why = format!("{path} in body must be of type {expected}: {found:?}");
        errors.push(FieldError::type_invalid(path, json!(found), &why));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        let allowed: Vec<String> = allowed
            .iter()
            .map(|value| value.as_str().map_or_else(|| value.to_string(), Into::into))
            .collect();
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        errors.push(FieldError::unsupported(path, value, &allowed));
    }
    bounds(schema, value, path, errors);
    match value {
        Value::Object(members) => {
            required(schema, value, path, errors);
            for (name, member) in members {
                let of_it = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
                if let Some(of_it) = of_it.filter(|of_it| of_it.is_object()) {
                    check(of_it, member, &format!("{path}.{name}"), errors);
                }
            }
        }
        Value::Array(items) if schema["items"].is_object() => {
            for (at, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{path}[{at}]"), errors);
            }
        }
        _ => {}
    }
}

fn required(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in names.filter(|name| value.get(*name).is_none()) {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        errors.push(FieldError::required(path, ""));
    }
}

fn bounds(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut wrong = |why: String| errors.push(FieldError::invalid(path, value, &why));
    if let Some(number) = value.as_f64() {
        if let Some(least) = schema["minimum"].as_f64().filter(|least| number < *least) {
            wrong(format!("{path} in body should be greater than or equal to {least}"));
        }
        if let Some(most) = schema["maximum"].as_f64().filter(|most| number > *most) {
            wrong(format!("{path} in body should be less than or equal to {most}"));
        }
    }
    if let Some(length) = value.as_str().map(|text| text.chars().count() as u64) {
        if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
            wrong(format!("{path} in body should be at least {least} chars long"));
        }
        if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
            errors.push(FieldError::too_long(path, &format!("may not be more than {most} bytes")));
        }
    }
    if let Some(count) = value.as_array().map(Vec::len) {
        let bound = |name: &str| schema[name].as_u64().and_then(|bound| usize::try_from(bound).ok());
        if let Some(least) = bound("minItems").filter(|least| count < *least) {
            let why = format!("{path} in body should have at least {least} items");
            errors.push(FieldError::invalid(path, count, &why));
        }
        if let Some(most) = bound("maxItems").filter(|most| count > *most) {
            errors.push(FieldError::too_many(path, count, most));
        }
    }
}

fn is_of(expected: &str, value: &Value) -> bool {
    match expected {
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        expected => kind(value) == expected,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
