//! The body of an answer as it comes in.

use super::{Reader, Reading, Wire};
use crate::reflector::Input;
use crate::wire::{
    Limits, ListDecoder, ListMeta, ListPart, ProtobufListDecoder, ProtobufWatchDecoder, ScanError,
    WatchDecoder, WatchFrame, WireError,
};

/// The body of the answer to a list or to a watch.
///
/// What exceeds the limit is left out alone, where it can be said which object it is (contract W16).
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

/// What an answer is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// A list.
    List,
    /// A watch.
    Watch,
}

impl Answer {
    /// The answer to a request, in JSON or, if the server says so, in protobuf.
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

    /// Bytes that came and were not read yet.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::List(list) => list.held_bytes(),
            Self::Watch(watch) => watch.held_bytes(),
            Self::ProtobufList(list) => list.held_bytes(),
            Self::ProtobufWatch(watch) => watch.held_bytes(),
        }
    }
}

impl Reader {
    /// The next part of an answer, or `None` if it takes another chunk to know. After [`Input::Undecodable`] there is no
    /// more to come.
    ///
    /// `trust_versions`: an object that the cache has in the same version is as the cache has it
    /// ([`Reflector::trusts_versions`](crate::reflector::Reflector::trusts_versions)).
    pub fn next(&self, answer: &mut Answer, trust_versions: bool) -> Option<Reading> {
        match answer {
            Answer::List(list) => self.list_part(list.next(), Wire::Json, trust_versions),
            Answer::ProtobufList(list) => match list.next() {
                Ok(Some(ListPart::Meta(meta))) if !self.expects_list(meta) => {
                    Some(Reading::of(Input::Undecodable(format!("the list is {}", self.other_kind()))))
                }
                part => self.list_part(part, Wire::Protobuf, trust_versions),
            },
            Answer::Watch(watch) => match watch.next() {
                Ok(Some(Ok(frame))) => Some(self.json_event(&frame, trust_versions)),
                other => no_event(other),
            },
            Answer::ProtobufWatch(watch) => match watch.next() {
                Ok(Some(Ok(frame))) => Some(self.protobuf_event(&frame, trust_versions)),
                other => no_event(other),
            },
        }
    }

    fn list_part<'a>(
        &self,
        part: Result<Option<ListPart<'a>>, WireError>,
        wire: impl FnOnce(&'a [u8]) -> Wire<'a>,
        trust_versions: bool,
    ) -> Option<Reading> {
        match part {
            Ok(Some(ListPart::Meta(meta))) => Some(Reading::of(Input::ListStart(meta.clone()))),
            Ok(Some(ListPart::Item(item))) => Some(self.item(wire(item), trust_versions)),
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

    /// At the end of the body: a last event that a watch may hold, and what the end means. A list has to be complete.
    pub fn finish(&self, answer: &mut Answer, trust_versions: bool) -> (Option<Reading>, Input) {
        let listed = |meta: Result<ListMeta, WireError>| match meta {
            Ok(meta) => (None, Input::ListEnd(meta)),
            Err(error) => (None, Input::Undecodable(error.to_string())),
        };
        let broken = |error: WireError| (None, Input::Broken(error.to_string()));
        match answer {
            Answer::List(list) => listed(list.finish()),
            Answer::ProtobufList(list) => listed(list.finish()),
            Answer::Watch(watch) => match watch.finish() {
                Ok(frame) => (frame.map(|frame| self.json_event(&frame, trust_versions)), Input::End),
                Err(error) => broken(error),
            },
            Answer::ProtobufWatch(watch) => match watch.finish() {
                Ok(()) => (None, Input::End),
                Err(error) => broken(error),
            },
        }
    }
}

/// What a watch has instead of an event that can be read.
fn no_event(event: Result<Option<Result<WatchFrame<'_>, ScanError>>, WireError>) -> Option<Reading> {
    match event {
        Ok(Some(Err(error))) => {
            let (key, reason) = (error.key().cloned(), error.to_string());
            Some(Reading::of(Input::Unreadable { key, reason }))
        }
        Ok(_) => None,
        Err(error) => Some(Reading::of(Input::Undecodable(error.to_string()))),
    }
}
