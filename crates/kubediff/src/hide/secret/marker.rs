//! The text that stands in a value's place.

use super::key::{HashKey, ValueId};

/// Makes marks for one namespace: those of another one differ, so that its readers cannot test guesses for values.
#[derive(Clone, Copy)]
pub(super) struct Marker<'a> {
    pub(super) key: &'a HashKey,
    pub(super) namespace: &'a str,
}

impl Marker<'_> {
    /// `<hmac:1f3a9c20 18 bytes>`: the same for the same bytes. A mark stays as it is: a stored state has some.
    pub(super) fn hidden(&self, bytes: &[u8]) -> String {
        if let Some(mark) = str::from_utf8(bytes).ok().filter(|text| length(text).is_some()) {
            return mark.to_owned();
        }
        self.text(self.key.value_id(bytes), bytes.len(), "")
    }

    /// The same for a value that was found in another form: `<hmac:1f3a9c20 18 bytes, base64>`.
    pub(super) fn text(&self, value: ValueId, bytes: usize, form: &str) -> String {
        let hash = self.key.mark(self.namespace, value);
        format!("<hmac:{hash:08x} {bytes} bytes{form}>")
    }
}

/// How long the value was that `text` stands for, if it does.
pub(crate) fn length(text: &str) -> Option<usize> {
    let hidden = text.strip_prefix("<hmac:")?.strip_suffix(" bytes>")?;
    hidden.split_once(' ')?.1.parse().ok()
}
