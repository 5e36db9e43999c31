//! The state that an object of the cache is in.

use informer_core::{Encoding, Object};

use crate::protobuf;
use crate::render;
use crate::truth::{Key, State};

/// The state that an object of the cache is in; `None` where it is not as any server's.
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
    // To the byte, whichever way it came (L13).
    (render::object(key, state, true) == text || render::shortened(key, state) == text)
        .then_some((key, state))
}

/// Whether a transform has changed it.
pub(crate) fn is_shortened(object: &Object) -> bool {
    object.json().is_ok_and(|json| String::from_utf8_lossy(&json).contains(render::SHORT_NOTE))
}
