//! Documents inside strings: ConfigMaps are full of them.

use serde_json::{Map, Value};

/// A text longer than this is compared by lines: reading it as YAML would take longer than anybody gains by it.
const MAX_BYTES: usize = 256 * 1024;

/// Reads two states of the string in `field` as documents, when both are documents of one format.
pub(crate) fn read(field: Option<&str>, old: &str, new: &str) -> Option<(Value, Value)> {
    if old.len().max(new.len()) > MAX_BYTES {
        return None;
    }
    let field = field.unwrap_or("");
    let extension = field.rsplit_once('.').map_or("", |(_, extension)| extension);
    let both = |read: fn(&str) -> Option<Value>| Some((read(old)?, read(new)?));
    both(json).or_else(|| match extension {
        "properties" | "env" => both(properties),
        "yaml" | "yml" => both(yaml),
        _ if looks_like_yaml(old) && looks_like_yaml(new) => both(yaml),
        _ => None,
    })
}

fn json(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// One document; a text of several is compared by lines.
fn yaml(text: &str) -> Option<Value> {
    let value: Value = serde_saphyr::from_str(text).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

/// Whether the first line that says anything is a field or an element, and all that follow could be.
/// Programs and other formats that YAML would read as something odd are to be compared by lines.
fn looks_like_yaml(text: &str) -> bool {
    if !text.contains('\n') {
        return false;
    }
    let mut lines = text.lines().filter(|line| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    });
    let Some(first) = lines.find(|line| *line != "---") else { return false };
    let is_field = |line: &str| {
        line.split_once(':').is_some_and(|(name, rest)| {
            let name = name.trim_matches('"');
            !name.is_empty()
                && (rest.is_empty() || rest.starts_with(' '))
                && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
        })
    };
    let is_top = |line: &str| line.starts_with("- ") || line == "-" || is_field(line);
    is_top(first) && lines.all(|line| line.starts_with([' ', '\t', '}', ']']) || is_top(line))
}

/// The common part of Java's format: `name = value` lines, each name once.
fn properties(text: &str) -> Option<Value> {
    let mut fields = Map::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let (name, value) = line.split_once(['=', ':'])?;
        let continues = line.ends_with('\\');
        let previous = fields.insert(name.trim_end().to_owned(), Value::from(value.trim_start()));
        if previous.is_some() || continues {
            return None;
        }
    }
    Some(Value::Object(fields))
}
