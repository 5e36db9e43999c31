//! Writes a [`Node`] as JSON, as an API server does: the same members in the same order.

mod carried;
mod text;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::Error;
use crate::members::Members;
use crate::node::{List, Map, Node, Object};
use crate::number::Number;

/// Appends a value.
pub(crate) fn write(node: Node<'_>, json: &mut Vec<u8>) -> Result<(), Error> {
    match node {
        Node::Null => json.extend_from_slice(b"null"),
        Node::Bool(value) => json.extend_from_slice(if value { b"true" } else { b"false" }),
        Node::Integer(value) => integer(value.unsigned_abs(), value < 0, json),
        Node::Float(value) => float(value, json),
        Node::Text(value) => text::write(value.bytes, json),
        Node::Bytes(value) => {
            json.push(b'"');
            json.extend_from_slice(STANDARD.encode(value).as_bytes());
            json.push(b'"');
        }
        Node::Time(stamp) => stamp.text(|text| {
            json.push(b'"');
            json.extend_from_slice(text.as_bytes());
            json.push(b'"');
        }),
        Node::Json(part, room) => carried::write(part, room, json)?,
        Node::Object(value) => object(value, json)?,
        Node::List(value) => list(value, json)?,
        Node::Map(value) => map(value, json)?,
    }
    Ok(())
}

fn object(object: Object<'_>, json: &mut Vec<u8>) -> Result<(), Error> {
    let mut separator = b'{';
    if let Some(kind) = object.kind {
        json.extend_from_slice(b"{\"kind\":");
        text::write(kind.kind().as_bytes(), json);
        json.extend_from_slice(b",\"apiVersion\":");
        text::write(kind.api_version().as_bytes(), json);
        separator = b',';
    }
    let mut members = Members::new(&object);
    members.note()?;
    while let Some(place) = members.next()? {
        json.push(separator);
        json.extend_from_slice(place.member.label().as_bytes());
        let written = members.node(&place).and_then(|node| write(node, json));
        written.map_err(|error| error.within(place.member.name(), place.at))?;
        separator = b',';
    }
    close(separator, *b"{}", json);
    Ok(())
}

fn list(mut list: List<'_>, json: &mut Vec<u8>) -> Result<(), Error> {
    let mut separator = b'[';
    while let Some(node) = list.next()? {
        json.push(separator);
        write(node, json)?;
        separator = b',';
    }
    close(separator, *b"[]", json);
    Ok(())
}

fn map(mut map: Map<'_>, json: &mut Vec<u8>) -> Result<(), Error> {
    let mut separator = b'{';
    while let Some((key, node)) = map.next()? {
        json.push(separator);
        text::write(key.bytes, json);
        json.push(b':');
        write(node, json)?;
        separator = b',';
    }
    close(separator, *b"{}", json);
    Ok(())
}

/// Closes an object or list. One without members was not opened yet.
fn close(separator: u8, [open, close]: [u8; 2], json: &mut Vec<u8>) {
    if separator == open {
        json.push(open);
    }
    json.push(close);
}

fn integer(mut value: u64, is_negative: bool, json: &mut Vec<u8>) {
    let mut digits = [0; 21];
    let mut at = digits.len();
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
        }
        value /= 10;
        if value == 0 {
            break;
        }
    }
    if is_negative {
        json.push(b'-');
    }
    json.extend_from_slice(digits.get(at..).unwrap_or_default());
}

fn float(value: f64, json: &mut Vec<u8>) {
    match Number::of(value) {
        Number::Positive(value) => integer(value, false, json),
        Number::Negative(value) => integer(value.unsigned_abs(), true, json),
        Number::Float(0.0) => json.extend_from_slice(b"-0"),
        // The shortest text that decodes to the same number; nodes hold finite ones only.
        Number::Float(value) => json.extend_from_slice(serde_json::Value::from(value).to_string().as_bytes()),
    }
}
