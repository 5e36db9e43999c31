//! Cuts a watch in protobuf into its events as it arrives.

use informer_protobuf::wire::Fields;

use super::super::cursor::Fault;
use super::super::error::WireErrorKind;
use super::super::window::Window;
use super::super::{EventType, Limits, ScanError, WatchFrame, WireError};
use super::{MAGIC, field_of_part, key_of_part, text};
use crate::ObjectKey;

/// Takes the body of a watch response in protobuf, in chunks of any size, and returns its events one by one. Their objects
/// are in envelopes.
///
/// Like [`WatchDecoder`](super::super::WatchDecoder) for JSON, it holds no more than the chunk and one incomplete event.
#[derive(Debug)]
pub struct ProtobufWatchDecoder {
    window: Window,
    limits: Limits,
    failed: Option<WireError>,
    skips_long_events: bool,
    /// The number of bytes of an event that is too long that have not arrived yet.
    skipping: usize,
}

/// The number of bytes that hold a frame's length.
const LENGTH: usize = 4;

impl ProtobufWatchDecoder {
    /// A decoder for one watch response.
    pub fn new(limits: Limits) -> Self {
        Self { window: Window::default(), limits, failed: None, skips_long_events: false, skipping: 0 }
    }

    /// As [`WatchDecoder::skipping_long_events`](super::super::WatchDecoder::skipping_long_events).
    #[must_use]
    pub fn skipping_long_events(mut self) -> Self {
        self.skips_long_events = true;
        self
    }

    /// Takes the next chunk of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        self.window.push(chunk);
    }

    /// The next event, or `None` if another chunk is needed. The inner error is that of an undecodable event: the next call
    /// continues after it.
    ///
    /// # Errors
    ///
    /// When an event exceeds the limit and is not skipped. Each further call returns the same error.
    #[expect(clippy::should_implement_trait, reason = "an Iterator cannot lend its items")]
    pub fn next(&mut self) -> Result<Option<Result<WatchFrame<'_>, ScanError>>, WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.skipping -= self.window.take(self.skipping).len();
        let Some(length) = self.next_length().filter(|_| self.skipping == 0) else {
            self.window.relax();
            return Ok(None);
        };
        let limit = self.limits.item_bytes;
        if length > limit {
            let Some(part) = self.window.unread().get(LENGTH..LENGTH + limit) else { return Ok(None) };
            let new = if self.skips_long_events { new_state(part) } else { None };
            let Some((kind, key)) = new else {
                let cause = WireErrorKind::TooLong { limit, at: self.window.at() };
                return Err(self.failed.insert(cause.into()).clone());
            };
            self.window.take(LENGTH);
            self.skipping = length;
            let fault = Fault { what: "the event is longer than the limit", at: limit };
            return Ok(Some(Err(ScanError::new(fault, Some(key)).of_event(Some(kind)))));
        }
        if self.window.unread().len() < LENGTH + length {
            self.window.relax();
            return Ok(None);
        }
        self.window.take(LENGTH);
        let frame = self.window.take(length);
        Ok(Some(read_event(self.window.get(frame))))
    }

    fn next_length(&self) -> Option<usize> {
        let length = self.window.unread().first_chunk::<LENGTH>()?;
        usize::try_from(u32::from_be_bytes(*length)).ok()
    }

    /// The bytes that the decoder holds.
    pub fn held_bytes(&self) -> usize {
        self.window.capacity()
    }

    /// Ends the body, after the last event was taken.
    ///
    /// # Errors
    ///
    /// As [`ProtobufWatchDecoder::next`], and when the body ends within an event, as it does when the connection breaks.
    pub fn finish(&mut self) -> Result<(), WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let is_complete = self.skipping == 0 && self.window.unread().is_empty();
        if is_complete { Ok(()) } else { Err(WireErrorKind::Truncated { at: self.window.received() }.into()) }
    }
}

fn read_event(event: &[u8]) -> Result<WatchFrame<'_>, ScanError> {
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
                let raw = match field.value {
                    informer_protobuf::wire::Value::Bytes(extension) => field_of_part(extension, 1),
                    _ => None,
                };
                object = raw;
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
fn new_state(part: &[u8]) -> Option<(EventType, ObjectKey)> {
    let kind = EventType::named(field_of_part(part, 1)?).filter(|kind| kind.is_new_state())?;
    Some((kind, key_of_part_of_event(part)?))
}

fn key_of_part_of_event(part: &[u8]) -> Option<ObjectKey> {
    let object = field_of_part(field_of_part(part, 2)?, 1)?;
    key_of_part(field_of_part(object.strip_prefix(MAGIC)?, 2)?)
}
