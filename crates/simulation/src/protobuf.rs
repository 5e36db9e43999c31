//! Translates the server's JSON to protobuf, and reads objects back.

use informer_core::Object;
use serde_json::Value;

use crate::render;
use crate::truth::{Key, State, namespace};

/// Translates a response, or an event of a watch. Text that is no JSON is damage, and stays as it is.
pub(crate) fn translated(text: &str) -> Vec<u8> {
    let Ok(said) = serde_json::from_str::<Value>(text) else {
        // Half of an event is sent as a whole frame with damage inside.
        return if text.starts_with("{\"type\"") {
            framed(text.as_bytes())
        } else {
            text.as_bytes().to_vec()
        };
    };
    if said.get("type").is_some() {
        let object = envelope(&said["object"]);
        return framed(&[bytes(1, text_of(&said["type"])), bytes(2, &bytes(1, &object))].concat());
    }
    envelope(&said)
}

fn framed(event: &[u8]) -> Vec<u8> {
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), event].concat()
}

fn envelope(said: &Value) -> Vec<u8> {
    let message = match said["kind"].as_str() {
        Some("PodList") => list(said),
        Some("Status") => status(said),
        _ => pod(said),
    };
    let types = [bytes(1, text_of(&said["apiVersion"])), bytes(2, text_of(&said["kind"]))].concat();
    [b"k8s\0".to_vec(), bytes(1, &types), bytes(2, &message), bytes(3, b""), bytes(4, b"")].concat()
}

fn list(said: &Value) -> Vec<u8> {
    let meta = &said["metadata"];
    let mut metadata = bytes(2, text_of(&meta["resourceVersion"]));
    if let Some(next) = meta["continue"].as_str() {
        metadata.extend([bytes(3, next.as_bytes()), number(4, 1)].concat());
    }
    let items = said["items"].as_array().into_iter().flatten();
    // A protobuf item has no kind. An item of another kind has a damaged version instead.
    let items = items.flat_map(|item| bytes(2, &message(item, item["kind"] == "Secret")));
    bytes(1, &metadata).into_iter().chain(items).collect()
}

fn pod(said: &Value) -> Vec<u8> {
    message(said, false)
}

fn message(said: &Value, is_damaged: bool) -> Vec<u8> {
    let meta = &said["metadata"];
    let mut metadata = Vec::new();
    for (of, name) in [(1, "name"), (3, "namespace"), (5, "uid")] {
        if let Some(text) = meta[name].as_str() {
            metadata.extend(bytes(of, text.as_bytes()));
        }
    }
    metadata.extend(match meta["resourceVersion"].as_str() {
        Some(version) if !is_damaged => bytes(6, version.as_bytes()),
        _ => number(6, 1),
    });
    for (of, name) in [(11, "labels"), (12, "annotations")] {
        for (key, value) in meta[name].as_object().into_iter().flatten() {
            metadata.extend(bytes(of, &[bytes(1, key.as_bytes()), bytes(2, text_of(value))].concat()));
        }
    }
    let mut message = bytes(1, &metadata);
    if let Some(value) = said["spec"]["v"].as_u64() {
        message.extend(bytes(2, &number(VALUE, value)));
    }
    message
}

/// The field of a pod's spec that has the value: `terminationGracePeriodSeconds`.
const VALUE: u64 = 4;
/// The tag of that field.
const VALUE_TAG: u8 = 4 << 3;

fn status(said: &Value) -> Vec<u8> {
    let details = &said["details"];
    let mut inner = Vec::new();
    for cause in details["causes"].as_array().into_iter().flatten() {
        let cause = [bytes(1, text_of(&cause["reason"])), bytes(2, text_of(&cause["message"]))].concat();
        inner.extend(bytes(4, &cause));
    }
    inner.extend(number(5, details["retryAfterSeconds"].as_u64().unwrap_or_default()));
    let texts = [bytes(3, text_of(&said["message"])), bytes(4, text_of(&said["reason"])), bytes(5, &inner)];
    [texts.concat(), number(6, said["code"].as_u64().unwrap_or_default())].concat()
}

/// An object of the server's JSON, as a cache has it.
pub(crate) fn object(said: &str) -> Option<Vec<u8>> {
    Some(pod(&serde_json::from_str(said).ok()?))
}

/// The key and state of a cached object; `None` unless its bytes are what a server sent.
pub(crate) fn read(object: &Object) -> Option<(Key, State)> {
    let key = Key::of(object.key().as_str())?;
    let uid = object.uid().to_string().parse().ok()?;
    let version = render::number(object.resource_version());
    let said = object.bytes().ok()?;
    let state = State { uid, version, value: value(&said)? };
    // Listed and watched objects are equal to the byte (L13).
    (*said == kept(key, state)).then_some((key, state))
}

/// The value in a pod's spec, which is the last field of the message.
fn value(message: &[u8]) -> Option<u32> {
    let (tag, rest) = message.split_first()?;
    let (length, rest) = read_varint(rest)?;
    let spec = rest.get(usize::try_from(length).ok()?..)?.strip_prefix(&[2 << 3 | 2])?;
    let (_, spec) = read_varint(spec)?;
    let (value, rest) = read_varint(spec.strip_prefix(&[VALUE_TAG])?)?;
    (*tag == 1 << 3 | 2 && rest.is_empty()).then(|| value.try_into().ok())?
}

/// An object as a cache has it. [`object`] returns the same bytes, but takes JSON and more time.
fn kept(key: Key, state: State) -> Vec<u8> {
    let State { uid, version, value } = state;
    let pair = |key: &str, value: &str| [bytes(1, key.as_bytes()), bytes(2, value.as_bytes())].concat();
    let metadata = [
        bytes(1, key.name().as_bytes()),
        bytes(3, namespace(key.namespace()).as_bytes()),
        bytes(5, uid.to_string().as_bytes()),
        bytes(6, render::version(version).as_bytes()),
        bytes(11, &pair("app", render::label(value))),
        bytes(12, &pair("note", render::NOTE)),
    ];
    [bytes(1, &metadata.concat()), bytes(2, &number(VALUE, value.into()))].concat()
}

fn text_of(value: &Value) -> &[u8] {
    value.as_str().unwrap_or_default().as_bytes()
}

fn bytes(of: u64, value: &[u8]) -> Vec<u8> {
    [varint(of << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn number(of: u64, value: u64) -> Vec<u8> {
    [varint(of << 3), varint(value)].concat()
}

fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0)?;
    let (varint, rest) = bytes.split_at_checked(end + 1)?;
    let number = varint.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f));
    Some((number, rest))
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low & 0x7f);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_the_same_with_and_without_its_json() {
        for (number, version) in (0..).zip([1, 300, render::OPAQUE + 7]) {
            let (key, state) = (Key(number), State { uid: 4, version, value: 200 });
            let said = object(&render::object(key, state, true)).expect("JSON");
            assert_eq!(kept(key, state), said);
            assert_eq!(value(&said), Some(200));
        }
    }
}
