//! Cuts a list response into its items as it arrives.

mod json;
mod protobuf;

use std::fmt;
use std::ops::Range;

use super::WireError;
use super::decoder::{Codec, Decoder, Limits};
use super::error::WireErrorKind;
use super::window::Window;
use crate::{ObjectKey, ResourceVersion};
use json::JsonList;
use protobuf::ProtobufList;

/// The metadata of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListMeta {
    /// Such as `PodList`.
    pub kind: Option<String>,
    /// Such as `v1`; the items have the same.
    pub api_version: Option<String>,
    /// The version of the collection that the list shows.
    pub resource_version: ResourceVersion,
    /// The token of the next page, if one follows.
    pub continue_token: Option<String>,
    /// The number of items on the pages that follow, if the server says so.
    pub remaining_item_count: Option<u64>,
}

impl ListMeta {
    /// The kind of the items: the list's own without its `List`.
    pub fn item_kind(&self) -> Option<&str> {
        self.kind.as_deref()?.strip_suffix("List").filter(|kind| !kind.is_empty())
    }
}

/// One part of a list response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ListPart<'a> {
    /// The list's metadata so far. For built-in resources the server sends it before the items, for others after them. In
    /// protobuf the list's kind is known before its first item.
    Meta(&'a ListMeta),
    /// One item: its JSON, or the message of its kind without an envelope.
    Item(&'a [u8]),
}

impl fmt::Debug for ListPart<'_> {
    /// Leaves out the item, which may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meta(meta) => meta.fmt(f),
            Self::Item(item) => write!(f, "Item ({} bytes)", item.len()),
        }
    }
}

/// Takes the body of a list response, in chunks of any size, and returns its items one by one. It reads an item's content
/// only to find its end, and at most the item's key.
///
/// An item that exceeds the limit is skipped without being held, if the part within the limit has its key.
/// The decoder reports the item once ([`WireError::skipped`]) and continues after it. Otherwise one such item
/// would make every list of the resource fail.
///
/// ```
/// use informer_core::internals::{Codec, ListDecoder, ListPart};
/// use informer_core::wire::Limits;
///
/// let mut list = ListDecoder::new(Codec::Json, Limits::default());
/// let mut names = Vec::new();
/// for chunk in [br#"{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"na"#.as_slice(),
///               br#"me":"cart"}},{"metadata":{"name":"till"}}]}"#] {
///     list.push(chunk);
///     while let Some(part) = list.next()? {
///         if let ListPart::Item(json) = part {
///             names.push(informer_core::wire::scan_object(json)?.name().to_owned());
///         }
///     }
/// }
/// assert_eq!(names, ["cart", "till"]);
/// assert_eq!(list.finish()?.resource_version, "9".into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type ListDecoder = Decoder<ListFraming>;

/// How far a list has been read.
#[derive(Debug)]
pub struct ListFraming {
    meta: ListMeta,
    state: State,
}

#[derive(Debug)]
enum State {
    Json(JsonList),
    Protobuf(ProtobufList),
}

/// The part that was found, without a borrow.
enum Found {
    Meta,
    Item(Range<usize>),
}

impl ListDecoder {
    /// A decoder for one list response.
    pub fn new(codec: Codec, limits: Limits) -> Self {
        Self::of(ListFraming::new(codec), limits)
    }

    /// The next part, or `None` if another chunk is needed.
    ///
    /// # Errors
    ///
    /// When the response is not a list of objects, is malformed, or exceeds a limit. Each further call returns the same
    /// error, except after a skipped item.
    pub fn next(&mut self) -> Result<Option<ListPart<'_>>, WireError> {
        let found = self.find(|ListFraming { meta, state }, window, limit| match state {
            State::Json(list) => list.advance(window, meta, limit),
            State::Protobuf(list) => list.advance(window, meta, limit),
        })?;
        Ok(found.map(|found| match found {
            Found::Meta => ListPart::Meta(&self.framing.meta),
            Found::Item(item) => ListPart::Item(self.window.get(item)),
        }))
    }

    /// The encoding of the response.
    pub fn codec(&self) -> Codec {
        self.framing.codec()
    }

    /// Ends the body, after the last part was taken. Returns the list's metadata. The decoder is then ready for the next
    /// page.
    ///
    /// # Errors
    ///
    /// As [`ListDecoder::next`], and when the list is incomplete.
    pub fn finish(&mut self) -> Result<ListMeta, WireError> {
        let is_complete = match &self.framing.state {
            State::Json(list) => list.is_complete(),
            State::Protobuf(list) => list.is_complete(&self.window),
        };
        self.end(is_complete)?;
        // Bytes behind the list are an error.
        self.next()?;
        self.window.clear();
        let codec = self.codec();
        Ok(std::mem::replace(&mut self.framing, ListFraming::new(codec)).meta)
    }
}

impl ListFraming {
    fn new(codec: Codec) -> Self {
        let state = match codec {
            Codec::Json => State::Json(JsonList::default()),
            Codec::Protobuf => State::Protobuf(ProtobufList::default()),
        };
        Self { meta: ListMeta::default(), state }
    }

    fn codec(&self) -> Codec {
        match self.state {
            State::Json(_) => Codec::Json,
            State::Protobuf(_) => Codec::Protobuf,
        }
    }
}

/// The error of an item that is too long. The item is skipped only if its key is known.
fn too_long(
    cause: WireErrorKind,
    window: &Window,
    key_of_part: impl Fn(&[u8]) -> Option<ObjectKey>,
) -> WireErrorKind {
    let WireErrorKind::TooLong { limit, .. } = cause else { return cause };
    let key = key_of_part(window.allowed_part(limit));
    key.map_or(cause, |key| WireErrorKind::Skipped { key, limit })
}

#[cfg(test)]
mod tests;
