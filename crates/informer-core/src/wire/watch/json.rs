//! The events of a watch in JSON: lines.

use std::ops::Range;

use super::super::cursor::{Cursor, Fault};
use super::super::error::WireErrorKind;
use super::super::event_type::EventType;
use super::super::scan::key_of_part;
use super::super::window::Window;
use super::super::{ScanError, scan_object};
use super::WatchFrame;
use crate::ObjectKey;

/// The next line that is not blank.
pub(super) fn next_line(window: &mut Window, limit: usize) -> Result<Option<Range<usize>>, WireErrorKind> {
    loop {
        match window.next_line(limit)? {
            Some(line) if is_blank(window.get(line.clone())) => {}
            line => return Ok(line),
        }
    }
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

pub(super) fn read_event(line: &[u8]) -> Result<WatchFrame<'_>, ScanError> {
    let mut seen = Seen::default();
    frame(line, &mut seen).map_err(|fault| {
        // The event is lost, but its object's key may still be found.
        let scanned = seen.object.map(scan_object);
        let key = scanned.and_then(|scanned| {
            scanned.map_or_else(|error| error.key().cloned(), |object| object.key().ok())
        });
        ScanError::new(fault, key).of_event(seen.kind)
    })
}

/// The parts of an event that were found before the fault in it.
#[derive(Default)]
struct Seen<'a> {
    kind: Option<EventType>,
    /// From the object's first byte to the end of the line.
    object: Option<&'a [u8]>,
}

/// The type and the key of an event with a new state, from the beginning of the event.
pub(super) fn new_state(part: &[u8]) -> Option<(EventType, ObjectKey)> {
    let mut new = None;
    let mut cursor = Cursor::new(part);
    let mut members = cursor.enter_object().ok()?;
    while let Some(member) = cursor.next_member(&mut members).ok()? {
        match &*member.bytes() {
            b"type" => {
                let kind = EventType::named(&cursor.text().ok()?.bytes());
                new = kind.filter(|kind| kind.is_new_state());
            }
            b"object" => return Some((new?, key_of_part(cursor.rest())?)),
            _ => drop(cursor.skip_value().ok()?),
        }
    }
    None
}

/// Reads an event, and notes its parts as soon as they are known.
fn frame<'a>(line: &'a [u8], seen: &mut Seen<'a>) -> Result<WatchFrame<'a>, Fault> {
    let (mut kind, mut whole) = (None, None);
    let mut cursor = Cursor::new(line);
    let mut members = cursor.enter_object()?;
    while let Some(member) = cursor.next_member(&mut members)? {
        match &*member.bytes() {
            b"type" if kind.is_none() => {
                let name = cursor.text()?;
                seen.kind = EventType::named(&name.bytes());
                kind = Some(name);
            }
            b"object" if whole.is_none() => {
                if cursor.peek() != Some(b'{') {
                    return Err(cursor.fault("the event's object is not an object"));
                }
                seen.object = Some(cursor.rest());
                whole = Some(cursor.skip_value()?);
            }
            _ => drop(cursor.skip_value()?),
        }
    }
    cursor.expect_end()?;
    let fault = |what| Fault { what, at: cursor.at() };
    kind.ok_or_else(|| fault("the event has no type"))?;
    let kind = seen.kind.ok_or_else(|| fault("the event is of an unknown type"))?;
    Ok(WatchFrame { kind, object: whole.ok_or_else(|| fault("the event has no object"))? })
}
