//! A record as a message: a CloudEvent in binary mode
//! ([NATS Protocol Binding 1.0](https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/nats-protocol-binding.md)).

use std::fmt::Write;

use async_nats::HeaderMap;
use async_nats::jetstream::message::PublishMessage;

use super::tail::{ID, NUMBER, Tail};
use crate::record::{Parcel, Place, Record};

/// Makes messages.
pub(super) struct Messages {
    source: String,
    /// What all subjects begin with.
    root: String,
    /// The server may have the ids of the records up to this one in mind, and not the records. They get none.
    pub(super) unnamed: u64,
}

impl Messages {
    pub(super) fn of(cluster: &str) -> Self {
        Self { source: encoded(cluster), root: format!("kubediff.{}", token(cluster)), unnamed: 0 }
    }

    /// The subjects of all messages.
    pub(super) fn subjects(&self) -> String {
        format!("{}.>", self.root)
    }

    /// `kubediff.CLUSTER.GROUP.RESOURCE.NAMESPACE`. No name of Kubernetes begins with `_`, and no group is called `core`.
    pub(super) fn subject(&self, record: &Record) -> String {
        let root = &self.root;
        let Some(Place { group, resource, namespace }) = &record.event.place else {
            let kind = record.event.kind.rsplit('.').next().unwrap_or_default();
            return format!("{root}._.{}._", token(kind));
        };
        let group = if group.is_empty() { "core" } else { group };
        let namespace = namespace.as_deref().map_or_else(|| "_".to_owned(), token);
        format!("{root}.{}.{}.{namespace}", token(group), token(resource))
    }

    /// The message that comes after the one at this place.
    pub(super) fn message(&self, record: &Record, parcel: &Parcel<'_>, last: Tail) -> PublishMessage {
        let number = record.entry.number;
        let mut headers = HeaderMap::new();
        headers.insert("ce-specversion", "1.0");
        headers.insert(ID, &*record.id);
        headers.insert("ce-source", &*self.source);
        headers.insert("ce-type", encoded(&record.event.kind));
        headers.insert("ce-subject", encoded(&record.event.about));
        headers.insert("ce-time", record.time.to_string());
        headers.insert("ce-sequence", format!("{number:020}"));
        headers.insert("content-type", "application/json");
        let missing: Vec<String> = parcel.missing_before(number).iter().map(u64::to_string).collect();
        if !missing.is_empty() {
            headers.insert("ce-missing", missing.join(","));
        }
        if parcel.is_late {
            headers.insert("ce-late", "true");
        }
        let through = if parcel.is_late { last.number } else { number };
        headers.insert(NUMBER, through.to_string());
        let message = PublishMessage::build().payload(record.body.clone()).headers(headers);
        let message = message.expected_last_sequence(last.sequence);
        if number > self.unnamed { message.message_id(&*record.id) } else { message }
    }
}

/// A token of a subject. It has no separator and no wildcard: a group's dots are `_`, which no group has.
pub(super) fn token(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    if text.is_empty() { "_".to_owned() } else { text.chars().map(safe).collect() }
}

/// A value of a header: printable characters of ASCII, and others in percent encoding.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' if !matches!(byte, b'"' | b'%') => encoded.push(char::from(byte)),
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}
