//! The body of a response as it arrives.

use super::{Reading, ResponseReader, Wire, lost};
use crate::reflector::{Input, Trust};
use crate::wire::{
    EventType, Limits, ListDecoder, ListMeta, ListPart, ProtobufListDecoder, ProtobufWatchDecoder, ScanError,
    WatchDecoder, WatchFrame, WireError,
};

/// The body of the response to a list or to a watch.
///
/// An object that exceeds the limit is skipped by itself, if its key is known (contract W16).
#[derive(Debug)]
pub enum Answer {
    /// To a list, in JSON.
    List(Box<ListDecoder>),
    /// To a watch, in JSON.
    Watch(Box<WatchDecoder>),
    /// To a list, in protobuf.
    ProtobufList(Box<ProtobufListDecoder>),
    /// To a watch, in protobuf.
    ProtobufWatch(Box<ProtobufWatchDecoder>),
}

/// The kind of request that a response answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// A list.
    List,
    /// A watch.
    Watch,
}

impl Answer {
    /// A response, in JSON or, by its headers, in protobuf.
    pub fn new(to: To, is_protobuf: bool, limits: Limits) -> Self {
        match (to, is_protobuf) {
            (To::List, false) => Self::List(Box::new(ListDecoder::new(limits).skipping_long_items())),
            (To::Watch, false) => Self::Watch(Box::new(WatchDecoder::new(limits).skipping_long_events())),
            (To::List, true) => {
                Self::ProtobufList(Box::new(ProtobufListDecoder::new(limits).skipping_long_items()))
            }
            (To::Watch, true) => {
                Self::ProtobufWatch(Box::new(ProtobufWatchDecoder::new(limits).skipping_long_events()))
            }
        }
    }

    /// Takes the next chunk of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        match self {
            Self::List(list) => list.push(chunk),
            Self::Watch(watch) => watch.push(chunk),
            Self::ProtobufList(list) => list.push(chunk),
            Self::ProtobufWatch(watch) => watch.push(chunk),
        }
    }

    /// The bytes that arrived and were not decoded yet.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::List(list) => list.held_bytes(),
            Self::Watch(watch) => watch.held_bytes(),
            Self::ProtobufList(list) => list.held_bytes(),
            Self::ProtobufWatch(watch) => watch.held_bytes(),
        }
    }
}

impl ResponseReader {
    /// The next part of a response, or `None` if another chunk is needed. After [`Input::Undecodable`] no part follows.
    ///
    /// `trust` says how far an equal resourceVersion can be trusted
    /// ([`Reflector::trusts_versions`](crate::reflector::Reflector::trusts_versions)).
    pub fn next(&self, answer: &mut Answer, trust: Trust<'_>) -> Option<Reading> {
        match answer {
            Answer::List(list) => self.list_part(list.next(), Wire::Json, trust),
            Answer::ProtobufList(list) => match list.next() {
                Ok(Some(ListPart::Meta(meta))) if !self.expects_list(meta) => {
                    Some(Reading::of(Input::Undecodable(format!("the list is {}", self.other_kind()))))
                }
                part => self.list_part(part, Wire::Protobuf, trust),
            },
            Answer::Watch(watch) => match watch.next() {
                Ok(Some(Ok(frame))) => Some(self.json_event(&frame, trust)),
                other => no_event(other),
            },
            Answer::ProtobufWatch(watch) => match watch.next() {
                Ok(Some(Ok(frame))) => Some(self.protobuf_event(&frame, trust)),
                other => no_event(other),
            },
        }
    }

    fn list_part<'a>(
        &self,
        part: Result<Option<ListPart<'a>>, WireError>,
        wire: impl FnOnce(&'a [u8]) -> Wire<'a>,
        trust: Trust<'_>,
    ) -> Option<Reading> {
        match part {
            Ok(Some(ListPart::Meta(meta))) => Some(Reading::of(Input::ListStart(meta.clone()))),
            Ok(Some(ListPart::Item(item))) => Some(self.item(wire(item), trust)),
            Ok(None) => None,
            Err(error) => Some(Reading::of(match error.skipped() {
                Some(key) => Input::Unreadable { key: Some(key.clone()), reason: error.to_string() },
                None => Input::Undecodable(error.to_string()),
            })),
        }
    }

    fn expects_list(&self, meta: &ListMeta) -> bool {
        let (api_version, kind) = (meta.api_version.as_deref(), meta.item_kind());
        self.expects(api_version.unwrap_or_default(), kind.unwrap_or_default())
    }

    /// Ends the body. Returns a last event that a watch may hold, and the input for the end. A list must be complete.
    pub fn finish(&self, answer: &mut Answer, trust: Trust<'_>) -> (Option<Reading>, Input) {
        let listed = |meta: Result<ListMeta, WireError>| match meta {
            Ok(meta) => (None, Input::ListEnd(meta)),
            Err(error) => (None, Input::Undecodable(error.to_string())),
        };
        let broken = |error: WireError| (None, Input::Broken(error.to_string()));
        match answer {
            Answer::List(list) => listed(list.finish()),
            Answer::ProtobufList(list) => listed(list.finish()),
            Answer::Watch(watch) => match watch.finish() {
                Ok(frame) => (frame.map(|frame| self.json_event(&frame, trust)), Input::End),
                Err(error) => broken(error),
            },
            Answer::ProtobufWatch(watch) => match watch.finish() {
                Ok(()) => (None, Input::End),
                Err(error) => broken(error),
            },
        }
    }
}

/// The input for an event that does not decode.
fn no_event(event: Result<Option<Result<WatchFrame<'_>, ScanError>>, WireError>) -> Option<Reading> {
    match event {
        Ok(Some(Err(error))) => Some(Reading::of(match (error.event(), error.key()) {
            (Some(EventType::Added | EventType::Modified), Some(key)) => {
                Input::Unreadable { key: Some(key.clone()), reason: error.to_string() }
            }
            // A bookmark concerns no object, so the cache misses no object without it.
            (Some(EventType::Bookmark), _) => Input::Unreadable { key: None, reason: error.to_string() },
            (event, key) => lost(event, key, &error.to_string()),
        })),
        Ok(_) => None,
        Err(error) => Some(Reading::of(Input::Undecodable(error.to_string()))),
    }
}
