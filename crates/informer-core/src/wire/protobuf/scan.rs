//! Reads only the metadata of an object in protobuf.

use std::fmt;

use informer_protobuf::{Error, Metadata};

use super::super::cursor::Fault;
use super::super::{Bookmark, ScanError};
use crate::{Labels, ObjectKey, ResourceVersion, Uid};

/// The metadata of one object.
pub struct ScannedMessage<'a> {
    key: ObjectKey,
    resource_version: ResourceVersion,
    metadata: Metadata<'a>,
}

/// Reads the metadata of one object from its message, without an envelope.
///
/// # Errors
///
/// When the message has no metadata or no name, or when the metadata is malformed.
pub fn scan_protobuf(message: &[u8]) -> Result<ScannedMessage<'_>, ScanError> {
    let metadata = informer_protobuf::scan(message)
        .map_err(|error| fault(&error, super::key_of_damaged(message).as_ref()))?;
    let key = ObjectKey::new(Some(metadata.namespace), metadata.name).map_err(|_| {
        let what = "it has no name, or its name or namespace contains `/`";
        ScanError::new(Fault { what, at: 0 }, None)
    })?;
    let resource_version = ResourceVersion::new(metadata.resource_version);
    Ok(ScannedMessage { key, resource_version, metadata })
}

/// Reads a bookmark event's object, in its envelope.
///
/// # Errors
///
/// When it is not an object with metadata, or has no resourceVersion.
pub fn scan_protobuf_bookmark(envelope: &[u8]) -> Result<Bookmark, ScanError> {
    let envelope = informer_protobuf::open(envelope).map_err(|error| fault(&error, None))?;
    let metadata = informer_protobuf::scan(envelope.raw).map_err(|error| fault(&error, None))?;
    let resource_version = ResourceVersion::new(metadata.resource_version);
    if resource_version.is_unset() {
        let what = "the bookmark has no resourceVersion";
        return Err(ScanError::new(Fault { what, at: 0 }, None));
    }
    // Only the value `true` counts (contract S2).
    let end = metadata.annotation("k8s.io/initial-events-end").map_err(|error| fault(&error, None))?;
    let initial_events_end = end.as_deref() == Some("true");
    Ok(Bookmark { resource_version, initial_events_end })
}

fn fault(error: &Error, key: Option<&ObjectKey>) -> ScanError {
    let what = "its metadata is not well-formed protobuf";
    ScanError::new(Fault { what, at: error.offset().unwrap_or_default() }, key.cloned())
}

impl ScannedMessage<'_> {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The key, without the rest.
    pub fn into_key(self) -> ObjectKey {
        self.key
    }

    /// The version of this state; unset if the object has none.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.resource_version
    }

    /// The incarnation of the key; unset if the object has none.
    pub fn uid(&self) -> Uid {
        Uid::new(self.metadata.uid)
    }

    /// The incarnation of the key as the server wrote it; empty if the object has none.
    pub fn uid_text(&self) -> &str {
        self.metadata.uid
    }

    /// The uid of the owner that controls the object, as [`controller_uid`](crate::wire::controller_uid) reads it from JSON.
    ///
    /// # Errors
    ///
    /// When the owner references are malformed.
    pub fn controller_uid(&self) -> Result<Option<&str>, ScanError> {
        let owner = self.metadata.controller().map_err(|error| fault(&error, Some(&self.key)))?;
        Ok(owner.map(|owner| owner.uid))
    }

    /// The labels, which are decoded by this call.
    ///
    /// # Errors
    ///
    /// When a label's key or value is not a string.
    pub fn labels(&self) -> Result<Labels, ScanError> {
        let labels: Result<Vec<_>, _> = self.metadata.labels().collect();
        let labels = labels.map_err(|error| fault(&error, Some(&self.key)))?;
        Ok(Labels::new(labels.iter().map(|(name, value)| (&**name, &**value))))
    }
}

impl fmt::Debug for ScannedMessage<'_> {
    /// Names the version; the rest is never printed, it may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.resource_version)
    }
}
