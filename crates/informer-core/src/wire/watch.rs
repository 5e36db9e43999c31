//! Cuts a watch answer into its events while it comes in.

use std::fmt;

use super::cursor::{Cursor, Fault};
use super::error::Cause;
use super::window::Window;
use super::{Limits, ScanError, WireError, key_of_part, scan_object};
use crate::ObjectKey;

/// What an event of a watch says about its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It came into being, or into what is watched.
    Added,
    /// It changed.
    Modified,
    /// It was deleted, or left what is watched; the object is its last state.
    Deleted,
    /// Nothing changed up to this version.
    Bookmark,
    /// The watch failed; the object is a Status.
    Error,
}

/// One event of a watch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WatchFrame<'a> {
    /// What happened.
    pub kind: EventType,
    /// The object's JSON.
    pub object: &'a [u8],
}

/// Takes the body of a watch answer in chunks of any size and gives out the events one by one.
///
/// Events are lines, each a JSON object. Holds no more than the chunk and a line that is not complete yet.
///
/// ```
/// use informer_core::wire::{EventType, Limits, WatchDecoder};
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
    /// An event that is too long is coming in.
    skipping: bool,
}

impl WatchDecoder {
    /// A decoder for one watch answer.
    pub fn new(limits: Limits) -> Self {
        Self { window: Window::default(), limits, failed: None, skips_long_events: false, skipping: false }
    }

    /// Takes an event that exceeds the limit for one that cannot be read, without holding it, where what may be held of it
    /// says whose new state it is. Not so for a deletion, of which more has to be known than that it is left out.
    #[must_use]
    pub fn skipping_long_events(mut self) -> Self {
        self.skips_long_events = true;
        self
    }

    /// Takes the next chunk of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        self.window.push(chunk);
    }

    /// The next event, or `None` if it takes another chunk to know. The inner error is of an event that cannot be read:
    /// the next call goes on behind it.
    ///
    /// # Errors
    ///
    /// When an event exceeds the limit and is not skipped; then again at each further call.
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
        let key = key_of_new_state(self.window.allowed_part(self.limits.item_bytes))?;
        let at = self.limits.item_bytes;
        self.skipping = true;
        Some(ScanError::new(Fault { what: "the event is longer than the limit", at }, Some(key)))
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
        let truncated = Cause::Truncated { at: self.window.received() };
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

impl EventType {
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"ADDED" => Self::Added,
            b"MODIFIED" => Self::Modified,
            b"DELETED" => Self::Deleted,
            b"BOOKMARK" => Self::Bookmark,
            b"ERROR" => Self::Error,
            _ => return None,
        })
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn read_event(line: &[u8]) -> Result<WatchFrame<'_>, ScanError> {
    let mut object = None;
    frame(line, &mut object).map_err(|fault| {
        // The event is lost, but whose it was may still be found.
        let scanned = object.map(scan_object);
        let key = scanned.and_then(|scanned| {
            scanned.map_or_else(|error| error.key().cloned(), |object| object.key().ok())
        });
        ScanError::new(fault, key)
    })
}

/// Whose new state an event tells, from its beginning.
fn key_of_new_state(part: &[u8]) -> Option<ObjectKey> {
    let mut is_new = false;
    let mut cursor = Cursor::new(part);
    let mut members = cursor.enter_object().ok()?;
    while let Some(member) = cursor.next_member(&mut members).ok()? {
        match &*member.bytes() {
            b"type" => {
                let kind = EventType::named(&cursor.text().ok()?.bytes());
                is_new = matches!(kind, Some(EventType::Added | EventType::Modified));
            }
            b"object" if is_new => return key_of_part(cursor.rest()),
            b"object" => return None,
            _ => drop(cursor.skip_value().ok()?),
        }
    }
    None
}

/// Reads an event, and notes where its object starts as soon as it is known.
fn frame<'a>(line: &'a [u8], object: &mut Option<&'a [u8]>) -> Result<WatchFrame<'a>, Fault> {
    let (mut kind, mut whole) = (None, None);
    let mut cursor = Cursor::new(line);
    let mut members = cursor.enter_object()?;
    while let Some(member) = cursor.next_member(&mut members)? {
        match &*member.bytes() {
            b"type" if kind.is_none() => kind = Some(cursor.text()?),
            b"object" if whole.is_none() => {
                if cursor.peek() != Some(b'{') {
                    return Err(cursor.fault("the event's object is not an object"));
                }
                *object = Some(cursor.rest());
                whole = Some(cursor.skip_value()?);
            }
            _ => drop(cursor.skip_value()?),
        }
    }
    cursor.expect_end()?;
    let fault = |what| Fault { what, at: cursor.at() };
    let kind = kind.ok_or_else(|| fault("the event has no type"))?;
    let kind = EventType::named(&kind.bytes()).ok_or_else(|| fault("the event is of an unknown type"))?;
    Ok(WatchFrame { kind, object: whole.ok_or_else(|| fault("the event has no object"))? })
}

#[cfg(test)]
mod tests;
