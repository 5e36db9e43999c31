//! The framing of watch events: each is a line of JSON, or a protobuf message after its length.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Value, json};
use serve::wire;

use crate::schema::{from_protobuf, to_protobuf};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The number of bytes of a length.
const LENGTH: usize = 4;

/// The framing of watch events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Framing {
    #[default]
    Lines,
    Messages,
}

impl Framing {
    /// The framing of a response.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if content_type.starts_with(PROTOBUF.as_bytes()) { Self::Messages } else { Self::Lines }
    }

    /// The length of the first event, if it is complete.
    pub(super) fn first(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Lines => Some(memchr::memchr(b'\n', bytes)? + 1),
            Self::Messages => {
                let length = u32::from_be_bytes(*bytes.first_chunk()?);
                Some(LENGTH + usize::try_from(length).ok()?).filter(|length| *length <= bytes.len())
            }
        }
    }

    /// Whether the bytes are exactly one event.
    pub(super) fn is_event(self, bytes: &[u8]) -> bool {
        self.first(bytes) == Some(bytes.len())
    }

    /// The content, framed like an event.
    pub(super) fn framed(self, content: &[u8]) -> Bytes {
        match self {
            Self::Lines => [content, b"\n"].concat().into(),
            Self::Messages => {
                let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
                [&length.to_be_bytes(), content].concat().into()
            }
        }
    }

    /// Encodes an event. In protobuf an object without a message is left out.
    pub(super) fn event(self, event: &Value) -> Bytes {
        match self {
            Self::Lines => self.framed(event.to_string().as_bytes()),
            Self::Messages => {
                let mut message = Vec::new();
                wire::text(1, event["type"].as_str().unwrap_or_default(), &mut message);
                let object = to_protobuf(&event["object"]).unwrap_or_default();
                wire::message(2, &mut message, |out| wire::message(1, out, |out| out.extend(object)));
                self.framed(&message)
            }
        }
    }

    /// Decodes an event in protobuf; `None` if it is undecodable.
    pub(super) fn read(event: &[u8]) -> Option<Value> {
        let object = event.windows(MAGIC.len()).position(|window| window == MAGIC)?;
        let name = event.get(LENGTH + 2..)?.get(..usize::from(*event.get(LENGTH + 1)?))?;
        Some(
            json!({ "type": std::str::from_utf8(name).ok()?, "object": from_protobuf(&event[object..]).ok()? }),
        )
    }
}

/// The first bytes of every object in protobuf.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// Tracks whether the bytes sent so far end with a complete event.
#[derive(Debug, Default)]
pub(super) struct Border {
    framing: Framing,
    /// The first bytes of an incomplete length.
    length: Vec<u8>,
    /// How many bytes of a message, or of a line, are missing.
    left: usize,
}

impl Border {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, ..Self::default() }
    }

    pub(super) fn is_reached(&self) -> bool {
        self.left == 0 && self.length.is_empty()
    }

    pub(super) fn sent(&mut self, mut bytes: &[u8]) {
        if self.framing == Framing::Lines {
            self.left = usize::from(!bytes.ends_with(b"\n"));
            return;
        }
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                self.left -= taken;
                bytes = &bytes[taken..];
                continue;
            }
            let (head, rest) = bytes.split_at(bytes.len().min(LENGTH - self.length.len()));
            self.length.extend_from_slice(head);
            bytes = rest;
            if let Some(length) = self.length.first_chunk::<LENGTH>() {
                self.left = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
                self.length.clear();
            }
        }
    }
}

/// Removes everything but JSON from the Accept header.
pub(super) fn accept_json_only(headers: &mut HeaderMap) {
    let Some(accept) = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()) else { return };
    let others = accept.split(',').map(str::trim).filter(|clause| !clause.starts_with(PROTOBUF));
    let others = others.collect::<Vec<_>>().join(",");
    let others = HeaderValue::from_str(&others).unwrap_or(HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, others);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_border_is_found_however_the_bytes_come() {
        let event = Framing::Messages
            .event(&json!({ "type": "ADDED", "object": { "kind": "Pod", "apiVersion": "v1" } }));
        let all = [&event[..], &event].concat();
        for size in 1..=all.len() {
            let mut border = Border::new(Framing::Messages);
            let mut sent = 0;
            for piece in all.chunks(size) {
                border.sent(piece);
                sent += piece.len();
                assert_eq!(border.is_reached(), sent % event.len() == 0, "{sent} in pieces of {size}");
            }
        }
        assert!(Framing::Messages.is_event(&event) && !Framing::Messages.is_event(&all));
    }

    #[test]
    fn an_event_in_messages_says_what_it_says_in_json() {
        for kind in ["ADDED", "BOOKMARK", "ERROR"] {
            let object = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": { "name": "k8s" } });
            let event = json!({ "type": kind, "object": object });
            assert_eq!(Framing::read(&Framing::Messages.event(&event)), Some(event));
        }
    }

    #[test]
    fn who_takes_protobuf_alone_is_sent_json_all_the_same() {
        for (accept, left) in [
            ("application/vnd.kubernetes.protobuf", ""),
            ("application/vnd.kubernetes.protobuf,application/json", "application/json"),
            ("application/json;as=Table", "application/json;as=Table"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            accept_json_only(&mut headers);
            assert_eq!(headers[header::ACCEPT], left);
        }
    }
}
