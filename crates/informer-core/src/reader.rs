//! Turns answers of a server into inputs of the reflector: what an object's bytes are, whether the cache has that version
//! already, and in which form a new one is kept.

mod answer;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use informer_protobuf::Kind;

use crate::labels::RecentLabels;
use crate::reflector::{EventKind, Input};
use crate::wire::{
    ApiStatus, Bookmark, EventType, ScanError, ScannedMessage, WatchFrame, scan_bookmark, scan_object,
    scan_protobuf, scan_protobuf_bookmark,
};
use crate::{Cache, Object, ObjectKey, PlainStorage, Storage};

pub use answer::{Answer, To};

/// Reads the answers about one resource.
pub struct Reader {
    cache: Cache,
    storage: Arc<dyn Storage>,
    expected: Expected,
    /// What the expected objects are in protobuf, if there is such a message.
    protobuf: Option<Kind>,
    transform: Option<Transform>,
    skips_managed_fields: bool,
    labels: Mutex<RecentLabels>,
}

/// The bytes of one object, as an answer has them.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Json(&'a [u8]),
    /// A message without an envelope; its kind was looked at already.
    Protobuf(&'a [u8]),
}

/// What the objects of an answer are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Such as `apps/v1`; given to those that do not say theirs.
    pub api_version: String,
    /// Such as `Deployment`; given to those that do not say theirs.
    pub kind: String,
    /// Another kind that they may be of.
    pub or_kind: Option<String>,
}

/// Changes an object before it is kept, or leaves it out (`Ok(None)`). The error says why it is of no use for this object.
pub type Transform = Arc<dyn Fn(&Object) -> Result<Option<Object>, String> + Send + Sync>;

/// What one part of an answer came to.
#[derive(Debug)]
pub struct Reading {
    /// What of the answer it was.
    pub part: Part,
    /// For the reflector.
    pub input: Input,
    /// A deletion counts whatever its last state looks like; this one's cannot be read.
    pub unreadable: Option<Unreadable>,
}

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// An item of a list.
    Item,
    /// An event of a watch.
    Event(EventType),
    /// Something that is neither, or cannot be told.
    Other,
}

/// An object that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The object, where at least its namespace and name could be read.
    pub key: Option<ObjectKey>,
    /// Why not. Never holds any of the object's content.
    pub reason: String,
    /// It does not belong here at all.
    is_other_kind: bool,
}

/// What the bytes of an object turned out to be.
enum Read {
    Unchanged(ObjectKey),
    Kept(Object),
    Dropped(Object),
}

impl Reader {
    /// A reader for the cache of one resource, which keeps new versions in `storage`.
    pub fn new(
        cache: Cache,
        storage: Arc<dyn Storage>,
        expected: Expected,
        transform: Option<Transform>,
    ) -> Self {
        let protobuf = Kind::of(&expected.api_version, &expected.kind);
        Self {
            cache,
            storage,
            expected,
            protobuf,
            transform,
            skips_managed_fields: false,
            labels: Mutex::default(),
        }
    }

    /// Lets objects be decoded without their managed fields ([`Object::skipping_managed_fields`]).
    #[must_use]
    pub fn skipping_managed_fields(self) -> Self {
        Self { skips_managed_fields: true, ..self }
    }

    /// Whether what is expected can be read in protobuf too.
    pub fn reads_protobuf(&self) -> bool {
        self.protobuf.is_some()
    }

    /// A list's item. `trust_versions`: one that the cache has in this version is as the cache has it.
    fn item(&self, object: Wire<'_>, trust_versions: bool) -> Reading {
        Reading { part: Part::Item, ..self.object(object, trust_versions, Input::Item) }
    }

    fn json_event(&self, frame: &WatchFrame<'_>, trust_versions: bool) -> Reading {
        let kind = match frame.kind {
            EventType::Added => EventKind::Added,
            EventType::Modified => EventKind::Modified,
            EventType::Deleted => EventKind::Deleted,
            EventType::Bookmark => return Reading::bookmark(scan_bookmark(frame.object)),
            EventType::Error => return Reading::error(frame.object),
        };
        self.event(kind, Wire::Json(frame.object), trust_versions)
    }

    fn protobuf_event(&self, frame: &WatchFrame<'_>, trust_versions: bool) -> Reading {
        let kind = match frame.kind {
            EventType::Added => EventKind::Added,
            EventType::Modified => EventKind::Modified,
            EventType::Deleted => EventKind::Deleted,
            EventType::Bookmark => return Reading::bookmark(scan_protobuf_bookmark(frame.object)),
            EventType::Error => return Reading::error(frame.object),
        };
        let part = Part::Event(frame.kind);
        match informer_protobuf::open(frame.object) {
            Ok(envelope) if self.expects(envelope.api_version, envelope.kind) => {
                self.event(kind, Wire::Protobuf(envelope.raw), trust_versions)
            }
            Ok(envelope) => {
                let key = scan_protobuf(envelope.raw).ok().map(ScannedMessage::into_key);
                Reading { part, ..Reading::of(Input::Unreadable { key, reason: self.other_kind() }) }
            }
            Err(error) => {
                Reading { part, ..Reading::of(Input::Unreadable { key: None, reason: error.to_string() }) }
            }
        }
    }

    fn event(&self, kind: EventKind, object: Wire<'_>, trust_versions: bool) -> Reading {
        let (part, reading) = match kind {
            EventKind::Deleted => (EventType::Deleted, self.deleted(object)),
            EventKind::Added | EventKind::Modified => {
                let part = if kind == EventKind::Added { EventType::Added } else { EventType::Modified };
                (part, self.object(object, trust_versions, |object| Input::Event(kind, object)))
            }
        };
        Reading { part: Part::Event(part), ..reading }
    }

