//! Cuts a watch response into its events as it arrives.

mod json;
mod protobuf;

use std::fmt;
use std::ops::Range;

use super::cursor::Fault;
use super::decoder::{Codec, Decoder, Limits};
use super::error::WireErrorKind;
use super::event_type::EventType;
use super::window::Window;
use super::{ScanError, WireError};

/// One event of a watch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WatchFrame<'a> {
    /// The type of the event.
    pub kind: EventType,
    /// The object: its JSON, or its message in an envelope.
    pub object: &'a [u8],
}

impl fmt::Debug for WatchFrame<'_> {
    /// Leaves out the object, which may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({} bytes)", self.kind, self.object.len())
    }
}

/// Takes the body of a watch response, in chunks of any size, and returns its events one by one. In JSON, events are lines,
/// each an object; in protobuf they are frames with their length.
///
/// An event that exceeds the limit counts as undecodable and is not held. The part within the limit must have a new state's
/// type and key. A deletion is not skipped: it needs more than its key.
///
/// ```
/// use informer_core::internals::{Codec, EventType, WatchDecoder};
/// use informer_core::wire::Limits;
///
/// let mut watch = WatchDecoder::new(Codec::Json, Limits::default());
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
pub type WatchDecoder = Decoder<WatchFraming>;

/// The encoding of a watch. A watch has no other state: its events are independent.
#[derive(Debug)]
pub struct WatchFraming(Codec);

impl WatchDecoder {
    /// A decoder for one watch response.
    pub fn new(codec: Codec, limits: Limits) -> Self {
        Self::of(WatchFraming(codec), limits)
    }

    /// The next event, or `None` if another chunk is needed. The inner error is that of an undecodable event: the next call
    /// continues after it.
    ///
    /// # Errors
    ///
    /// When an event exceeds the limit and is not skipped. Each further call returns the same error.
    pub fn next(&mut self) -> Result<Option<Result<WatchFrame<'_>, ScanError>>, WireError> {
        let codec = self.codec();
        let found = self.find(|_, window, limit| next_event(codec, window, limit))?;
        Ok(found.map(|event| match codec {
            Codec::Json => json::read_event(self.window.get(event?)),
            Codec::Protobuf => protobuf::read_event(self.window.get(event?)),
        }))
    }

    /// The encoding of the response.
    pub fn codec(&self) -> Codec {
        self.framing.0
    }

    /// At the end of the body, after the last event was taken: an event in JSON whose line was not ended.
    ///
    /// # Errors
    ///
    /// As [`WatchDecoder::next`], and when the body ends within an event, as it does when the connection breaks.
    pub fn finish(&mut self) -> Result<Option<WatchFrame<'_>>, WireError> {
        self.end(!self.window.is_skipping())?;
        let truncated = self.truncated();
        let rest = self.window.take_rest();
        match (self.codec(), self.window.get(rest)) {
            (_, []) => Ok(None),
            (Codec::Json, line) if json::is_blank(line) => Ok(None),
            (Codec::Json, line) => json::read_event(line).map(Some).map_err(|_| truncated),
            (Codec::Protobuf, _) => Err(truncated),
        }
    }
}

/// Cuts out the next event, or leaves it out if it is too long.
fn next_event(
    codec: Codec,
    window: &mut Window,
    limit: usize,
) -> Result<Option<Result<Range<usize>, ScanError>>, WireErrorKind> {
    let event = match codec {
        Codec::Json => json::next_line(window, limit),
        Codec::Protobuf => protobuf::next_frame(window, limit),
    };
    let Err(cause @ WireErrorKind::TooLong { .. }) = event else { return Ok(event?.map(Ok)) };
    let part = window.allowed_part(limit);
    let new_state = match codec {
        Codec::Json => json::new_state(part),
        Codec::Protobuf => protobuf::new_state(part),
    };
    let (kind, key) = new_state.ok_or(cause)?;
    let fault = Fault { what: "the event is longer than the limit", at: limit };
    Ok(Some(Err(ScanError::new(fault, Some(key)).of_event(Some(kind)))))
}

#[cfg(test)]
mod tests;
