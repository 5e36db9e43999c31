//! The text that stands in a value's place.

use super::key::HashKey;
use super::known::Mark;

/// `<hmac:1f3a9c20 18 bytes>`: the same for the same bytes.
pub(super) fn hidden(key: &HashKey, bytes: &[u8]) -> String {
    text(mark(key, bytes), "")
}

/// The same for a value that was found in another form: `<hmac:1f3a9c20 18 bytes, base64>`.
pub(super) fn text(mark: Mark, form: &str) -> String {
    let Mark { hash, bytes } = mark;
    format!("<hmac:{hash:08x} {bytes} bytes{form}>")
}

pub(super) fn mark(key: &HashKey, bytes: &[u8]) -> Mark {
    Mark { hash: key.hash(bytes), bytes: bytes.len() }
}

/// How long the value was that `text` stands for, if it does.
pub(crate) fn length(text: &str) -> Option<usize> {
    let hidden = text.strip_prefix("<hmac:")?.strip_suffix(" bytes>")?;
    hidden.split_once(' ')?.1.parse().ok()
}
