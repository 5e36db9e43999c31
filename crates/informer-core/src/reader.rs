//! Turns responses of a server into inputs of the reflector: decodes metadata, compares versions with the cache, and
//! stores new versions.

mod body;
mod share;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use informer_protobuf::Kind;

use crate::ContentKey;
use crate::labels::RecentLabels;
use crate::object::Arrival;
use crate::object::{ContentHash, ContentHasher, ContentRecord};
use crate::reflector::{EventKind, Input, Trust};
use crate::share::Share;
use crate::wire::{
    ApiStatus, Bookmark, Codec, EventType, ScanError, ScannedMessage, WatchFrame, scan_bookmark, scan_object,
    scan_protobuf, scan_protobuf_bookmark,
};
use crate::{Cache, Object, ObjectKey, ResourceVersion, Shelf};
use share::Hashed;

pub use body::{Body, BodyOf};

/// Decodes the responses about one resource.
pub struct ResponseReader {
    cache: Cache,
    shelf: Arc<Shelf>,
    expected: Expected,
    /// The protobuf kind of the expected objects, if they have one.
    protobuf: Option<Kind>,
    skips_managed_fields: bool,
    /// Objects outside of it are left out.
    share: Option<Share>,
    labels: Mutex<RecentLabels>,
    hasher: ContentHasher,
    /// The beginning of the JSON of an event's object, which a list item lacks.
    type_meta: String,
}

/// The bytes of one object in a response: JSON, or a message without its envelope, whose kind was checked already.
#[derive(Clone, Copy)]
struct Wire<'a> {
    codec: Codec,
    bytes: &'a [u8],
}

/// The expected type of a response's objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Such as `apps/v1`; added to objects without one.
    pub api_version: String,
    /// Such as `Deployment`; added to objects without one.
    pub kind: String,
    /// Another kind that is also accepted.
    pub or_kind: Option<String>,
}

/// The decoded form of one part of a response.
#[derive(Debug)]
pub struct Reading {
    /// The kind of part.
    pub part: Part,
    /// The input for the reflector.
    pub input: Input,
    /// The object of a deletion whose last state is undecodable. The deletion counts nevertheless.
    pub unreadable: Option<Unreadable>,
    /// Whether the object was left out, because it is not in the share that the reader keeps.
    pub is_outside: bool,
}

/// A part of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// An item of a list.
    Item,
    /// An event of a watch.
    Event(EventType),
    /// Neither, or unknown.
    Other,
}

/// An undecodable object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The object, if at least its namespace and name decode.
    pub key: Option<ObjectKey>,
    /// The reason. Never holds any of the object's content.
    pub reason: String,
    /// Its version, if that decodes as well.
    version: Option<ResourceVersion>,
    /// Whether the object is of another kind.
    is_other_kind: bool,
}

/// The result of decoding an object.
enum Read {
    Unchanged(ObjectKey),
    Kept(Object),
    /// It is not in the share.
    Outside(ObjectKey, ResourceVersion),
}

fn type_meta(Expected { api_version, kind, .. }: &Expected) -> String {
    format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","#)
}

impl ResponseReader {
    /// A reader for the cache of one resource, which keeps new versions on `shelf`.
    pub fn new(cache: Cache, shelf: Arc<Shelf>, expected: Expected) -> Self {
        let protobuf = Kind::of(&expected.api_version, &expected.kind);
        let hasher = ContentHasher::new(cache.content_key());
        Self {
            cache,
            shelf,
            protobuf,
            skips_managed_fields: false,
            share: None,
            labels: Mutex::default(),
            hasher,
            type_meta: type_meta(&expected),
            expected,
        }
    }

    /// Makes the objects skip their managed fields when they are decoded ([`Object::skipping_managed_fields`]).
    #[must_use]
    pub fn skipping_managed_fields(self) -> Self {
        Self { skips_managed_fields: true, ..self }
    }

    /// Leaves out the objects that are not in this share.
    #[must_use]
    pub fn keeping(self, share: Option<Share>) -> Self {
        Self { share, ..self }
    }

    /// Expects objects of another type from now on. Hashes leave out the type at the beginning of an object, so they would
    /// not show its change. A new key makes all former hashes differ, so that the next list compares whole trees.
    pub fn expect(&mut self, expected: Expected) {
        self.hasher = ContentHasher::new(ContentKey::random());
        self.protobuf = Kind::of(&expected.api_version, &expected.kind);
        self.type_meta = type_meta(&expected);
        self.expected = expected;
    }

    /// Whether the expected objects also decode from protobuf.
    pub fn reads_protobuf(&self) -> bool {
        self.protobuf.is_some()
    }

