//! One version of one object, as the cache keeps it.
//!
//! Only this module knows how an object's bytes are kept ([`body`]); everybody else asks for them. The few fields that
//! are always needed (key, uid, resourceVersion, labels) stand beside the bytes, and whoever decodes an object into a
//! type shares the decoded value with everyone who asks while somebody still holds it (design D2).

mod body;
mod decoded;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::wire::{self, ScanError};
use crate::{Labels, ObjectKey, ResourceVersion, Uid};
use body::Body;
use decoded::DecodedSlot;

/// One immutable version of one object.
///
/// ```
/// use informer_core::Object;
///
/// let object = Object::from_json(br#"{"kind":"Pod","metadata":{"name":"cart","namespace":"shop","resourceVersion":"7"}}"#)?;
/// assert_eq!(object.key().as_str(), "shop/cart");
/// let value = object.decode::<serde_json::Value>()?;
/// assert_eq!(value["kind"], "Pod");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Object {
    key: ObjectKey,
    uid: Uid,
    resource_version: ResourceVersion,
    labels: Labels,
    body: Body,
    decoded: DecodedSlot,
}

/// An object that could not be read as the asked type. Never holds any of the object's content.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{key} at resourceVersion {resource_version} cannot be read as {as_type}: {reason}")]
pub struct DecodeError {
    key: ObjectKey,
    resource_version: ResourceVersion,
    as_type: &'static str,
    reason: Arc<str>,
}

impl DecodeError {
    /// The object that cannot be read.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Its version that cannot be read.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.resource_version
    }
}

impl Object {
    /// Keeps an object from its JSON, reading only its metadata.
    ///
    /// # Errors
    ///
    /// When the bytes are not a JSON object with a name in its metadata. The rest is validated when it is first decoded.
    pub fn from_json(json: &[u8]) -> Result<Self, ScanError> {
        wire::scan_object(json)?.into_object(json)
    }

    /// Puts an object together from metadata that was already read.
    pub(crate) fn from_parts(
        key: ObjectKey,
        uid: Uid,
        resource_version: ResourceVersion,
        labels: Labels,
        json: Cow<'_, [u8]>,
    ) -> Self {
        Self { key, uid, resource_version, labels, body: Body::new(json), decoded: DecodedSlot::default() }
    }

    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Which incarnation of the key this is.
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// The version of this state.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.resource_version
    }

    /// The labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The whole object as JSON.
    pub fn json(&self) -> Cow<'_, [u8]> {
        self.body.json()
    }

    /// The object as a `T`: the value that others hold already, or a freshly decoded one.
    ///
    /// # Errors
    ///
    /// When the object's JSON does not fit `T`. The error concerns this object alone.
    pub fn decode<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>, DecodeError> {
        self.decoded.shared_or(|| {
            serde_json::from_slice(&self.json()).map_err(|error| DecodeError {
                key: self.key.clone(),
                resource_version: self.resource_version.clone(),
                as_type: std::any::type_name::<T>(),
                reason: reason_without_content(&error).into(),
            })
        })
    }

    /// Keeps the decoded `T` for as long as this version lives: for consumers that read every object all the time.
    ///
    /// # Errors
    ///
    /// As [`Object::decode`].
    pub fn decode_and_keep<T: DeserializeOwned + Send + Sync + 'static>(
        &self,
    ) -> Result<Arc<T>, DecodeError> {
        let value = self.decode::<T>()?;
        self.decoded.keep(&value);
        Ok(value)
    }

    /// Bytes that this version holds, without what its metadata shares with others.
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.body.held_bytes()
    }

    /// Whether the two have the same content, byte for byte.
    pub fn same_content(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

/// serde's message quotes the offending value, which may be a Secret's: say only what kind of error it was, and where.
fn reason_without_content(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Io => "it could not be read",
        serde_json::error::Category::Syntax => "it is not well-formed JSON",
        serde_json::error::Category::Data => "a field is missing or has another type than expected",
        serde_json::error::Category::Eof => "its JSON ends early",
    };
    format!("{what} (line {} column {})", error.line(), error.column())
}

impl fmt::Debug for Object {
    /// Names the version; the body is never printed, it may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.resource_version)
    }
}
