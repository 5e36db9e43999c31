//! The objects of a history as clients of Kubernetes read them.

use std::sync::Arc;

use kubediff_history::Version;
use serde_json::Value;
use serve::{Object, Resource};

use super::encoded::{Encoded, encode};
use super::resources::NEW_EVENTS;
use super::view::VERSIONS;
use crate::hide::secret::may_have_mark;

/// The form of the objects of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    AsRecorded,
    /// Custom objects, of which some fields are bytes.
    WithBytes(Arc<Encoded>),
    /// Events in the group `events.k8s.io`, which has other names for the members of those that a history has.
    NewEvent,
}

impl Form {
    pub(super) fn of(resource: &Resource) -> Self {
        // Events that were recorded in that group have its form, and no stored version: `new_events` alone gives them one.
        match (&*resource.group, &*resource.plural, &resource.stored_version) {
            (NEW_EVENTS, "events", Some(_)) => Self::NewEvent,
            _ => Self::AsRecorded,
        }
    }

    /// The object of a version; `None` for a content that is no object.
    pub(super) fn object(&self, version: &Version) -> Option<Arc<Object>> {
        self.object_at(version, version.number.0 * VERSIONS)
    }

    /// The same with another version of the past.
    pub(super) fn object_at(&self, version: &Version, revision: u64) -> Option<Arc<Object>> {
        let id = &version.object;
        let namespace = id.namespace.as_deref().unwrap_or_default();
        let read = |text: &[u8]| Object::read(namespace, &id.name, revision, text).map(Arc::new);
        let text = version.body.bytes();
        if *self != Self::NewEvent && !may_have_mark(text) {
            return read(text);
        }
        let mut value = version.body.value();
        encode_marks(&mut value, &id.gvk.group, &id.gvk.kind);
        match self {
            Self::AsRecorded => {}
            Self::WithBytes(bytes) => bytes.encode_marks(&mut value),
            Self::NewEvent => rename_members(&mut value),
        }
        read(value.to_string().as_bytes())
    }
}

/// The members of an Event in the core and in `events.k8s.io` (the conversion in Kubernetes' `pkg/apis/events/v1`).
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

fn rename_members(event: &mut Value) {
    let Some(members) = event.as_object_mut() else { return };
    for (from, to) in RENAMED {
        if let Some(value) = members.remove(from) {
            members.insert(to.to_owned(), value);
        }
    }
    // Here, these two are left out where they are empty.
    members.retain(|name, value| {
        !matches!(name.as_str(), "reportingController" | "reportingInstance") || value != ""
    });
}

/// Typed clients decode some texts as base64, and fail on a whole list where one is none: there, a hidden value is the base64 of its mark.
fn encode_marks(object: &mut Value, group: &str, kind: &str) {
    let maps: &[&str] = match (group, kind) {
        ("", "Secret") => &["data"],
        ("", "ConfigMap") => &["binaryData"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec", "status"],
        _ => &[],
    };
    for name in maps {
        let members = object.get_mut(*name).and_then(Value::as_object_mut);
        for (member, value) in members.into_iter().flatten() {
            if !matches!(*name, "spec" | "status") || matches!(member.as_str(), "request" | "certificate") {
                encode(value);
            }
        }
    }
    encode_bundles(object);
}

/// Certificates of authorities are bytes wherever they stand: in webhooks, API services and conversions of definitions.
fn encode_bundles(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(encode_bundles),
        Value::Object(map) => {
            for (name, value) in map {
                if name == "caBundle" { encode(value) } else { encode_bundles(value) }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
