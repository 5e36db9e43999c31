//! Reads the state back from an object of the cache.

use informer_core::{Encoding, Object};

use crate::protobuf;
use crate::render;
use crate::truth::{Key, State};

/// The key and state of an object; `None` unless its bytes are what a server sent, or what the transform made of that.
pub(crate) fn read(object: &Object) -> Option<(Key, State)> {
    if object.encoding() != Encoding::Json {
        return protobuf::read(object);
    }
    let key = Key::of(object.key().as_str())?;
    let json = object.json().ok()?;
    let text = std::str::from_utf8(&json).ok()?;
    let value = text.rsplit_once(r#""v":"#)?.1.trim_end_matches('}').parse().ok()?;
    let uid = object.uid().to_string().parse().ok()?;
    let version = render::number(object.resource_version());
    let state = State { uid, version, value };
    // Listed and watched objects are equal to the byte (L13).
    let (whole, short) = (render::object(key, state, true), render::shortened(key, state));
    let is_sent = whole == text || short == text || render::in_second_version(&whole) == text;
    is_sent.then_some((key, state))
}

/// Whether the transform has changed the object.
pub(crate) fn is_shortened(object: &Object) -> bool {
    object.json().is_ok_and(|json| String::from_utf8_lossy(&json).contains(render::SHORT_NOTE))
}

/// The version of the resource as which the object was read.
pub(crate) fn resource(object: &Object) -> u8 {
    let is_second =
        object.json().is_ok_and(|json| String::from_utf8_lossy(&json).contains(r#""apiVersion":"v2""#));
    if is_second { 2 } else { 1 }
}
