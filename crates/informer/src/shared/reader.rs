//! Turns the bytes of objects into inputs of the reflector.

use std::sync::Arc;

use informer_core::reflector::{EventKind, Input, Report};
use informer_core::wire::{ApiStatus, EventType, ScanError, WatchFrame, scan_bookmark, scan_object};
use informer_core::{Object, ObjectKey};

use super::{Content, Core};
use crate::transform::Transform;

pub(super) struct Reader {
    pub(super) core: Arc<Core>,
    pub(super) transform: Option<Transform>,
    pub(super) content: Content,
}

impl Reader {
    /// A list's item. `trust_versions`: one that the cache has in this version is as the cache has it.
    pub(super) fn item(&self, json: &[u8], trust_versions: bool) -> Input {
        self.core.counters.list_items.add(1);
        self.object(json, trust_versions, Input::Item)
    }

    pub(super) fn frame(&self, frame: &WatchFrame<'_>, trust_versions: bool) -> Input {
        self.core.counters.event(frame.kind);
        let kind = match frame.kind {
            EventType::Added => EventKind::Added,
            EventType::Modified => EventKind::Modified,
            EventType::Deleted => return self.deleted(frame.object),
            EventType::Bookmark => {
                return match scan_bookmark(frame.object) {
                    Ok(bookmark) => Input::Bookmark(bookmark),
                    Err(error) => Input::Unreadable { key: None, reason: error.to_string() },
                };
            }
            EventType::Error => return Input::ErrorEvent(ApiStatus::from_body(500, frame.object)),
        };
        self.object(frame.object, trust_versions, |object| Input::Event(kind, object))
    }

    fn object(&self, json: &[u8], trust_versions: bool, input: impl FnOnce(Arc<Object>) -> Input) -> Input {
        match self.read(json, trust_versions) {
            Ok(Read::Unchanged(key)) => Input::Unchanged(key),
            Ok(Read::Kept(object)) => input(Arc::new(object)),
            // As if it had left the selector.
            Ok(Read::Dropped(object)) => Input::Event(EventKind::Deleted, self.last_state(object)),
            Err(Unreadable { key, reason, .. }) => Input::Unreadable { key, reason },
        }
    }

    /// A deletion counts whatever its last state looks like, also at the version that the cache has: some servers send
    /// that one.
    fn deleted(&self, json: &[u8]) -> Input {
        match self.read(json, false) {
            Ok(Read::Unchanged(key)) => Input::Unchanged(key),
            Ok(Read::Kept(object)) => Input::Event(EventKind::Deleted, Arc::new(object)),
            Ok(Read::Dropped(object)) => Input::Event(EventKind::Deleted, self.last_state(object)),
            Err(Unreadable { key, reason, is_other_kind }) => {
                let Some(gone) = key.clone().filter(|_| !is_other_kind) else {
                    return Input::Unreadable { key, reason };
                };
                self.core.counters.unreadable.add(1);
                self.core.progress.report(Report::Quarantined { key, reason });
                match self.core.cache.get(&gone) {
                    Some(known) => Input::Event(EventKind::Deleted, known),
                    // No version of it was ever good.
                    None => {
                        self.core.quarantine.release(&gone);
                        Input::Unchanged(gone)
                    }
                }
            }
        }
    }

    /// What is told last of an object that the transform leaves out: what is known of it, which went through the
    /// transform; the object itself did not.
    fn last_state(&self, dropped: Object) -> Arc<Object> {
        self.core.cache.get(dropped.key()).unwrap_or_else(|| Arc::new(dropped))
    }

    fn read(&self, json: &[u8], trust_versions: bool) -> Result<Read, Unreadable> {
        let scanned = scan_object(json)?;
        let key = scanned.key()?;
        let version = scanned.resource_version();
        if trust_versions && self.core.cache.is_unchanged(key.as_str(), &version) {
            return Ok(Read::Unchanged(key));
        }
        let resource = &self.core.resource;
        let (kind, api_version) = match self.content {
            Content::Whole => (resource.kind.as_str(), resource.api_version()),
            Content::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
        };
        let own = scanned.type_meta()?.kind;
        if own.as_deref().is_some_and(|own| own != kind && own != resource.kind) {
            let reason = format!("it is of another kind than {kind}");
            return Err(Unreadable { key: Some(key), reason, is_other_kind: true });
        }
        let object = scanned.into_object_of(json, &api_version, kind)?;
        let Some(transform) = &self.transform else { return Ok(Read::Kept(object)) };
        match transform.apply(&object) {
            Ok(Some(transformed)) => Ok(Read::Kept(transformed)),
            Ok(None) => Ok(Read::Dropped(object)),
            Err(error) => Err(Unreadable { key: Some(key), reason: error.to_string(), is_other_kind: false }),
        }
    }
}

/// What the bytes of an object turned out to be.
enum Read {
    Unchanged(ObjectKey),
    Kept(Object),
    Dropped(Object),
}

/// An object that has to be left out.
struct Unreadable {
    key: Option<ObjectKey>,
    reason: String,
    /// It does not belong here at all.
    is_other_kind: bool,
}

impl From<ScanError> for Unreadable {
    fn from(error: ScanError) -> Self {
        Self { key: error.key().cloned(), reason: error.to_string(), is_other_kind: false }
    }
}
