//! A value on one line, as YAML's flow style has it.

use serde_json::Value;

use super::escape::escape;

/// `value` on one line, safe for a terminal. A string is quoted where it could be taken for something else: `"2"`, `""`.
pub(crate) fn flow(value: &Value) -> String {
    let mut text = String::new();
    write(value, false, &mut text);
    text
}

fn write(value: &Value, inside: bool, out: &mut String) {
    match value {
        Value::String(text) => string(text, inside, out),
        Value::Array(list) => {
            out.push('[');
            for (at, element) in list.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(element, true, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (at, (name, value)) in map.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                string(name, true, out);
                out.push_str(": ");
                write(value, true, out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

fn string(text: &str, inside: bool, out: &mut String) {
    let punctuation = |c: char| matches!(c, ',' | '[' | ']' | '{' | '}' | '"');
    let quoted = text.is_empty()
        || text.trim() != text
        || matches!(text, "true" | "false" | "null")
        || text.parse::<f64>().is_ok()
        || text.starts_with('"')
        || inside && (text.contains(punctuation) || text.contains(": "));
    if quoted {
        out.push_str(&escape(&Value::from(text).to_string()));
    } else {
        out.push_str(&escape(text));
    }
}
