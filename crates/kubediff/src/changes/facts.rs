//! The few fields of an object that identify it to people.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::changes::events::event;
use crate::hide::secret::Redacted;
use crate::text::terminal::{escape, flow, thousands};

/// Items of a list that are named; more are counted.
const NAMED: usize = 4;

/// One thing about an object.
pub(crate) struct Fact {
    pub(crate) label: String,
    pub(crate) text: String,
}

/// The facts about `object`, the most telling first.
pub(crate) fn facts(object: &Redacted<Value>) -> Vec<Fact> {
    let mut facts = Facts(Vec::new());
    if let Some(event) = event(object) {
        event.into_iter().for_each(|(label, text)| facts.push(label, escape(&text).into_owned()));
        return facts.0;
    }
    facts.images(object);
    facts.add("replicas", object.pointer("/spec/replicas"));
    facts.add("schedule", object.pointer("/spec/schedule"));
    facts.add("type", object.pointer("/spec/type").or(object.get("type")));
    facts.ports(object);
    for field in ["data", "stringData", "binaryData"] {
        facts.sizes(field, object);
    }
    facts.lengths(object, &["rules", "subjects", "webhooks", "endpoints"]);
    if facts.0.is_empty() {
        facts.scalars(object);
    }
    facts.add("phase", object.pointer("/status/phase"));
    facts.add("node", object.pointer("/spec/nodeName"));
    facts.owner(object);
    facts.labels(object);
    facts.0
}

/// How old `object` was at `now`.
pub(crate) fn age(object: &Redacted<Value>, now: Timestamp) -> Option<Fact> {
    let created: Timestamp = object.pointer("/metadata/creationTimestamp")?.as_str()?.parse().ok()?;
    let seconds = now.as_second().saturating_sub(created.as_second()).max(0);
    Some(Fact { label: "age".to_owned(), text: duration(seconds) })
}

/// `45s`, `12m5s`, `5h20m`, `3d4h`, `412d`.
pub(crate) fn duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, 1..10) => format!("{minutes}m{}s", seconds % 60),
        (0, 0, _) => format!("{minutes}m"),
        (0, _, _) => format!("{hours}h{}m", minutes % 60),
        (1..10, _, _) => format!("{days}d{}h", hours % 24),
        _ => format!("{days}d"),
    }
}

struct Facts(Vec<Fact>);

impl Facts {
    fn push(&mut self, label: impl Into<String>, text: String) {
        if !text.is_empty() {
            self.0.push(Fact { label: escape(&label.into()).into_owned(), text });
        }
    }

    fn add(&mut self, label: &str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| is_scalar(value)) {
            self.push(label, flow(value));
        }
    }

    fn images(&mut self, object: &Value) {
        let specs = ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/spec"];
        let Some(spec) =
            specs.iter().filter_map(|at| object.pointer(at)).find(|spec| spec.get("containers").is_some())
        else {
            return;
        };
        for container in spec.get("containers").and_then(Value::as_array).into_iter().flatten().take(NAMED) {
            let text = |name| container.get(name).and_then(Value::as_str).map(escape);
            if let (Some(name), Some(image)) = (text("name"), text("image")) {
                self.push("image", format!("{name}: {image}"));
            }
        }
    }

    fn ports(&mut self, object: &Value) {
        let ports = object.pointer("/spec/ports").or(object.get("ports")).and_then(Value::as_array);
        let texts = ports.into_iter().flatten().map(|port| {
            let text = |name| port.get(name).filter(|value| is_scalar(value)).map(flow);
            let protocol = text("protocol").unwrap_or_else(|| "TCP".to_owned());
            let target = text("targetPort").map(|target| format!(" to {target}")).unwrap_or_default();
            format!("{}/{protocol}{target}", text("port").unwrap_or_default())
        });
        self.push("ports", some(texts));
    }

    fn sizes(&mut self, field: &str, object: &Value) {
        let values = object.get(field).and_then(Value::as_object).into_iter().flatten();
        let texts = values.map(|(name, value)| match value.as_str() {
            Some(text) => match crate::hide::secret::length(text).unwrap_or_else(|| bytes(field, text)) {
                1 => format!("{} (1 byte)", escape(name)),
                length => format!("{} ({} bytes)", escape(name), thousands(length)),
            },
            None => escape(name).into_owned(),
        });
        self.push(field, some(texts));
    }

    fn lengths(&mut self, object: &Value, fields: &[&str]) {
        for field in fields {
            if let Some(list) = object.get(field).and_then(Value::as_array) {
                self.push(*field, list.len().to_string());
            }
        }
    }

    /// For an unknown kind: the scalars of its spec.
    fn scalars(&mut self, object: &Value) {
        let spec = object.get("spec").and_then(Value::as_object).into_iter().flatten();
        for (name, value) in spec.filter(|(_, value)| is_scalar(value)).take(NAMED) {
            self.push(name.clone(), flow(value));
        }
    }

    fn owner(&mut self, object: &Value) {
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let texts = owners.into_iter().flatten().filter_map(|owner| {
            let text = |name| owner.get(name).and_then(Value::as_str).map(escape);
            Some(format!("{}/{}", text("kind")?, text("name")?))
        });
        self.push("owner", some(texts));
    }

    fn labels(&mut self, object: &Value) {
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        let texts = labels
            .into_iter()
            .flat_map(Map::iter)
            .filter_map(|(name, value)| Some(format!("{}={}", escape(name), escape(value.as_str()?))));
        self.push("labels", some(texts));
    }
}

/// How many bytes a value has that is not hidden.
fn bytes(field: &str, text: &str) -> usize {
    match field {
        "binaryData" => text.trim_end_matches('=').len() * 6 / 8,
        _ => text.len(),
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_null() && !value.is_object() && !value.is_array()
}

fn some(texts: impl Iterator<Item = String>) -> String {
    let mut texts: Vec<String> = texts.collect();
    let more = texts.len().saturating_sub(NAMED);
    texts.truncate(NAMED);
    if more > 0 {
        texts.push(format!("{more} more"));
    }
    texts.join(", ")
}
