//! The events of a watch in protobuf: frames of a length and a `WatchEvent`, whose object is in an envelope.

use std::ops::Range;

use informer_protobuf::wire::{Fields, Value};

use super::super::ScanError;
use super::super::cursor::Fault;
use super::super::error::WireErrorKind;
use super::super::event_type::EventType;
use super::super::protobuf::{MAGIC, field_of_part, key_of_part, text};
use super::super::window::Window;
use super::WatchFrame;
use crate::ObjectKey;

/// The number of bytes that hold a frame's length.
const LENGTH: usize = 4;

pub(super) fn next_frame(window: &mut Window, limit: usize) -> Result<Option<Range<usize>>, WireErrorKind> {
    let Some(length) = window.unread().first_chunk::<LENGTH>() else { return Ok(None) };
    window.next_bytes(LENGTH, u32::from_be_bytes(*length).into(), limit)
}

pub(super) fn read_event(event: &[u8]) -> Result<WatchFrame<'_>, ScanError> {
    let (mut kind, mut object) = (None, None);
    let mut fields = Fields::new(event);
    while let Some(field) = fields.next() {
        let Ok(field) = field else {
            // The event is lost, but its object's key may still be found.
            let fault = Fault { what: "the event is cut short", at: fields.offset() };
            return Err(ScanError::new(fault, key_of_part_of_event(event)).of_event(kind));
        };
        match field.number {
            1 => kind = text(field.value).and_then(|name| EventType::named(name.as_bytes())),
            // A `RawExtension`, which has one field.
            2 => {
                object = match field.value {
                    Value::Bytes(extension) => field_of_part(extension, 1),
                    _ => None,
                };
            }
            _ => {}
        }
    }
    let kind = kind.ok_or_else(|| no_event("the event is of an unknown type", 0))?;
    let object =
        object.ok_or_else(|| no_event("the event has no object", event.len()).of_event(Some(kind)))?;
    Ok(WatchFrame { kind, object })
}

fn no_event(what: &'static str, at: usize) -> ScanError {
    ScanError::new(Fault { what, at }, None)
}

/// The type and the key of an event with a new state, from the beginning of the event.
pub(super) fn new_state(part: &[u8]) -> Option<(EventType, ObjectKey)> {
    let kind = EventType::named(field_of_part(part, 1)?).filter(|kind| kind.is_new_state())?;
    Some((kind, key_of_part_of_event(part)?))
}

fn key_of_part_of_event(part: &[u8]) -> Option<ObjectKey> {
    let object = field_of_part(field_of_part(part, 2)?, 1)?;
    key_of_part(field_of_part(object.strip_prefix(MAGIC)?, 2)?)
}
