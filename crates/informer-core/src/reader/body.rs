//! The body of a response as it arrives.

use super::{Reading, ResponseReader, Wire, lost};
use crate::reflector::{Input, Trust};
use crate::wire::{
    Codec, EventType, Limits, ListDecoder, ListMeta, ListPart, ScanError, WatchDecoder, WireError,
};

/// The body of the response to a list or to a watch.
///
/// An object that exceeds the limit is skipped by itself, if its key is known (contract W16).
#[derive(Debug)]
pub enum Body {
    /// To a list.
    List(Box<ListDecoder>),
    /// To a watch.
    Watch(Box<WatchDecoder>),
}

/// The kind of request that a response answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyOf {
    /// A list.
    List,
    /// A watch.
    Watch,
}

impl Body {
    /// A response, in JSON or, by its headers, in protobuf.
    pub fn new(kind: BodyOf, is_protobuf: bool, limits: Limits) -> Self {
        let codec = if is_protobuf { Codec::Protobuf } else { Codec::Json };
        match kind {
            BodyOf::List => Self::List(Box::new(ListDecoder::new(codec, limits))),
            BodyOf::Watch => Self::Watch(Box::new(WatchDecoder::new(codec, limits))),
        }
    }

    /// Takes the next chunk of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        match self {
            Self::List(list) => list.push(chunk),
            Self::Watch(watch) => watch.push(chunk),
        }
    }

    /// The bytes that arrived and were not decoded yet.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::List(list) => list.held_bytes(),
            Self::Watch(watch) => watch.held_bytes(),
        }
    }
}

impl ResponseReader {
    /// The next part of a response, or `None` if another chunk is needed. After [`Input::Undecodable`] no part follows.
    ///
    /// `trust` says how far an equal resourceVersion can be trusted
    /// ([`Reflector::trusts_versions`](crate::reflector::Reflector::trusts_versions)).
    pub fn next(&self, body: &mut Body, trust: Trust<'_>) -> Option<Reading> {
        let undecodable = |error: WireError| Reading::of(Input::Undecodable(error.to_string()));
        match body {
            Body::List(list) => {
                let codec = list.codec();
                match list.next() {
                    Ok(part) => part.map(|part| self.list_part(part, codec, trust)),
                    Err(error) => Some(match error.skipped() {
                        Some(key) => Reading::of(Input::Unreadable {
                            key: Some(key.clone()),
                            reason: error.to_string(),
                        }),
                        None => undecodable(error),
                    }),
                }
            }
            Body::Watch(watch) => {
                let codec = watch.codec();
                match watch.next() {
                    Ok(event) => event.map(|event| match event {
                        Ok(frame) => self.event(&frame, codec, trust),
                        Err(error) => no_event(&error),
                    }),
                    Err(error) => Some(undecodable(error)),
                }
            }
        }
    }

    fn list_part(&self, part: ListPart<'_>, codec: Codec, trust: Trust<'_>) -> Reading {
        match part {
            ListPart::Item(item) => self.item(Wire { codec, bytes: item }, trust),
            // Items in protobuf do not say what they are, so the list has to.
            ListPart::Meta(meta) if codec == Codec::Protobuf && !self.expects_list(meta) => {
                Reading::of(Input::Undecodable(format!("the list is {}", self.other_kind())))
            }
            ListPart::Meta(meta) => Reading::of(Input::ListStart(meta.clone())),
        }
    }

    fn expects_list(&self, meta: &ListMeta) -> bool {
        let (api_version, kind) = (meta.api_version.as_deref(), meta.item_kind());
        self.expects(api_version.unwrap_or_default(), kind.unwrap_or_default())
    }

    /// Ends the body. Returns a last event that a watch may hold, and the input for the end. A list must be complete.
    pub fn finish(&self, body: &mut Body, trust: Trust<'_>) -> (Option<Reading>, Input) {
        match body {
            Body::List(list) => match list.finish() {
                Ok(meta) => (None, Input::ListEnd(meta)),
                Err(error) => (None, Input::Undecodable(error.to_string())),
            },
            Body::Watch(watch) => {
                let codec = watch.codec();
                match watch.finish() {
                    Ok(frame) => (frame.map(|frame| self.event(&frame, codec, trust)), Input::End),
                    Err(error) => (None, Input::Broken(error.to_string())),
                }
            }
        }
    }
}

/// The input for an event that does not decode.
fn no_event(error: &ScanError) -> Reading {
    Reading::of(match (error.event(), error.key()) {
        (Some(EventType::Added | EventType::Modified), Some(key)) => {
            Input::Unreadable { key: Some(key.clone()), reason: error.to_string() }
        }
        // A bookmark concerns no object, so the cache misses no object without it.
        (Some(EventType::Bookmark), _) => Input::Unreadable { key: None, reason: error.to_string() },
        (event, key) => lost(event, key, &error.to_string()),
    })
}
