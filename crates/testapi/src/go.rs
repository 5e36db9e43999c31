//! Values in Go's formats, for the messages of the API server.

use serde_json::{Map, Value};

/// `map[a:1 b:[x y]]`
pub(crate) fn print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => print_list(items),
        Value::Object(members) => print_map(members),
        other => other.to_string(),
    }
}

pub(crate) fn print_list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(print).collect::<Vec<_>>().join(" "))
}

pub(crate) fn print_map(members: &Map<String, Value>) -> String {
    let members: Vec<_> = members.iter().map(|(name, value)| format!("{name}:{}", print(value))).collect();
    format!("map[{}]", members.join(" "))
}

/// The members of a list or a map as Go's `%#v` prints them: `{"a":1}`.
pub(crate) fn literal(value: &Value) -> String {
    let nested = |value: &Value| match value {
        Value::Array(_) | Value::Object(_) => format!("{}{}", type_of(value), literal(value)),
        other => other.to_string(),
    };
    let parts: Vec<_> = match value {
        Value::Array(items) => items.iter().map(nested).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| format!("{name:?}:{}", nested(value))).collect()
        }
        _ => Vec::new(),
    };
    format!("{{{}}}", parts.join(", "))
}

/// The type of a decoded value.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's name for the kind of a JSON value.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Go's message for malformed JSON.
pub(crate) fn syntax_error(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
}
