//! An object that is being printed, with the accessors that most kinds need.

use std::time::SystemTime;

use serde_json::Value;

use super::time;

/// An object, or a part of one.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) object: &'a Value,
    pub(super) now: SystemTime,
}

impl<'a> Row<'a> {
    pub(super) fn new(object: &'a Value, now: SystemTime) -> Self {
        Self { object, now }
    }

    /// The value at a pointer (RFC 6901), unless it is null.
    pub(super) fn get(&self, pointer: &str) -> Option<&'a Value> {
        self.object.pointer(pointer).filter(|value| !value.is_null())
    }

    /// The text at a pointer; empty if missing.
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.get(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text at a pointer; `otherwise` if empty or missing.
    pub(super) fn text_or(&self, pointer: &str, otherwise: &'a str) -> &'a str {
        Some(self.text(pointer)).filter(|text| !text.is_empty()).unwrap_or(otherwise)
    }

    /// The number at a pointer; 0 if missing.
    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.get(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    /// The boolean at a pointer; false if missing.
    pub(super) fn flag(&self, pointer: &str) -> bool {
        self.get(pointer).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The list at a pointer; empty if missing.
    pub(super) fn list(
        &self,
        pointer: &str,
    ) -> impl DoubleEndedIterator<Item = Row<'a>> + ExactSizeIterator + use<'a> {
        let now = self.now;
        let items = self.get(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        items.iter().map(move |object| Row { object, now })
    }

    /// The texts of the list at a pointer.
    pub(super) fn texts(&self, pointer: &str) -> Vec<&'a str> {
        self.list(pointer).map(|item| item.object.as_str().unwrap_or_default()).collect()
    }

    /// The number of members or items at a pointer.
    pub(super) fn count(&self, pointer: &str) -> usize {
        match self.get(pointer) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(members)) => members.len(),
            _ => 0,
        }
    }

    /// The value at a pointer as text: a number or text (`IntOrString`, quantities), or `otherwise`.
    pub(super) fn either(&self, pointer: &str, otherwise: &str) -> String {
        match self.get(pointer) {
            None => otherwise.to_string(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    pub(super) fn name(&self) -> Value {
        self.text("/metadata/name").into()
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.get("/metadata/deletionTimestamp").is_some()
    }

    /// The time since the object was created.
    pub(super) fn age(&self) -> Value {
        self.since("/metadata/creationTimestamp").into()
    }

    /// The time at a pointer.
    pub(super) fn time(&self, pointer: &str) -> Option<SystemTime> {
        time::parse(self.text(pointer))
    }

    /// The time since the one at a pointer, formatted for people.
    pub(super) fn since(&self, pointer: &str) -> String {
        self.time(pointer).map_or_else(|| "<unknown>".to_string(), |time| time::between(time, self.now))
    }

    /// The first condition of a type.
    pub(super) fn condition(&self, kind: &str) -> Option<Row<'a>> {
        self.list("/status/conditions").find(|condition| condition.text("/type") == kind)
    }

    /// Names and images of the containers at a pointer.
    pub(super) fn containers(&self, pointer: &str) -> [Value; 2] {
        let join = |member: &str| {
            let texts: Vec<&str> = self.list(pointer).map(|container| container.text(member)).collect();
            texts.join(",").into()
        };
        [join("/name"), join("/image")]
    }

    /// The labels at a pointer, as a selector that matches them.
    pub(super) fn labels(&self, pointer: &str) -> String {
        let labels = pairs(self.get(pointer));
        if labels.is_empty() { "<none>".to_string() } else { labels.join(",") }
    }

    /// The label selector at a pointer, in the syntax of `-l`; empty if it selects everything.
    pub(super) fn selector_text(&self, pointer: &str) -> String {
        let text = self.get(pointer).map_or(Some(String::new()), selector_text);
        text.unwrap_or_else(|| "<error>".to_string())
    }

    /// The label selector at a pointer.
    pub(super) fn selector(&self, pointer: &str) -> Value {
        let text = self.selector_text(pointer);
        if text.is_empty() { "<none>".into() } else { text.into() }
    }
}

/// A LabelSelector in the syntax of `kubectl -l`, sorted by key; empty if it selects everything. `None` if an operator is
/// unknown.
pub fn selector_text(selector: &Value) -> Option<String> {
    let pairs = pairs(selector.get("matchLabels")).into_iter();
    let mut requirements: Vec<(String, String)> =
        pairs.map(|pair| (pair.split('=').next().unwrap_or_default().to_string(), pair)).collect();
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten();
        let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_string(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        };
        requirements.push((key.to_string(), text));
    }
    requirements.sort_by(|(left, _), (right, _)| left.cmp(right));
    Some(requirements.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(","))
}

fn pairs(labels: Option<&Value>) -> Vec<String> {
    let Some(labels) = labels.and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut pairs: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
    pairs.sort_unstable();
    pairs
}

/// The first three, and the number of further ones.
pub(super) fn first_three<T: AsRef<str>>(texts: &[T], if_empty: &str) -> String {
    let shown: Vec<&str> = texts.iter().take(3).map(AsRef::as_ref).collect();
    let shown = shown.join(",");
    match texts.len() {
        4.. => format!("{shown} + {} more...", texts.len() - 3),
        _ if shown.is_empty() => if_empty.to_string(),
        _ => shown,
    }
}
