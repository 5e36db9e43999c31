//! The content of a version.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// An object as JSON, with its secrets replaced.
///
/// The store takes content in no other form, and nobody but the caller can know what is secret. So the one way to make a
/// body is [`Body::redacted`], which says so; `Debug` shows its length only.
#[derive(Clone, PartialEq, Eq)]
pub struct Body(Arc<[u8]>);

impl Body {
    /// A body of this JSON, in which **secrets are replaced already**.
    ///
    /// Versions of one object are stored as differences of their bytes, so write their fields in one order.
    pub fn redacted(json: impl AsRef<[u8]>) -> Self {
        Self(json.as_ref().into())
    }

    /// The JSON.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The JSON as a value; null when it is none.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.0).unwrap_or_default()
    }

    /// Bytes of the store, which are redacted.
    pub(crate) fn stored(bytes: Arc<[u8]>) -> Self {
        Self(bytes)
    }

    pub(crate) fn shared(&self) -> Arc<[u8]> {
        self.0.clone()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.0.len())
    }
}
