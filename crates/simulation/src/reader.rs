//! Turns the bytes of objects into inputs of the reflector, as `crates/informer/src/shared/reader.rs` does.

use std::sync::Arc;

use informer_core::reflector::{EventKind, Input};
use informer_core::wire::{
    ApiStatus, EventType, Limits, ListDecoder, ListPart, ScanError, WatchDecoder, WatchFrame, scan_bookmark,
    scan_object,
};
use informer_core::{Cache, Object, ObjectKey};

/// What the answer is expected to be.
pub(crate) enum Decoder {
    List(Box<ListDecoder>),
    Watch(Box<WatchDecoder>),
}

enum Read {
    Unchanged(ObjectKey),
    Object(Object),
}

struct Unreadable {
    key: Option<ObjectKey>,
    reason: String,
    is_other_kind: bool,
}

impl From<ScanError> for Unreadable {
    fn from(error: ScanError) -> Self {
        Self { key: error.key().cloned(), reason: error.to_string(), is_other_kind: false }
    }
}

impl Decoder {
    pub(crate) fn list() -> Self {
        Self::List(Box::new(ListDecoder::new(Limits::default())))
    }

    pub(crate) fn watch() -> Self {
        Self::Watch(Box::new(WatchDecoder::new(Limits::default())))
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::List(list) => list.push(bytes),
            Self::Watch(watch) => watch.push(bytes),
        }
    }

    /// The next input; `trust`: what the cache has in the same version is as the cache has it.
    pub(crate) fn next(&mut self, cache: &Cache, trust: bool) -> Option<Input> {
        match self {
            Self::List(list) => match list.next() {
                Ok(Some(ListPart::Meta(meta))) => Some(Input::ListStart(meta.clone())),
                Ok(Some(ListPart::Item(json))) => Some(object(cache, json, trust, Input::Item)),
                Ok(None) => None,
                Err(error) => Some(Input::Undecodable(error.to_string())),
            },
            Self::Watch(watch) => match watch.next() {
                Ok(Some(Ok(event))) => Some(frame(cache, &event, trust)),
                Ok(Some(Err(error))) => {
                    Some(Input::Unreadable { key: error.key().cloned(), reason: error.to_string() })
                }
                Ok(None) => None,
                Err(error) => Some(Input::Undecodable(error.to_string())),
            },
        }
    }

    /// The inputs of the end of the response.
    pub(crate) fn finish(&mut self, cache: &Cache, trust: bool) -> (Option<Input>, Input) {
        match self {
            Self::List(list) => match list.finish() {
                Ok(meta) => (None, Input::ListEnd(meta)),
                Err(error) => (None, Input::Undecodable(error.to_string())),
            },
            Self::Watch(watch) => match watch.finish() {
                Ok(last) => (last.map(|last| frame(cache, &last, trust)), Input::End),
                Err(error) => (None, Input::Broken(error.to_string())),
            },
        }
    }
}

fn frame(cache: &Cache, frame: &WatchFrame<'_>, trust: bool) -> Input {
    let kind = match frame.kind {
        EventType::Added => EventKind::Added,
        EventType::Modified => EventKind::Modified,
        EventType::Deleted => return deleted(cache, frame.object),
        EventType::Bookmark => {
            return match scan_bookmark(frame.object) {
                Ok(bookmark) => Input::Bookmark(bookmark),
                Err(error) => Input::Unreadable { key: None, reason: error.to_string() },
            };
        }
        EventType::Error => return Input::ErrorEvent(ApiStatus::from_body(500, frame.object)),
    };
    object(cache, frame.object, trust, |object| Input::Event(kind, object))
}

fn object(cache: &Cache, json: &[u8], trust: bool, input: impl FnOnce(Arc<Object>) -> Input) -> Input {
    match read(cache, json, trust) {
        Ok(Read::Unchanged(key)) => Input::Unchanged(key),
        Ok(Read::Object(object)) => input(Arc::new(object)),
        Err(Unreadable { key, reason, .. }) => Input::Unreadable { key, reason },
    }
}

/// A deletion counts whatever its last state looks like.
fn deleted(cache: &Cache, json: &[u8]) -> Input {
    match read(cache, json, false) {
        Ok(Read::Unchanged(key)) => Input::Unchanged(key),
        Ok(Read::Object(object)) => Input::Event(EventKind::Deleted, Arc::new(object)),
        Err(Unreadable { key, reason, is_other_kind }) => {
            let Some(gone) = key.clone().filter(|_| !is_other_kind) else {
                return Input::Unreadable { key, reason };
            };
            match cache.get(&gone) {
                Some(known) => Input::Event(EventKind::Deleted, known),
                // No version of it was ever good.
                None => Input::Unchanged(gone),
            }
        }
    }
}

fn read(cache: &Cache, json: &[u8], trust: bool) -> Result<Read, Unreadable> {
    let scanned = scan_object(json)?;
    let key = scanned.key()?;
    if trust && cache.is_unchanged(key.as_str(), &scanned.resource_version()) {
        return Ok(Read::Unchanged(key));
    }
    let own = scanned.type_meta()?.kind;
    if own.as_deref().is_some_and(|own| own != "Pod") {
        return Err(Unreadable {
            key: Some(key),
            reason: "it is of another kind".into(),
            is_other_kind: true,
        });
    }
    Ok(Read::Object(scanned.into_object_of(json, "v1", "Pod")?))
}
