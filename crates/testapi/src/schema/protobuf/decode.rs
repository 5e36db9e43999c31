//! Decodes the bodies of requests.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::MAGIC;
use crate::schema::{TypeRef, table};

use super::table::{Form, Message, Of, is_list, message_of, messages};

/// Schemas can be nested, and so can their messages.
const MAX_DEPTH: usize = 128;

/// Why a message is undecodable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// It does not begin with the magic bytes of Kubernetes.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NotKubernetes,
    /// Its kind is unknown.
    #[error("no kind is registered for what the protobuf message says it is")]
    UnknownKind,
    /// It ends too early, or is malformed.
    #[error("unexpected EOF")]
    Malformed,
}

/// Decodes an object with its envelope, which names the kind.
pub fn from_protobuf(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = parts(body.strip_prefix(MAGIC).ok_or(ProtobufError::NotKubernetes)?)?;
    let (mut kind, mut api_version, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, part) in envelope {
        match (number, part) {
            (1, Part::Bytes(head)) => {
                for (number, part) in parts(head)? {
                    match number {
                        1 => api_version = part.text()?,
                        2 => kind = part.text()?,
                        _ => {}
                    }
                }
            }
            (2, Part::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let message = message_of(&api_version, &kind).ok_or(ProtobufError::UnknownKind)?;
    let message = messages().get(message).ok_or(ProtobufError::UnknownKind)?;
    let mut object = members(message, raw, 0)?;
    object.insert("kind".into(), kind.as_str().into());
    object.insert("apiVersion".into(), api_version.as_str().into());
    let mut object = Value::Object(object);
    // Go sends zero values for missing fields that are not pointers; this removes them.
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    if let Some(schema) = crate::schema::builtin(group, version, &kind) {
        schema.normalize(&mut object);
    }
    Ok(object)
}

/// The encoded value of a field.
#[derive(Clone, Copy)]
enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Part<'a> {
    fn number(self) -> Result<u64, ProtobufError> {
        if let Part::Number(number) = self { Ok(number) } else { Err(ProtobufError::Malformed) }
    }

    fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        if let Part::Bytes(bytes) = self { Ok(bytes) } else { Err(ProtobufError::Malformed) }
    }

    fn text(self) -> Result<String, ProtobufError> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}

/// Splits a message into fields.
fn parts(mut rest: &[u8]) -> Result<Vec<(u64, Part<'_>)>, ProtobufError> {
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let part = match tag & 7 {
            0 => Part::Number(varint(&mut rest)?),
            1 => Part::Number(fixed(&mut rest, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut rest)?).map_err(|_| ProtobufError::Malformed)?;
                Part::Bytes(take(&mut rest, length)?)
            }
            5 => Part::Number(fixed(&mut rest, 4)?),
            _ => return Err(ProtobufError::Malformed),
        };
        parts.push((tag >> 3, part));
    }
    Ok(parts)
}

fn varint(rest: &mut &[u8]) -> Result<u64, ProtobufError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = u64::from(*take(rest, 1)?.first().ok_or(ProtobufError::Malformed)?);
        value |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(ProtobufError::Malformed)
}

fn fixed(rest: &mut &[u8], length: usize) -> Result<u64, ProtobufError> {
    Ok(take(rest, length)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], ProtobufError> {
    let (taken, left) = rest.split_at_checked(length).ok_or(ProtobufError::Malformed)?;
    *rest = left;
    Ok(taken)
}

fn members(message: &Message, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Malformed);
    }
    let mut object = Map::new();
    for (number, part) in parts(bytes)? {
        let Some(field) = message.get(&number) else { continue };
        match field.form {
            Form::One => {
                object.insert(field.name.into(), value(field.of, part, depth)?);
            }
            Form::Inline => {
                if let Value::Object(more) = value(field.of, part, depth)? {
                    object.extend(more);
                }
            }
            Form::List => {
                let items = object.entry(field.name).or_insert_with(|| json!([]));
                if let Value::Array(items) = items {
                    items.push(value(field.of, part, depth)?);
                }
            }
            Form::Map => {
                let (name, value) = entry(field.of, part.bytes()?, depth)?;
                let entries = object.entry(field.name).or_insert_with(|| json!({}));
                if let Value::Object(entries) = entries {
                    entries.insert(name, value);
                }
            }
        }
    }
    Ok(object)
}

/// An entry of a map is a message with a key and a value.
fn entry(of: Of, bytes: &[u8], depth: usize) -> Result<(String, Value), ProtobufError> {
    let absent = match of {
        Of::Integer | Of::Number | Of::Boolean => Part::Number(0),
        Of::String | Of::Bytes | Of::Message(_) => Part::Bytes(&[]),
    };
    let (mut key, mut content) = (String::new(), absent);
    for (number, part) in parts(bytes)? {
        match number {
            1 => key = part.text()?,
            2 => content = part,
            _ => {}
        }
    }
    Ok((key, value(of, content, depth)?))
}

