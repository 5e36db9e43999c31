//! One resource: its objects, their history, and who watches.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::body::Lines;
use super::{Request, status};

pub(crate) struct Collection {
    objects: BTreeMap<String, Value>,
    history: Vec<Event>,
    /// Watches from before this are refused.
    expired_at: u64,
    watches: Vec<Watch>,
    pub(crate) denied: Option<(u16, String)>,
    pub(crate) denied_namespace: Option<String>,
    /// Watches bring bookmarks without end, faster than anybody reads.
    pub(crate) floods: bool,
    pub(crate) held: watch::Sender<bool>,
    pub(crate) held_in_the_middle: watch::Sender<bool>,
}

struct Event {
    version: u64,
    kind: &'static str,
    object: Value,
}

struct Watch {
    wants: Wants,
    lines: mpsc::UnboundedSender<Result<String, &'static str>>,
}

/// The part of an object that a watch gets to see.
type Wants = Box<dyn Fn(&Value) -> Option<Value> + Send>;

impl Default for Collection {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            history: Vec::new(),
            expired_at: 0,
            watches: Vec::new(),
            denied: None,
            denied_namespace: None,
            floods: false,
            held: watch::Sender::new(false),
            held_in_the_middle: watch::Sender::new(false),
        }
    }
}

impl Collection {
    pub(crate) fn put(&mut self, key: &str, fields: Value, version: u64) {
        let known = self.objects.get(key);
        let uid = known.map_or(json!(format!("uid-{version}")), |known| known["metadata"]["uid"].clone());
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let mut object = fields;
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        self.objects.insert(key.to_owned(), object.clone());
        self.publish(Event { version, kind, object });
    }

    pub(crate) fn convert(&mut self, key: &str, mut fields: Value) {
        let object = self.objects.get_mut(key).unwrap();
        fields["metadata"] = object["metadata"].clone();
        *object = fields;
    }

    pub(crate) fn object(&self, key: &str) -> Option<&Value> {
        self.objects.get(key)
    }

    pub(crate) fn delete(&mut self, key: &str, version: u64) {
        let mut object = self.objects.remove(key).unwrap();
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        self.publish(Event { version, kind: "DELETED", object });
    }

    fn publish(&mut self, event: Event) {
        self.watches.retain(|watch| {
            let Some(object) = (watch.wants)(&event.object) else { return true };
            watch.lines.send(Ok(line(event.kind, &object))).is_ok()
        });
        self.history.push(event);
    }

    pub(crate) fn end_watches(&mut self) {
        self.watches.clear();
    }

    pub(crate) fn break_watches(&mut self) {
        for watch in self.watches.drain(..) {
            let _ = watch.lines.send(Err("connection reset"));
        }
    }

    pub(crate) fn expire(&mut self, version: u64) {
        self.expired_at = version;
        self.history.clear();
        for watch in self.watches.drain(..) {
            let _ = watch.lines.send(Ok(line("ERROR", &status(410, "Expired"))));
        }
    }

    pub(crate) fn bookmark(&mut self, version: u64) {
        self.send_line(&bookmark(version));
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        self.watches.retain(|watch| watch.lines.send(Ok(line.to_owned())).is_ok());
    }

    pub(crate) fn versions(&self) -> BTreeMap<String, String> {
        let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        self.objects.iter().map(|(key, object)| (key.clone(), version(object))).collect()
    }

    pub(crate) fn list(&self, request: &Request, version: u64) -> Value {
        let items: Vec<_> = self
            .objects
            .values()
            .filter(|object| request.selects(object))
            .map(|object| as_asked(request, object))
            .collect();
        json!({
            "kind": "List", "apiVersion": "v1",
            "metadata": { "resourceVersion": version.to_string() },
            "items": items,
        })
    }

    pub(crate) fn watch(&mut self, request: &Request, version: u64) -> Result<Lines, Value> {
        let from = request.version();
        let (sender, lines) = mpsc::unbounded_channel();
        let send = |line: String| sender.send(Ok(line)).unwrap();
        if request.wants_initial_events() {
            for object in self.objects.values().filter(|object| request.selects(object)) {
                send(line("ADDED", &as_asked(request, object)));
            }
            let end = json!({ "kind": "Pod", "metadata": {
                "resourceVersion": version.to_string(),
                "annotations": { "k8s.io/initial-events-end": "true" },
            } });
            send(line("BOOKMARK", &end));
        } else if from < self.expired_at {
            return Err(status(410, "Expired"));
        } else {
            for event in self.history.iter().filter(|event| event.version > from) {
                if request.selects(&event.object) {
                    send(line(event.kind, &as_asked(request, &event.object)));
                }
            }
        }
        let request = request.clone();
        let wants: Wants =
            Box::new(move |object| request.selects(object).then(|| as_asked(&request, object)));
        self.watches.push(Watch { wants, lines: sender });
        Ok(lines)
    }
}

pub(crate) fn bookmark(version: u64) -> String {
    line("BOOKMARK", &json!({ "kind": "Pod", "metadata": { "resourceVersion": version.to_string() } }))
}

fn line(kind: &str, object: &Value) -> String {
    // In the order in which servers write it.
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn as_asked(request: &Request, object: &Value) -> Value {
    if request.only_metadata {
        json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"] })
    } else {
        object.clone()
    }
}
