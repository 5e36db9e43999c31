//! One version of one object, as the cache keeps it.
//!
//! Only [`encoding`] knows how an object's bytes are encoded, and only [`storage`] knows where they are kept; all other code
//! asks these modules for them. The few fields that are always needed (key, uid, resourceVersion, labels) stand beside the
//! bytes. [`hot`] shares recently decoded values with all callers (design D16).

mod bytes;
mod content;
mod decode;
mod encoding;
#[cfg(feature = "packed")]
mod frames;
mod hot;
mod owners;
#[cfg(feature = "packed")]
mod packed;
mod scanned;
mod storage;
mod tree;
mod weight;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::labels::RecentLabels;
use crate::memory::{COUNTS, allocated};
use crate::sync::OnceLock;
use crate::wire::{self, ScanError};
use crate::{Labels, ObjectKey, ResourceVersion, Uid};
use encoding::Unfit;
use hot::Heat;

pub use bytes::ObjectBytes;
pub use content::ContentKey;
pub(crate) use content::{Comparison, ContentHash, ContentHasher, ContentRecord, Difference};
pub use decode::{BySerde, Decode};
pub use encoding::Encoding;
pub use hot::{HotSet, Retention, Room, Shelf};
pub use owners::ControllerReference;
#[cfg(feature = "packed")]
pub use packed::PackedStorage;
pub use storage::{PlainStorage, Storage, StorageError, Stored, StoredBytes};

/// One immutable version of one object.
///
/// ```
/// # use informer_core as informer;
/// use informer::Object;
///
/// let object = Object::from_json(br#"{"kind":"Pod","metadata":{"name":"cart","namespace":"shop","resourceVersion":"7"}}"#)?;
/// assert_eq!(object.key().as_str(), "shop/cart");
/// let value = object.decode::<serde_json::Value>()?;
/// assert_eq!(value["kind"], "Pod");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// The order of the fields in memory: a get of a hot object reads the key and the heat, which share a cache line.
#[repr(C)]
pub struct Object {
    key: ObjectKey,
    heat: Heat,
    labels: Labels,
    resource_version: ResourceVersion,
    uid: Uid,
    /// The bytes at rest. A version that is hot on arrival has none before it cools.
    stored: OnceLock<Stored>,
    /// The hash of the bytes as received, before any transform.
    content: ContentRecord,
    /// The bytes of memory that the object's bytes take at rest: an estimate for a version that was hot on arrival. The
    /// number does not change while the object is in a store, because the store's account adds and subtracts it.
    resting: AtomicU32,
    encoding: Encoding,
    /// Whether the labels are shared with another object, which accounts for their memory.
    shares_labels: bool,
    /// Whether decoding leaves out the managed fields.
    skips_managed_fields: bool,
}

