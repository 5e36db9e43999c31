//! How an object's bytes are kept.

use std::borrow::Cow;

/// The kept form: the JSON as it came.
pub(super) struct Body(Box<[u8]>);

impl Body {
    pub(super) fn new(json: Cow<'_, [u8]>) -> Self {
        Self(match json {
            Cow::Borrowed(json) => json.into(),
            Cow::Owned(json) => json.into_boxed_slice(),
        })
    }

    pub(super) fn json(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.0)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.0.len()
    }
}
