//! Encodes the events of a watch.

use std::time::SystemTime;

use serde_json::Value;

use crate::negotiate::{Encoding, Format};
use crate::protobuf::Messages;
use crate::render::Renderer;
use crate::{Change, Event, Object, Resource, Status, json};

use super::Scope;
use super::bookmark::Bookmark;

/// Writes the events of one watch.
pub(crate) struct Frames {
    writer: Writer,
    bookmark: Bookmark,
    /// Whether an event was written already: a table sends its columns once.
    begun: bool,
}

enum Writer {
    Text(Renderer),
    Messages(Messages),
}

impl Frames {
    /// `now` is for ages in tables.
    pub(crate) fn new(resource: &Resource, format: Format, bookmark: Bookmark, now: SystemTime) -> Self {
        let writer = match format.encoding {
            Encoding::Json => Writer::Text(Renderer::new(resource, format.representation, now)),
            Encoding::Protobuf(messages) => Writer::Messages(messages),
        };
        Self { writer, bookmark, begun: false }
    }

    /// Ages in tables are seen from this time on.
    pub(crate) fn now(&mut self, now: SystemTime) {
        if let Writer::Text(renderer) = &mut self.writer {
            renderer.now = now;
        }
    }

    pub(crate) fn added(&mut self, object: &Object, out: &mut Vec<u8>) {
        self.frame("ADDED", &object.body, object.revision, out);
    }

    /// Translates an event for a watch of selected objects: an object that enters the selection is ADDED, one that
    /// leaves it is DELETED.
    pub(crate) fn event(&mut self, scope: &Scope, event: &Event, out: &mut Vec<u8>) {
        let object = &event.object;
        let is = event.change != Change::Deleted && scope.has(object);
        let was = match (&event.previous, event.change) {
            (Some(previous), _) => scope.has(previous),
            (None, Change::Deleted) => scope.has(object),
            (None, Change::Added | Change::Modified) => false,
        };
        match (was, is) {
            (false, false) => {}
            (false, true) => self.frame("ADDED", &object.body, object.revision, out),
            (true, true) => self.frame("MODIFIED", &object.body, object.revision, out),
            (true, false) if event.change == Change::Deleted => {
                self.frame("DELETED", &object.body, object.revision, out);
            }
            // It is sent in its last selected state, with the version at which it left.
            (true, false) => {
                let previous = event.previous.as_ref().map_or(&object.body, |previous| &previous.body);
                self.frame("DELETED", &with_revision(previous, object.revision), object.revision, out);
            }
        }
    }

    pub(crate) fn bookmark(&mut self, revision: u64, initial_end: bool, out: &mut Vec<u8>) {
        let body = self.bookmark.body(revision, initial_end);
        self.frame("BOOKMARK", body.as_bytes(), revision, out);
    }

    pub(crate) fn error(&self, status: &Status, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(_) => {
                let status: Value = status.to_json();
                out.extend_from_slice(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n").as_bytes());
            }
            Writer::Messages(messages) => messages.error(status, out),
        }
    }

    fn frame(&mut self, kind: &str, body: &[u8], revision: u64, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(renderer) => {
                out.extend_from_slice(b"{\"type\":\"");
                out.extend_from_slice(kind.as_bytes());
                out.extend_from_slice(b"\",\"object\":");
                renderer.embedded(body, revision, !self.begun, out);
                out.extend_from_slice(b"}\n");
            }
            Writer::Messages(messages) => messages.event(kind, body, out),
        }
        self.begun = true;
    }
}

/// A body with another `metadata.resourceVersion`.
fn with_revision(body: &[u8], revision: u64) -> Vec<u8> {
    let Some(at) = json::path(body, ["metadata", "resourceVersion"]) else { return body.to_vec() };
    let mut changed = Vec::with_capacity(body.len() + 8);
    changed.extend_from_slice(&body[..at.start]);
    changed.extend_from_slice(format!("\"{revision}\"").as_bytes());
    changed.extend_from_slice(&body[at.end..]);
    changed
}
