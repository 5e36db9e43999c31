//! The body of an answer as it comes in.

use super::{Reader, Reading};
use crate::reflector::Input;
use crate::wire::{Limits, ListDecoder, ListPart, WatchDecoder};

/// The body of the answer to a list or to a watch.
///
/// What exceeds the limit is left out alone, where it can be said which object it is (contract W16).
#[derive(Debug)]
pub enum Answer {
    /// To a list.
    List(Box<ListDecoder>),
    /// To a watch.
    Watch(Box<WatchDecoder>),
}

impl Answer {
    /// The answer to a list.
    pub fn list(limits: Limits) -> Self {
        Self::List(Box::new(ListDecoder::new(limits).skipping_long_items()))
    }

    /// The answer to a watch.
    pub fn watch(limits: Limits) -> Self {
        Self::Watch(Box::new(WatchDecoder::new(limits).skipping_long_events()))
    }

    /// Takes the next chunk of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        match self {
            Self::List(list) => list.push(chunk),
            Self::Watch(watch) => watch.push(chunk),
        }
    }

    /// Bytes that came and were not read yet.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::List(list) => list.held_bytes(),
            Self::Watch(watch) => watch.held_bytes(),
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
            Answer::List(list) => match list.next() {
                Ok(Some(ListPart::Meta(meta))) => Some(Reading::of(Input::ListStart(meta.clone()))),
                Ok(Some(ListPart::Item(json))) => Some(self.item(json, trust_versions)),
                Ok(None) => None,
                Err(error) => Some(Reading::of(match error.skipped() {
                    Some(key) => Input::Unreadable { key: Some(key.clone()), reason: error.to_string() },
                    None => Input::Undecodable(error.to_string()),
                })),
            },
            Answer::Watch(watch) => match watch.next() {
                Ok(Some(Ok(frame))) => Some(self.frame(&frame, trust_versions)),
                Ok(Some(Err(error))) => {
                    let (key, reason) = (error.key().cloned(), error.to_string());
                    Some(Reading::of(Input::Unreadable { key, reason }))
                }
                Ok(None) => None,
                Err(error) => Some(Reading::of(Input::Undecodable(error.to_string()))),
            },
        }
    }

    /// At the end of the body: a last event that a watch may hold, and what the end means. A list has to be complete.
    pub fn finish(&self, answer: &mut Answer, trust_versions: bool) -> (Option<Reading>, Input) {
        match answer {
            Answer::List(list) => match list.finish() {
                Ok(meta) => (None, Input::ListEnd(meta)),
                Err(error) => (None, Input::Undecodable(error.to_string())),
            },
            Answer::Watch(watch) => match watch.finish() {
                Ok(frame) => (frame.map(|frame| self.frame(&frame, trust_versions)), Input::End),
                Err(error) => (None, Input::Broken(error.to_string())),
            },
        }
    }
}
