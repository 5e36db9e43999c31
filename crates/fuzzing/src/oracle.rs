//! serde_json as the model: what it decodes, where JSON is unambiguous.

use std::collections::BTreeSet;
use std::fmt;

use informer_core::ObjectKey;
use informer_core::wire::scan_object;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The value, if this is JSON and no object in it has a member twice: readers differ on which one counts.
pub(crate) fn plain_json(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice::<Plain>(bytes).ok()?;
    serde_json::from_slice(bytes).ok()
}

/// Whether scanned metadata, if decodable, equals serde_json's. Never panics, whatever the input.
pub(crate) fn check_object(json: &[u8]) {
    let Ok(scanned) = scan_object(json) else { return };
    let Some(value) = plain_json(json) else { return };
    let metadata = &value["metadata"];
    assert_eq!(metadata["name"], scanned.name());
    let version = metadata["resourceVersion"].as_str().unwrap_or_default();
    assert_eq!(scanned.resource_version(), version.into());
    let Ok(key) = scanned.key() else { return };
    check_key(&key, &value);
    let Ok(object) = scanned.into_object(json) else { return };
    assert_eq!(object.uid().to_string(), metadata["uid"].as_str().unwrap_or_default());
    for (name, label) in metadata["labels"].as_object().into_iter().flatten() {
        let label = label.as_str().unwrap_or_default();
        // Labels with these characters are left out, as `Labels` documents.
        let is_clean = !name.contains(['\u{1e}', '\u{1f}']) && !label.contains(['\u{1e}', '\u{1f}']);
        assert_eq!(object.labels().value(name), is_clean.then_some(label));
    }
    assert_eq!(object.decode::<Value>().ok().as_deref(), Some(&value));
}

/// Whether this is the key of an object.
pub(crate) fn check_key(key: &ObjectKey, object: &Value) {
    assert_eq!(key.name(), object["metadata"]["name"].as_str().unwrap_or_default());
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    assert_eq!(key.namespace().unwrap_or_default(), namespace);
}

/// Any value without doubled members.
struct Plain;

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Plain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without doubled members")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Plain, A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a member is there twice"));
            }
            map.next_value::<Plain>()?;
        }
        Ok(Plain)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Plain, A::Error> {
        while seq.next_element::<Plain>()?.is_some() {}
        Ok(Plain)
    }

    fn visit_unit<E>(self) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Plain, E> {
        Ok(Plain)
    }

    fn visit_str<E>(self, _: &str) -> Result<Plain, E> {
        Ok(Plain)
    }
}
