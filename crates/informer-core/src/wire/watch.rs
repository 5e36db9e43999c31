//! Cuts a watch response into its events as it arrives.

use std::fmt;

use super::cursor::{Cursor, Fault};
use super::error::WireErrorKind;
use super::event_type::EventType;
use super::window::Window;
use super::{Limits, ScanError, WireError, key_of_part, scan_object};
use crate::ObjectKey;

/// One event of a watch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WatchFrame<'a> {
    /// The type of the event.
    pub kind: EventType,
    /// The object's JSON.
    pub object: &'a [u8],
}

/// Takes the body of a watch response, in chunks of any size, and returns its events one by one.
///
/// Events are lines, each a JSON object. The decoder holds no more than the chunk and one incomplete line.
///
/// ```
/// use informer_core::internals::{EventType, WatchDecoder};
/// use informer_core::wire::Limits;
///
/// let mut watch = WatchDecoder::new(Limits::default());
/// watch.push(br#"{"type":"ADDED","object":{"metadata":{"#);
/// assert!(watch.next()?.is_none());
///
/// watch.push(b"\"name\":\"cart\"}}}\n{}\n");
/// let event = watch.next()?.unwrap()?;
/// assert_eq!((event.kind, event.object), (EventType::Added, br#"{"metadata":{"name":"cart"}}"#.as_slice()));
/// // A bad event does not end the stream.
/// assert!(watch.next()?.unwrap().is_err());
/// assert!(watch.finish()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WatchDecoder {
    window: Window,
    limits: Limits,
    failed: Option<WireError>,
    skips_long_events: bool,
    /// Whether an event that is too long is arriving.
    skipping: bool,
}

impl WatchDecoder {
    /// A decoder for one watch response.
    pub fn new(limits: Limits) -> Self {
        Self { window: Window::default(), limits, failed: None, skips_long_events: false, skipping: false }
    }

    /// Makes the decoder treat an event that exceeds the limit as undecodable, without holding it. The part within the limit
    /// must have a new state's type and key. A deletion is not skipped: it needs more than its key.
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
        if self.skipping {
            if !self.window.skip_line() {
                self.window.relax();
                return Ok(None);
            }
            self.skipping = false;
        }
        loop {
            match self.window.next_line(self.limits.item_bytes) {
                Ok(Some(line)) if is_blank(self.window.get(line.clone())) => {}
                Ok(Some(line)) => return Ok(Some(read_event(self.window.get(line)))),
                Ok(None) => {
                    self.window.relax();
                    return Ok(None);
                }
                Err(cause) => match self.skip() {
                    Some(skipped) => return Ok(Some(Err(skipped))),
                    None => return Err(self.failed.insert(cause.into()).clone()),
                },
            }
        }
    }

    fn skip(&mut self) -> Option<ScanError> {
        if !self.skips_long_events {
            return None;
        }
        let (kind, key) = new_state(self.window.allowed_part(self.limits.item_bytes))?;
        let at = self.limits.item_bytes;
        self.skipping = true;
        let fault = Fault { what: "the event is longer than the limit", at };
        Some(ScanError::new(fault, Some(key)).of_event(Some(kind)))
    }

    /// Bytes that the decoder holds.
    pub fn held_bytes(&self) -> usize {
        self.window.capacity()
    }

    /// At the end of the body, after the last event was taken: an event whose line was not ended.
    ///
    /// # Errors
    ///
    /// As [`WatchDecoder::next`], and when the body ends within an event, as it does when the connection breaks.
    pub fn finish(&mut self) -> Result<Option<WatchFrame<'_>>, WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let truncated = WireErrorKind::Truncated { at: self.window.received() };
        if self.skipping {
            return Err(truncated.into());
        }
        let rest = self.window.take_rest();
        match self.window.get(rest) {
            blank if is_blank(blank) => Ok(None),
            event => read_event(event).map(Some).map_err(|_| truncated.into()),
        }
    }
}

impl fmt::Debug for WatchFrame<'_> {
    /// Leaves out the object, which may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({} bytes)", self.kind, self.object.len())
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn read_event(line: &[u8]) -> Result<WatchFrame<'_>, ScanError> {
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
fn new_state(part: &[u8]) -> Option<(EventType, ObjectKey)> {
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

#[cfg(test)]
mod tests;