    fn object(
        &self,
        object: Wire<'_>,
        trust_versions: bool,
        input: impl FnOnce(Arc<Object>) -> Input,
    ) -> Reading {
        Reading::of(match self.read(object, trust_versions) {
            Ok(Read::Unchanged(key)) => Input::Unchanged(key),
            Ok(Read::Kept(object)) => input(Arc::new(object)),
            // As if it had left the selector.
            Ok(Read::Dropped(object)) => Input::Event(EventKind::Deleted, self.last_state(object)),
            Err(Unreadable { key, reason, .. }) => Input::Unreadable { key, reason },
        })
    }

    /// A deletion counts whatever its last state looks like, also at the version that the cache has: some servers send
    /// that one.
    fn deleted(&self, object: Wire<'_>) -> Reading {
        match self.read(object, false) {
            Ok(Read::Unchanged(key)) => Reading::of(Input::Unchanged(key)),
            Ok(Read::Kept(object)) => Reading::of(Input::Event(EventKind::Deleted, Arc::new(object))),
            Ok(Read::Dropped(object)) => {
                Reading::of(Input::Event(EventKind::Deleted, self.last_state(object)))
            }
            Err(unreadable) => {
                let Some(gone) = unreadable.key.clone().filter(|_| !unreadable.is_other_kind) else {
                    let Unreadable { key, reason, .. } = unreadable;
                    return Reading::of(Input::Unreadable { key, reason });
                };
                let input = match self.cache.get(&gone) {
                    Some(known) => Input::Event(EventKind::Deleted, known),
                    // No version of it was ever good.
                    None => Input::Unchanged(gone),
                };
                Reading { unreadable: Some(unreadable), ..Reading::of(input) }
            }
        }
    }

    /// What is told last of an object that the transform leaves out: what is known of it, which went through the
    /// transform; the object itself did not.
    fn last_state(&self, dropped: Object) -> Arc<Object> {
        self.cache.get(dropped.key()).unwrap_or_else(|| Arc::new(dropped))
    }

    fn read(&self, object: Wire<'_>, trust_versions: bool) -> Result<Read, Unreadable> {
        let read = match object {
            Wire::Json(json) => self.read_json(json, trust_versions),
            Wire::Protobuf(message) => self.read_protobuf(message, trust_versions),
        };
        Ok(match read? {
            Read::Kept(object) => {
                let former = self.cache.get(object.key());
                let mut recent = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
                let object = object.sharing_labels(former.as_deref(), &mut recent);
                Read::Kept(if self.skips_managed_fields { object.skipping_managed_fields() } else { object })
            }
            read => read,
        })
    }

    fn read_json(&self, json: &[u8], trust_versions: bool) -> Result<Read, Unreadable> {
        let scanned = scan_object(json)?;
        let key = scanned.key()?;
        if trust_versions && self.cache.is_unchanged(key.as_str(), &scanned.resource_version()) {
            return Ok(Read::Unchanged(key));
        }
        let Expected { api_version, kind, or_kind } = &self.expected;
        let own = scanned.type_meta()?.kind;
        if own.as_deref().is_some_and(|own| own != kind && Some(own) != or_kind.as_deref()) {
            return Err(Unreadable { key: Some(key), reason: self.other_kind(), is_other_kind: true });
        }
        match &self.transform {
            None => Ok(Read::Kept(scanned.into_object_kept(json, api_version, kind, &*self.storage)?)),
            Some(transform) => self.transform(transform, scanned.into_object_of(json, api_version, kind)?),
        }
    }

    fn read_protobuf(&self, message: &[u8], trust_versions: bool) -> Result<Read, Unreadable> {
        let Some(kind) = self.protobuf else {
            return Err(Unreadable { key: None, reason: self.other_kind(), is_other_kind: true });
        };
        let scanned = scan_protobuf(message)?;
        if trust_versions && self.cache.is_unchanged(scanned.key().as_str(), scanned.resource_version()) {
            return Ok(Read::Unchanged(scanned.into_key()));
        }
        match &self.transform {
            None => Ok(Read::Kept(scanned.into_object(kind, message, &*self.storage)?)),
            Some(transform) => self.transform(transform, scanned.into_object(kind, message, &PlainStorage)?),
        }
    }

    fn transform(&self, transform: &Transform, object: Object) -> Result<Read, Unreadable> {
        let key = object.key().clone();
        let useless = |reason| Unreadable { key: Some(key.clone()), reason, is_other_kind: false };
        match transform(&object).map_err(useless)? {
            None => Ok(Read::Dropped(object)),
            Some(transformed) => {
                let kept = transformed.kept_in(&*self.storage);
                Ok(Read::Kept(kept.map_err(|error| useless(error.to_string()))?))
            }
        }
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
        Self { part: Part::Other, input, unreadable: None }
    }

    fn bookmark(bookmark: Result<Bookmark, ScanError>) -> Self {
        let input = match bookmark {
            Ok(bookmark) => Input::Bookmark(bookmark),
            Err(error) => Input::Unreadable { key: None, reason: error.to_string() },
        };
        Self { part: Part::Event(EventType::Bookmark), ..Self::of(input) }
    }

    /// An event's Status, in either encoding.
    fn error(status: &[u8]) -> Self {
        let input = Input::ErrorEvent(ApiStatus::from_body(500, status));
        Self { part: Part::Event(EventType::Error), ..Self::of(input) }
    }
}

impl From<ScanError> for Unreadable {
    fn from(error: ScanError) -> Self {
        Self { key: error.key().cloned(), reason: error.to_string(), is_other_kind: false }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({} {})", self.expected.api_version, self.expected.kind)
    }
}