    /// Reads a list item. `trust` says how far an equal resourceVersion can be trusted.
    fn item(&self, object: Wire<'_>, trust: Trust<'_>) -> Reading {
        let input = match self.read(object, trust, Arrival::Cold(&self.shelf)) {
            Ok(Read::Unchanged(key)) => Input::Unchanged(key),
            Ok(Read::Kept(object)) => Input::Item(Arc::new(object)),
            Ok(Read::Outside(..)) => {
                return Reading { part: Part::Item, is_outside: true, ..Reading::of(Input::Outside) };
            }
            Err(Unreadable { key, reason, .. }) => Input::Unreadable { key, reason },
        };
        Reading { part: Part::Item, ..Reading::of(input) }
    }

    fn event(&self, frame: &WatchFrame<'_>, codec: Codec, trust: Trust<'_>) -> Reading {
        let kind = match frame.kind {
            EventType::Added => EventKind::Added,
            EventType::Modified => EventKind::Modified,
            EventType::Deleted => EventKind::Deleted,
            EventType::Bookmark => {
                return Reading::bookmark(match codec {
                    Codec::Json => scan_bookmark(frame.object),
                    Codec::Protobuf => scan_protobuf_bookmark(frame.object),
                });
            }
            EventType::Error => return Reading::error(frame.object),
        };
        let reading = match codec {
            Codec::Json => self.object_event(kind, Wire { codec, bytes: frame.object }, trust),
            Codec::Protobuf => match informer_protobuf::open(frame.object) {
                Ok(envelope) if self.expects(envelope.api_version, envelope.kind) => {
                    self.object_event(kind, Wire { codec, bytes: envelope.raw }, trust)
                }
                Ok(envelope) => {
                    let key = scan_protobuf(envelope.raw).ok().map(ScannedMessage::into_key);
                    Reading::unreadable_event(kind, Unreadable::of_other_kind(key, self.other_kind()))
                }
                Err(error) => Reading::of(lost(Some(frame.kind), None, &error.to_string())),
            },
        };
        Reading { part: Part::Event(frame.kind), ..reading }
    }

    /// Reads an event. A deletion counts even at the version that the cache has, because some servers send it with that
    /// version.
    fn object_event(&self, kind: EventKind, object: Wire<'_>, trust: Trust<'_>) -> Reading {
        let trust = if kind == EventKind::Deleted { Trust::Nothing } else { trust };
        match self.read(object, trust, Arrival::Hot(&self.shelf)) {
            Ok(Read::Unchanged(key)) => Reading::of(Input::Unchanged(key)),
            Ok(Read::Kept(object)) => Reading::of(Input::Event(kind, Arc::new(object))),
            // It may have been in the share before. If so, it is gone from the cache now.
            Ok(Read::Outside(key, version)) => {
                Reading { is_outside: true, ..Reading::of(Input::Gone(kind, key, version)) }
            }
            Err(unreadable) => Reading::unreadable_event(kind, unreadable),
        }
    }

    fn read(&self, object: Wire<'_>, trust: Trust<'_>, keep: Arrival<'_>) -> Result<Read, Unreadable> {
        let hash = self.hash(object);
        let is_known = |key: &str, version: &ResourceVersion| match trust {
            Trust::Version(reached) => reached.is_at_least(version) && self.cache.is_unchanged(key, version),
            Trust::Content => self.cache.is_unchanged_content(key, version, hash),
            Trust::Nothing => false,
        };
        let read = match object.codec {
            Codec::Json => self.read_json(object.bytes, keep, is_known),
            Codec::Protobuf => self.read_protobuf(object.bytes, keep, is_known),
        };
        let object = match read? {
            Read::Kept(object) => object.with_content(ContentRecord::settled(hash)),
            other @ (Read::Unchanged(_) | Read::Outside(..)) => return Ok(other),
        };
        let former = self.cache.get(object.key());
        let mut recent = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        let object = object.sharing_labels(former.as_deref(), &mut recent);
        Ok(Read::Kept(if self.skips_managed_fields { object.skipping_managed_fields() } else { object }))
    }

    /// The hash of the bytes as received, before any transform. The object of an event begins with its type and a list item
    /// does not, so the hash leaves that out.
    fn hash(&self, object: Wire<'_>) -> ContentHash {
        let Wire { codec, bytes } = object;
        match codec {
            Codec::Json => {
                let behind = bytes.strip_prefix(self.type_meta.as_bytes()).or_else(|| bytes.get(1..));
                self.hasher.json(behind.unwrap_or_default())
            }
            Codec::Protobuf => self.hasher.protobuf(bytes),
        }
    }