fn value(of: Of, part: Part<'_>, depth: usize) -> Result<Value, ProtobufError> {
    Ok(match of {
        Of::String => part.text()?.into(),
        Of::Bytes => BASE64_STANDARD.encode(part.bytes()?).into(),
        Of::Integer => part.number()?.cast_signed().into(),
        Of::Number => f64::from_bits(part.number()?).into(),
        Of::Boolean => (part.number()? != 0).into(),
        Of::Message(name) => {
            let none = Message::new();
            let message = messages().get(name).unwrap_or(&none);
            special(name, message, members(message, part.bytes()?, depth + 1)?)
        }
    })
}

/// Some types have a special form in JSON.
fn special(name: &str, message: &Message, mut members: Map<String, Value>) -> Value {
    let mut take = |name: &str| members.remove(name).unwrap_or_default();
    match name.rsplit('.').next().unwrap_or_default() {
        "Time" => time(&members, "%Y-%m-%dT%H:%M:%SZ"),
        "MicroTime" => time(&members, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        "Quantity" => take("string"),
        "IntOrString" if take("type") == 1 => take("strVal"),
        "IntOrString" => match take("intVal") {
            Value::Null => 0.into(),
            number => number,
        },
        "RawExtension" | "JSON" => raw(&take("raw")),
        "FieldsV1" => raw(&take("Raw")),
        either if either.starts_with("JSONSchemaPropsOr") => match take("schema") {
            Value::Null => members.into_iter().next().map_or(Value::Null, |(_, other)| other),
            schema => without_zeros(schema),
        },
        _ if is_list(name, message) => take("items"),
        _ => Value::Object(members),
    }
}

/// A schema inside of a value of any type, which pruning does not reach.
fn without_zeros(mut schema: Value) -> Value {
    const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let types = table::builtin();
    if let Some(known) = TypeRef::named(types, |types| types.names.get(SCHEMA).copied()) {
        known.normalize(&mut schema);
    }
    schema
}

/// A zero time is sent as an empty message.
fn time(members: &Map<String, Value>, format: &str) -> Value {
    let number = |name: &str| members.get(name).and_then(Value::as_i64);
    let nanos = number("nanos").and_then(|nanos| nanos.try_into().ok()).unwrap_or(0);
    let time = number("seconds").and_then(|seconds| jiff::Timestamp::new(seconds, nanos).ok());
    time.map_or(Value::Null, |time| time.strftime(format).to_string().into())
}

/// JSON, which is sent as bytes.
fn raw(bytes: &Value) -> Value {
    let text = bytes.as_str().and_then(|bytes| BASE64_STANDARD.decode(bytes).ok()).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, content.len().try_into().unwrap()];
        bytes.extend(content);
        bytes
    }

    fn object(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let head = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &head), field(2, raw)].concat()
    }

    #[test]
    fn maps_times_and_bytes_are_as_in_json() {
        let metadata = [field(1, b"a"), field(2, b""), field(8, b"\x08\x3c")].concat();
        let data = [field(1, b"key"), field(2, b"value")].concat();
        let secret = [field(1, &metadata), field(2, &data), field(3, b"Opaque")].concat();
        let read = from_protobuf(&object("v1", "Secret", &secret)).unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "a", "creationTimestamp": "1970-01-01T00:01:00Z" },
            "data": { "key": "dmFsdWU=" }, "type": "Opaque",
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn embedded_structures_are_part_of_their_object() {
        // Volume 2: volumeSource, of which 19 is a config map, of which 1 is the embedded reference.
        let map = field(1, &field(1, b"settings"));
        let source = [vec![0x9a, 1, map.len().try_into().unwrap()], map].concat();
        let volume = [field(1, b"v"), field(2, &source)].concat();
        let pod = field(2, &field(1, &volume));
        let read = from_protobuf(&object("v1", "Pod", &pod)).unwrap();
        assert_eq!(read["spec"]["volumes"], json!([{ "name": "v", "configMap": { "name": "settings" } }]));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(from_protobuf(b"{}"), Err(ProtobufError::NotKubernetes));
        assert_eq!(from_protobuf(&object("v1", "Nothing", b"")), Err(ProtobufError::UnknownKind));
        let whole = object("v1", "Secret", &field(1, &field(1, b"a")));
        // Without its second field, the envelope is that of an empty object.
        let head = object("v1", "Secret", b"").len() - field(2, b"").len();
        for end in (MAGIC.len() + 1..whole.len()).filter(|end| *end != head) {
            assert!(from_protobuf(&whole[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..20_000 {
            let raw: Vec<u8> = (0..random.usize(..60)).map(|_| random.u8(..)).collect();
            let kind = random.choice(["Pod", "Secret", "Event", "Node"]).unwrap();
            let read = from_protobuf(&object("v1", kind, &raw));
            assert!(read.is_ok() || read == Err(ProtobufError::Malformed), "{round}: {read:?}");
        }
    }
}
