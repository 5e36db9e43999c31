//! The objects of a history as clients of Kubernetes read them.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kubediff_history::Version;
use serde_json::Value;
use serve::Object;

use super::view::VERSIONS;
use crate::hide::secret::may_have_mark;

/// The object of a version; `None` for a content that is no object.
pub(super) fn object(version: &Version) -> Option<Arc<Object>> {
    object_at(version, version.number.0 * VERSIONS)
}

/// The same with another version of the past.
pub(super) fn object_at(version: &Version, revision: u64) -> Option<Arc<Object>> {
    let id = &version.object;
    let namespace = id.namespace.as_deref().unwrap_or_default();
    let read = |text: &[u8]| Object::read(namespace, &id.name, revision, text).map(Arc::new);
    let text = version.body.bytes();
    if !may_have_mark(text) {
        return read(text);
    }
    let mut value = version.body.value();
    encode_marks(&mut value, &id.gvk.group, &id.gvk.kind);
    read(value.to_string().as_bytes())
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

fn encode(value: &mut Value) {
    if let Value::String(text) = value
        && may_have_mark(text.as_bytes())
    {
        *text = BASE64_STANDARD.encode(&*text);
    }
}