    fn read_json(
        &self,
        json: &[u8],
        keep: Arrival<'_>,
        is_known: impl FnOnce(&str, &ResourceVersion) -> bool,
    ) -> Result<Read, Unreadable> {
        let scanned = scan_object(json)?;
        let key = scanned.key()?;
        let version = scanned.resource_version();
        if is_known(key.as_str(), &version) {
            return Ok(Read::Unchanged(key));
        }
        if self.is_outside(&Hashed::json(&scanned, &key, json))? {
            return Ok(Read::Outside(key, version));
        }
        let Expected { api_version, kind, or_kind } = &self.expected;
        let unreadable = |error: ScanError| Unreadable { version: Some(version.clone()), ..error.into() };
        let own = scanned.type_meta().map_err(unreadable)?.kind;
        if own.as_deref().is_some_and(|own| own != kind && Some(own) != or_kind.as_deref()) {
            return Err(Unreadable::of_other_kind(Some(key), self.other_kind()));
        }
        let object = scanned.into_object_in(json, api_version, kind, keep);
        Ok(Read::Kept(object.map_err(unreadable)?))
    }

    fn read_protobuf(
        &self,
        message: &[u8],
        keep: Arrival<'_>,
        is_known: impl FnOnce(&str, &ResourceVersion) -> bool,
    ) -> Result<Read, Unreadable> {
        let Some(kind) = self.protobuf else {
            return Err(Unreadable::of_other_kind(None, self.other_kind()));
        };
        let scanned = scan_protobuf(message)?;
        let version = scanned.resource_version().clone();
        if is_known(scanned.key().as_str(), &version) {
            return Ok(Read::Unchanged(scanned.into_key()));
        }
        if self.is_outside(&Hashed::protobuf(&scanned))? {
            return Ok(Read::Outside(scanned.into_key(), version));
        }
        let unreadable = |error: ScanError| Unreadable { version: Some(version.clone()), ..error.into() };
        let object = scanned.into_object_in(kind, message, keep);
        Ok(Read::Kept(object.map_err(unreadable)?))
    }

    fn expects(&self, api_version: &str, kind: &str) -> bool {
        api_version == self.expected.api_version && kind == self.expected.kind
    }

    fn other_kind(&self) -> String {
        format!("it is of another kind than {}", self.expected.kind)
    }
}

impl Reading {
    fn of(input: Input) -> Self {
        Self { part: Part::Other, input, unreadable: None, is_outside: false }
    }

    /// The input for an event whose object is undecodable. A new state is quarantined until the next good version. A deletion
    /// needs the object's key and version; without them it is unknown what changed, so a list has to find out (contract W17).
    fn unreadable_event(kind: EventKind, unreadable: Unreadable) -> Self {
        let Unreadable { key, reason, version, is_other_kind } = unreadable.clone();
        match (kind, key, version) {
            (EventKind::Deleted, Some(key), Some(version)) => {
                Self { unreadable: Some(unreadable), ..Self::of(Input::Gone(kind, key, version)) }
            }
            (_, Some(key), _) if kind != EventKind::Deleted || is_other_kind => {
                Self::of(Input::Unreadable { key: Some(key), reason })
            }
            (_, key, _) => Self::of(lost(Some(kind.into()), key.as_ref(), &reason)),
        }
    }

    fn bookmark(bookmark: Result<Bookmark, ScanError>) -> Self {
        let input = match bookmark {
            Ok(bookmark) => Input::Bookmark(bookmark),
            // A bookmark concerns no object, so the cache misses no object without it.
            Err(error) => Input::Unreadable { key: None, reason: error.to_string() },
        };
        Self { part: Part::Event(EventType::Bookmark), ..Self::of(input) }
    }

    /// The Status in an error event, in either encoding.
    fn error(status: &[u8]) -> Self {
        let input = Input::ErrorEvent(ApiStatus::from_body(500, status));
        Self { part: Part::Event(EventType::Error), ..Self::of(input) }
    }
}

impl Unreadable {
    fn of_other_kind(key: Option<ObjectKey>, reason: String) -> Self {
        Self { key, reason, version: None, is_other_kind: true }
    }
}

impl From<ScanError> for Unreadable {
    fn from(error: ScanError) -> Self {
        Self { key: error.key().cloned(), reason: error.to_string(), version: None, is_other_kind: false }
    }
}

impl From<EventKind> for EventType {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Added => Self::Added,
            EventKind::Modified => Self::Modified,
            EventKind::Deleted => Self::Deleted,
        }
    }
}

/// An event whose change is lost: only a list can find out what it was (contract W17).
fn lost(event: Option<EventType>, key: Option<&ObjectKey>, reason: &str) -> Input {
    let event = event.map_or("an event".to_owned(), |event| format!("the {} event", event.name()));
    let of = key.map(|key| format!(" of {key}")).unwrap_or_default();
    Input::Undecodable(format!("{event}{of} is lost: {reason}"))
}

impl fmt::Debug for ResponseReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResponseReader({} {})", self.expected.api_version, self.expected.kind)
    }
}
