//! Documents inside strings: ConfigMaps are full of them.

mod yaml;

use serde_json::{Map, Value};

/// A text longer than this is compared by lines: reading it as YAML would take longer than anybody gains by it.
const MAX_BYTES: usize = 256 * 1024;

/// How deep a document may be nested.
const MAX_DEPTH: usize = 128;

/// Reads two states of the string in `field` as documents, when both are documents of one format. Several YAML documents
/// are a list.
pub(crate) fn read(field: Option<&str>, old: &str, new: &str) -> Option<(Value, Value)> {
    if old.len().max(new.len()) > MAX_BYTES {
        return None;
    }
    let field = field.unwrap_or("");
    let extension = field.rsplit_once('.').map_or(field, |(_, extension)| extension);
    let both = |read: fn(&str) -> Option<Value>| Some((read(old)?, read(new)?));
    both(json).or_else(|| match extension {
        "properties" | "env" => both(properties),
        "toml" => both(toml),
        "ini" | "cfg" | "cnf" => both(ini),
        "yaml" | "yml" => documents(old, new),
        _ if looks_like_yaml(old) && looks_like_yaml(new) => documents(old, new),
        _ if starts_with_section(old) && starts_with_section(new) => both(toml).or_else(|| both(ini)),
        _ => None,
    })
}

/// All JSON or YAML documents in `text`, which consists of nothing else.
pub(crate) fn all(text: &str) -> Option<Vec<Value>> {
    json(text).map(|value| vec![value]).or_else(|| yaml(text))
}

/// One document each, or lists of several.
fn documents(old: &str, new: &str) -> Option<(Value, Value)> {
    let (mut old, mut new) = (yaml(old)?, yaml(new)?);
    match (old.as_mut_slice(), new.as_mut_slice()) {
        ([old], [new]) => Some((old.take(), new.take())),
        _ => Some((old.into(), new.into())),
    }
}

fn json(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Documents that are maps or lists. Empty ones say nothing.
fn yaml(text: &str) -> Option<Vec<Value>> {
    let mut values = yaml::read(text)?;
    values.retain(|value| !value.is_null());
    let is_document = |value: &Value| (value.is_object() || value.is_array()) && is_flat(value, MAX_DEPTH);
    (!values.is_empty() && values.iter().all(is_document)).then_some(values)
}

/// Whether the rest of the program may walk through it.
fn is_flat(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth == 0 => false,
        Value::Array(list) => list.iter().all(|value| is_flat(value, depth - 1)),
        Value::Object(map) => map.values().all(|value| is_flat(value, depth - 1)),
        _ => true,
    }
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
    let is_separator = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.find(|line| !is_separator(line)) else { return false };
    let is_field = |line: &str| {
        line.split_once(':').is_some_and(|(name, rest)| {
            let name = name.trim_matches('"');
            !name.is_empty()
                && (rest.is_empty() || rest.starts_with(' '))
                && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
        })
    };
    let is_top = |line: &str| line.starts_with("- ") || line == "-" || is_field(line);
    // This program writes JSON documents in place of a hidden Secret, separated as YAML's.
    let is_json = |line: &str| line.starts_with('{') && line.ends_with('}');
    let may_follow =
        |line: &str| line.starts_with([' ', '\t', '}', ']']) || is_top(line) || is_separator(line);
    if is_json(first) {
        return lines.all(|line| is_json(line) || is_separator(line));
    }
    is_top(first) && lines.all(may_follow)
}

/// Whether the first line that says anything is `[a name]`.
fn starts_with_section(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let first = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    first.and_then(section).is_some()
}

/// The name in `[name]`.
fn section(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?.trim();
    (!name.is_empty() && !name.contains(['[', ']', '"', ','])).then_some(name)
}

/// Dates are texts.
fn toml(text: &str) -> Option<Value> {
    let table: toml::Table = text.parse().ok()?;
    Some(json_of(toml::Value::Table(table)))
}

fn json_of(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        // A value that JSON has no number for is a text.
        toml::Value::Float(number) => {
            serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
        }
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(list) => list.into_iter().map(json_of).collect(),
        toml::Value::Table(table) => {
            Value::Object(table.into_iter().map(|(name, value)| (name, json_of(value))).collect())
        }
    }
}

/// Sections of `name = value` lines; names before the first section are at the top, names without a value are empty.
fn ini(text: &str) -> Option<Value> {
    let mut sections = Map::new();
    let mut at: Option<String> = None;
    for line in text.lines() {
        // Continued lines are of many kinds.
        if line.starts_with([' ', '\t']) && !line.trim().is_empty() {
            return None;
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = section(line) {
            sections.insert(name.to_owned(), Map::new().into()).is_none().then_some(())?;
            at = Some(name.to_owned());
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let fields = match &at {
            None => &mut sections,
            Some(section) => sections.get_mut(section)?.as_object_mut()?,
        };
        let is_new = fields.insert(name.trim_end().to_owned(), value.trim_start().into()).is_none();
        if !is_new || name.trim().is_empty() {
            return None;
        }
    }
    (!sections.is_empty()).then_some(Value::Object(sections))
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
