//! A program's report about an object, and the Event that carries it to the server.

use informer::{ObjectKey, ResourceType};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::writer::{Seen, Target};

/// The limits of the server's validation, in bytes: `ValidateEventCreate` of Kubernetes.
const NOTE_LIMIT: usize = 1024;
const WORD_LIMIT: usize = 128;
/// The longest name of an object.
const NAME_LIMIT: usize = 253;

/// Something that happened to an object, for people to read: `kubectl describe` shows it.
///
/// ```
/// use informer_controller::recorder::Event;
///
/// let made = Event::normal("Created", "CreateDeployment", "created Deployment shop/cart");
/// let failed = Event::warning("QuotaExceeded", "CreateDeployment", format!("{} of {} replicas", 2, 3));
/// ```
///
/// `reason` and `action` are short words in CamelCase, of up to 128 bytes: why the event is recorded, and what the controller
/// did or tried. Neither may be empty. `note` is a sentence for people, cut off after 1 kB. Notes are not secret: everybody
/// that may read events reads them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    event_type: EventType,
    reason: String,
    action: String,
    note: String,
    related: Option<Reference>,
}

/// Whether somebody should look at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum EventType {
    /// For information.
    Normal,
    /// Something does not work as it should.
    Warning,
}

impl Event {
    /// An event of a type that is known at run time only.
    pub fn new(event_type: EventType, reason: &str, action: &str, note: impl Into<String>) -> Self {
        let mut note = note.into();
        cut(&mut note, NOTE_LIMIT);
        Self { event_type, reason: word(reason), action: word(action), note, related: None }
    }

    /// For information.
    pub fn normal(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self::new(EventType::Normal, reason, action, note)
    }

    /// Something does not work as it should.
    pub fn warning(reason: &str, action: &str, note: impl Into<String>) -> Self {
        Self::new(EventType::Warning, reason, action, note)
    }

    /// The event is also about this object: one that the controller made, for example.
    #[must_use]
    pub fn related<K>(mut self, object: impl Target<K>) -> Self {
        self.related = Reference::to(object);
        self
    }
}

/// An object, as an Event refers to it. Without its resourceVersion: events about two versions are one series.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reference {
    api_version: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
}

impl Reference {
    /// `None` for an object without a name.
    pub(super) fn to<K>(object: impl Target<K>) -> Option<Self> {
        let Seen { uid, .. } = object.seen();
        Some(Self::new(&object.resource(), &object.key()?, uid.map(|uid| uid.to_string())))
    }

    pub(super) fn new(resource: &ResourceType, key: &ObjectKey, uid: Option<String>) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            namespace: key.namespace().map(str::to_owned),
            name: key.name().to_owned(),
            uid,
        }
    }

    /// The namespace of events about the object. Those about an object of the cluster are in `default`, as in client-go.
    pub(super) fn event_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    /// The name of an event about the object: `NAME.HEX`, as in client-go. Characters that an event's name cannot have
    /// (a ClusterRole may be named `system:node`) become dashes.
    pub(super) fn event_name(&self, number: u128) -> String {
        let suffix = format!(".{number:x}");
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        let mut name: String = self.name.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
        cut(&mut name, NAME_LIMIT - suffix.len());
        // Each part between dots begins and ends with a letter or digit.
        let name = name.trim_end_matches(['-', '.']).trim_start_matches(['-', '.']);
        format!("{}{suffix}", if name.is_empty() { "event" } else { name })
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, namespace, name, .. } = self;
        match namespace {
            Some(namespace) => write!(f, "{kind} {namespace}/{name}"),
            None => write!(f, "{kind} {name}"),
        }
    }
}

/// An event about an object. Equal ones form a series.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Subject {
    pub(super) regarding: Reference,
    pub(super) event: Event,
}

impl Subject {
    /// The key of the spam filter's limit: events of one type about one object.
    pub(super) fn spam_key(&self) -> (Reference, EventType) {
        (self.regarding.clone(), self.event.event_type)
    }

    /// The object of events.k8s.io/v1.
    pub(super) fn body(
        &self,
        reporter: &Reporter,
        name: &str,
        first: Timestamp,
        series: Option<Series>,
    ) -> Value {
        let Event { event_type, reason, action, note, related } = &self.event;
        let mut body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": name, "namespace": self.regarding.event_namespace() },
            "eventTime": first.strftime(MICRO_TIME).to_string(),
            "reportingController": reporter.controller,
            "reportingInstance": reporter.instance,
            "action": action,
            "reason": reason,
            "regarding": self.regarding,
            "note": note,
            "type": event_type,
        });
        if let Some(series) = series {
            body["series"] = json!(series);
        }
        if let Some(related) = related {
            body["related"] = json!(related);
        }
        body
    }
}

/// The reporter of events.
#[derive(Debug, Clone)]
pub(super) struct Reporter {
    pub(super) controller: String,
    pub(super) instance: String,
}

impl Reporter {
    pub(super) fn new(controller: &str, instance: &str) -> Self {
        Self { controller: controller.to_owned(), instance: word(instance) }
    }
}

/// How often an event of a series was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Series {
    pub(super) count: u32,
    #[serde(serialize_with = "micro")]
    pub(super) last_observed_time: Timestamp,
}

/// Kubernetes' `MicroTime`: always six digits.
const MICRO_TIME: &str = "%Y-%m-%dT%H:%M:%S.%6fZ";

fn micro<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.strftime(MICRO_TIME))
}

fn word(text: &str) -> String {
    let mut text = text.to_owned();
    cut(&mut text, WORD_LIMIT);
    text
}

/// Cuts a text to so many bytes, at the end of a character.
fn cut(text: &mut String, limit: usize) {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(name: &str) -> Reference {
        let resource = ResourceType {
            group: String::new(),
            version: "v1".into(),
            plural: "nodes".into(),
            kind: "Node".into(),
            namespaced: false,
        };
        Reference::new(&resource, &ObjectKey::new(None, name).unwrap(), None)
    }

    #[test]
    fn a_note_is_cut_at_the_end_of_a_character() {
        let event = Event::normal("A", "B", "ä".repeat(600));
        assert_eq!(event.note.len(), 1024);
        let event = Event::normal("A", "B", format!("a{}", "ä".repeat(600)));
        assert_eq!(event.note.len(), 1023);
    }

    #[test]
    fn the_name_of_an_event_is_valid_whatever_the_object_is_named() {
        assert_eq!(reference("one").event_name(255), "one.ff");
        assert_eq!(reference("system:node").event_name(1), "system-node.1");
        assert_eq!(reference(":").event_name(1), "event.1");
        assert!(reference(&"a".repeat(253)).event_name(u128::MAX).len() <= 253);
    }

    #[test]
    fn events_about_objects_of_the_cluster_are_in_the_namespace_default() {
        assert_eq!(reference("one").event_namespace(), "default");
    }
}