/// Where the bytes of a new version go.
#[derive(Clone, Copy)]
pub(crate) enum Arrival<'a> {
    /// They go to the given storage at once.
    AtRest(&'a dyn Storage),
    /// They go to the cache's storage at once.
    Cold(&'a Arc<Shelf>),
    /// They stay in memory as received until the version cools.
    Hot(&'a Arc<Shelf>),
}

/// An object that does not decode as the requested type. Never holds any of the object's content.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{key} at resourceVersion {resource_version} does not decode as {as_type}: {reason}")]
pub struct DecodeError {
    key: ObjectKey,
    resource_version: ResourceVersion,
    as_type: &'static str,
    reason: Arc<str>,
    #[source]
    source: Option<Arc<StorageError>>,
}

impl DecodeError {
    /// The undecodable object.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The undecodable version.
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
        encoding: Encoding,
        bytes: Cow<'_, [u8]>,
        arrival: Arrival<'_>,
    ) -> Self {
        let (shares_labels, skips_managed_fields) = (false, false);
        let (resting, stored, heat) = arrival.place(bytes);
        Self {
            key,
            uid,
            resource_version,
            labels,
            shares_labels,
            skips_managed_fields,
            encoding,
            resting,
            stored,
            content: ContentRecord::default(),
            heat,
        }
    }

    /// The same version, but decoding it as a type leaves out `metadata.managedFields`, which saves half of the work.
    /// [`Object::bytes`] and [`Object::json`] still contain them.
    #[must_use]
    pub fn skipping_managed_fields(self) -> Self {
        Self { skips_managed_fields: true, ..self }
    }

    /// The same version, with labels that it shares with other objects that have equal ones, as far as equal ones are known.
    /// `former` is the cached version of the key.
    pub(crate) fn sharing_labels(self, former: Option<&Self>, recent: &mut RecentLabels) -> Self {
        let (labels, shares_labels) = match former {
            // The new version replaces the former one in the cache, so it also takes over the accounting of the labels.
            Some(former) if former.labels == self.labels => (former.labels.clone(), former.shares_labels),
            _ => recent.share(self.labels),
        };
        Self { labels, shares_labels, ..self }
    }

    /// The same version with its bytes kept in `storage`.
    ///
    /// # Errors
    ///
    /// When the bytes are not available from their present storage.
    pub fn kept_in(self, storage: &dyn Storage) -> Result<Self, DecodeError> {
        self.moved(Arrival::AtRest(storage))
    }

    /// The same version with its bytes kept elsewhere.
    pub(crate) fn moved(self, arrival: Arrival<'_>) -> Result<Self, DecodeError> {
        let (resting, stored, heat) = arrival.place(Cow::Borrowed(&self.bytes()?));
        Ok(Self { resting, stored, heat, ..self })
    }

    /// Replaces the estimated size at rest by the actual one. Call this only for a version that is in no store yet.
    fn settle_account(&self) {
        if let Some(stored) = self.stored.get() {
            let resting = u32::try_from(stored.held_bytes()).unwrap_or(u32::MAX);
            self.resting.store(resting, Ordering::Relaxed);
        }
    }

    /// Stores the bytes at rest. If two threads call this at once, the first result counts.
    fn rest(&self, stored: impl FnOnce() -> Stored) {
        self.stored.get_or_init(stored);
    }

    /// The same version, with the record of its content as received.
    pub(crate) fn with_content(self, content: ContentRecord) -> Self {
        Self { content, ..self }
    }

    pub(crate) fn content(&self) -> &ContentRecord {
        &self.content
    }

    /// Whether a list brought this object at the same version as `known`, but with other content (contract L14).
    pub(crate) fn revises(&self, known: &Self) -> bool {
        self.resource_version == known.resource_version && self.content.revises(&known.content)
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

    /// The same version without its managed fields; its bytes are kept unpacked in memory.
    ///
    /// # Errors
    ///
    /// When the bytes are not available from their storage.
    pub fn without_managed_fields(&self) -> Result<Self, DecodeError> {
        let bytes = self.bytes()?;
        let without = self.encoding.without_managed_fields(&bytes);
        let (resting, stored, heat) = Arrival::AtRest(&PlainStorage).place(without);
        Ok(Self {
            key: self.key.clone(),
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            labels: self.labels.clone(),
            shares_labels: true,
            skips_managed_fields: self.skips_managed_fields,
            encoding: self.encoding,
            resting,
            stored,
            content: self.content.clone(),
            heat,
        })
    }

    /// The encoding of [`Object::bytes`].
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The object's bytes as the cache keeps them: as received from the server, after any transform.
    ///
    /// # Errors
    ///
    /// When they are not available from their storage.
    pub fn bytes(&self) -> Result<ObjectBytes, DecodeError> {
        if let Some(bytes) = self.heat.bytes() {
            return Ok(bytes.into());
        }
        // The order matters: a version's bytes are stored at rest before they leave the hot set.
        let stored = self.stored.get().ok_or_else(|| self.unreadable("bytes", "none stored".to_owned()))?;
        stored.read().map_err(|error| {
            let unreadable = self.unreadable("bytes", error.to_string());
            DecodeError { source: Some(Arc::new(error)), ..unreadable }
        })
    }

    /// The length of [`Object::bytes`]. O(1): the bytes are not touched.
    pub fn size(&self) -> usize {
        let at_rest = || self.stored.get().map_or(0, Stored::length);
        self.heat.length().unwrap_or_else(at_rest)
    }

    /// The whole object as JSON.
    ///
    /// # Errors
    ///
    /// When the bytes are not available from their storage, or when they are in another encoding and not well-formed.
    pub fn json(&self) -> Result<ObjectBytes, DecodeError> {
        self.encoding.json(self.bytes()?).map_err(|Unfit(reason)| self.unreadable("JSON", reason))
    }

    /// The object as a `T`: the hot value, or a freshly decoded one. This does not make a cold object hot. To share values,
    /// read through an `Informer<T>`.
    ///
    /// # Errors
    ///
    /// When the object does not decode as `T`. The error concerns this object alone.
    pub fn decode<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>, DecodeError> {
        if let Some(value) = self.heat.value() {
            return Ok(value);
        }
        let (value, heap) = self.read_as::<T, BySerde>(self.skips_managed_fields)?;
        Ok(match self.heat.shelf() {
            Some(shelf) => shelf.keep_value(self, None, Arc::new(value), heap, Room::EvictIfHot),
            None => Arc::new(value),
        })
    }

    /// The object as a `T`, its managed fields included. The value is decoded by each call.
    ///
    /// # Errors
    ///
    /// When the object does not decode as `T`. The error concerns this object alone.
    pub fn decode_whole<T: DeserializeOwned + 'static>(&self) -> Result<T, DecodeError> {
        self.read_as::<T, BySerde>(false).map(|(value, _)| value)
    }

    /// The object as a `T`, and about how many bytes of the heap it refers to.
    fn read_as<T: DeserializeOwned + 'static, D: Decode>(
        &self,
        skips_managed_fields: bool,
    ) -> Result<(T, usize), DecodeError> {
        let unfit = |Unfit(reason)| self.unreadable(std::any::type_name::<T>(), reason);
        let bytes = self.bytes()?;
        if let Encoding::Protobuf(kind) = self.encoding
            && let Some(decoded) = D::protobuf(kind, &bytes, skips_managed_fields)
        {
            return Ok(decoded);
        }
        if skips_managed_fields {
            self.encoding.decode(&self.encoding.without_managed_fields(&bytes)).map_err(unfit)
        } else {
            self.encoding.decode(&bytes).map_err(unfit)
        }
    }

    fn unreadable(&self, as_type: &'static str, reason: String) -> DecodeError {
        DecodeError {
            key: self.key.clone(),
            resource_version: self.resource_version.clone(),
            as_type,
            reason: reason.into(),
            source: None,
        }
    }

    /// The bytes of memory that this version takes at rest. Labels that several objects share count for one of them. Hot
    /// bytes and values are not included. For a version that a watch event brought, the size at rest is estimated from that of other
    /// objects.
    pub fn held_bytes(&self) -> usize {
        let labels = if self.shares_labels { 0 } else { self.labels.held_bytes() };
        allocated(COUNTS + size_of::<Self>())
            + self.key.held_bytes()
            + self.uid.held_bytes()
            + labels
            + self.resting.load(Ordering::Relaxed) as usize
    }

    /// The bytes of memory that a version takes while it is not in a cache yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.held_bytes() + self.heat.length().unwrap_or_default()
    }

    /// Whether the two have equal trees in whatever encoding; nulls and empty values are ignored. `false` if one is
    /// undecodable.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let tree = |object: &Self| serde_json::from_slice::<Value>(&object.json().ok()?).ok();
        matches!((tree(self), tree(other)), (Some(ours), Some(theirs)) if tree::is_same(&ours, &theirs))
    }

    /// Whether the two have equal content, byte for byte in the same encoding, or else as JSON. `false` if one is
    /// undecodable.
    pub fn same_content(&self, other: &Self) -> bool {
        if self.encoding == other.encoding {
            matches!((self.bytes(), other.bytes()), (Ok(ours), Ok(theirs)) if ours == theirs)
        } else {
            matches!((self.decode::<Value>(), other.decode::<Value>()), (Ok(ours), Ok(theirs)) if ours == theirs)
        }
    }
}

impl Arrival<'_> {
    fn place(self, bytes: Cow<'_, [u8]>) -> (AtomicU32, OnceLock<Stored>, Heat) {
        let stored = match self {
            Self::AtRest(storage) => storage.keep(bytes),
            Self::Hot(shelf) if shelf.takes_hot() => {
                let resting = shelf.resting(bytes.len());
                let heat = Heat::arrived(shelf, bytes.into(), resting);
                return (in_32_bits(resting), OnceLock::default(), heat);
            }
            Self::Cold(shelf) | Self::Hot(shelf) => shelf.keep(bytes),
        };
        let (resting, at_rest) = (stored.held_bytes(), OnceLock::default());
        at_rest.get_or_init(|| stored);
        (in_32_bits(resting), at_rest, Heat::vacant())
    }
}

fn in_32_bits(bytes: usize) -> AtomicU32 {
    AtomicU32::new(u32::try_from(bytes).unwrap_or(u32::MAX))
}

impl fmt::Debug for Object {
    /// Names the version; the body is never printed, it may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.resource_version)
    }
}
