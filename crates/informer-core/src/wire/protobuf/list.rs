//! Cuts a list in protobuf into its items as it arrives.

use std::fmt;
use std::ops::Range;

use informer_protobuf::wire::{Fields, Value};

use super::super::error::WireErrorKind;
use super::super::window::Window;
use super::super::{ApiStatus, Limits, ListMeta, ListPart, WireError};
use super::{Header, MAGIC, NoField, fields, key_of_part, text};
use crate::ResourceVersion;

/// Takes the body of a list response in protobuf, in chunks of any size, and returns its items one by one. An item is a
/// message of its kind, without an envelope.
///
/// Like [`ListDecoder`](super::super::ListDecoder) for JSON, it holds no more than the chunk and one incomplete item.
pub struct ProtobufListDecoder {
    window: Window,
    limits: Limits,
    state: State,
    meta: ListMeta,
    failed: Option<WireError>,
    skips_long_items: bool,
    /// The number of bytes of a skipped item or field that have not arrived yet.
    skipping: u64,
}

/// The next expected token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Magic,
    /// A field of the envelope before the list.
    Envelope,
    /// A field of the list, of which this many bytes have not been read yet.
    List(u64),
    /// A field of the envelope after the list, or the end.
    Behind,
}

/// No part of a list other than an item is longer than this.
const MAX_HEAD: u64 = 64 << 10;

/// The part that was found, without a borrow.
enum Found {
    Meta,
    Item(Range<usize>),
}

impl ProtobufListDecoder {
    /// A decoder for one list response.
    pub fn new(limits: Limits) -> Self {
        Self {
            window: Window::default(),
            limits,
            state: State::Magic,
            meta: ListMeta::default(),
            failed: None,
            skips_long_items: false,
            skipping: 0,
        }
    }

    /// As [`ListDecoder::skipping_long_items`](super::super::ListDecoder::skipping_long_items).
    #[must_use]
    pub fn skipping_long_items(mut self) -> Self {
        self.skips_long_items = true;
        self
    }

    /// Takes the next chunk of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        self.window.push(chunk);
    }

    /// The next part, or `None` if another chunk is needed. The kind of the list is known before its first item.
    ///
    /// # Errors
    ///
    /// When the response is not a list of objects, is malformed, or exceeds a limit. Each further call returns the same
    /// error, except after a skipped item.
    #[expect(clippy::should_implement_trait, reason = "an Iterator cannot lend its items")]
    pub fn next(&mut self) -> Result<Option<ListPart<'_>>, WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.advance() {
            Ok(Some(Found::Item(item))) => Ok(Some(ListPart::Item(self.window.get(item)))),
            Ok(Some(Found::Meta)) => Ok(Some(ListPart::Meta(&self.meta))),
            Ok(None) => {
                self.window.relax();
                Ok(None)
            }
            Err(cause @ WireErrorKind::Skipped { .. }) => Err(cause.into()),
            Err(cause) => Err(self.failed.insert(cause.into()).clone()),
        }
    }

    /// The list's metadata so far.
    pub fn meta(&self) -> &ListMeta {
        &self.meta
    }

    /// The bytes that the decoder holds.
    pub fn held_bytes(&self) -> usize {
        self.window.capacity()
    }

    /// Ends the body, after the last part was taken. Returns the list's metadata. The decoder is then ready for the next
    /// page.
    ///
    /// # Errors
    ///
    /// As [`ProtobufListDecoder::next`], and when the list is incomplete.
    pub fn finish(&mut self) -> Result<ListMeta, WireError> {
        let is_complete =
            self.state == State::Behind && self.skipping == 0 && self.window.unread().is_empty();
        if self.failed.is_none() && !is_complete {
            self.failed = Some(WireErrorKind::Truncated { at: self.window.received() }.into());
        }
        self.next()?;
        self.window.clear();
        self.state = State::Magic;
        Ok(std::mem::take(&mut self.meta))
    }

    fn advance(&mut self) -> Result<Option<Found>, WireErrorKind> {
        loop {
            if !self.skip_rest() {
                return Ok(None);
            }
            match self.state {
                State::Magic => {
                    let Some(magic) = self.window.unread().get(..MAGIC.len()) else {
                        // A body that is not protobuf may be shorter than the magic bytes.
                        return if MAGIC.starts_with(self.window.unread()) {
                            Ok(None)
                        } else {
                            Err(self.no_magic())
                        };
                    };
                    if magic != MAGIC {
                        return Err(self.no_magic());
                    }
                    self.window.take(MAGIC.len());
                    self.state = State::Envelope;
                }
                State::List(0) => self.state = State::Behind,
                State::List(left) => {
                    let Some(header) = self.header()? else { return Ok(None) };
                    let whole = header.following.saturating_add(header.bytes as u64);
                    let left = left
                        .checked_sub(whole)
                        .ok_or_else(|| self.malformed("a field is longer than its list"))?;
                    if let Some(found) = self.list_field(header, left)? {
                        return Ok(Some(found));
                    }
                    if self.state != State::List(left) {
                        return Ok(None);
                    }
                }
                State::Envelope | State::Behind => {
                    let Some(header) = self.header()? else { return Ok(None) };
                    if !self.envelope_field(header)? {
                        return Ok(None);
                    }
                    if let State::List(_) = self.state {
                        return Ok(Some(Found::Meta));
                    }
                }
            }
        }
    }

    fn no_magic(&self) -> WireErrorKind {
        self.malformed("it does not begin with the magic bytes of Kubernetes' protobuf")
    }

    fn malformed(&self, what: &'static str) -> WireErrorKind {
        WireErrorKind::Malformed { what, at: self.window.at() }
    }

    fn header(&self) -> Result<Option<Header>, WireErrorKind> {
        Header::read(self.window.unread()).map_err(|NoField| self.malformed("a field is expected"))
    }

    /// Skips the bytes to be skipped. Returns whether all of them have arrived.
    fn skip_rest(&mut self) -> bool {
        let taken = self.window.take(usize::try_from(self.skipping).unwrap_or(usize::MAX));
        self.skipping -= taken.len() as u64;
        self.skipping == 0
    }

    /// Takes the value of a short field, if all of it has arrived.
    fn whole(&mut self, header: Header) -> Result<Option<Range<usize>>, WireErrorKind> {
        if header.following > MAX_HEAD {
            return Err(self.malformed("a field is longer than any of its kind"));
        }
        Ok(self.take(header))
    }

    fn take(&mut self, header: Header) -> Option<Range<usize>> {
        let following =
            header.following().filter(|following| self.window.unread().len() - header.bytes >= *following)?;
        self.window.take(header.bytes);
        Some(self.window.take(following))
    }

    /// Reads a field of the envelope. Returns whether it has arrived.
    fn envelope_field(&mut self, header: Header) -> Result<bool, WireErrorKind> {
        match (self.state, header.number) {
            (State::Envelope, 1) => {
                let Some(types) = self.whole(header)? else { return Ok(false) };
                for field in fields(self.window.get(types)) {
                    let text = text(field.value).map(str::to_owned);
                    match field.number {
                        1 => self.meta.api_version = text,
                        2 => self.meta.kind = text,
                        _ => {}
                    }
                }
            }
            (State::Envelope, 2) => match self.meta.kind.as_deref() {
                Some("Status") => {
                    let Some(status) = self.whole(header)? else { return Ok(false) };
                    let status = ApiStatus::from_protobuf(200, self.window.get(status));
                    return Err(WireErrorKind::Status(status.into()));
                }
                Some("Table") => return Err(WireErrorKind::Table),
                Some(kind) if kind.ends_with("List") => {
                    self.window.take(header.bytes);
                    self.state = State::List(header.following);
                }
                _ => return Err(WireErrorKind::NotAList),
            },
            // The encoding of the content within the envelope, which must be none.
            (_, 3) => {
                let Some(encoding) = self.whole(header)? else { return Ok(false) };
                if !self.window.get(encoding).is_empty() {
                    return Err(self.malformed("its content has an unknown encoding"));
                }
            }
            (State::Behind, 2) => return Err(self.malformed("the envelope has two contents")),
            _ => {
                self.window.take(header.bytes);
                self.skipping = header.following;
            }
        }
        Ok(true)
    }

    /// Takes a field of the list. If it has not arrived completely, the state stays unchanged.
    fn list_field(&mut self, header: Header, left: u64) -> Result<Option<Found>, WireErrorKind> {
        match header.number {
            1 => {
                let Some(metadata) = self.whole(header)? else { return Ok(None) };
                self.state = State::List(left);
                self.read_metadata(metadata);
                Ok(Some(Found::Meta))
            }
            2 if header.following > self.limits.item_bytes as u64 => self.skip_item(header, left),
            2 => {
                let Some(item) = self.take(header) else { return Ok(None) };
                self.state = State::List(left);
                Ok(Some(Found::Item(item)))
            }
            _ => {
                self.window.take(header.bytes);
                self.skipping = header.following;
                self.state = State::List(left);
                Ok(None)
            }
        }
    }

    /// Skips an item that is too long, if its key is known.
    fn skip_item(&mut self, header: Header, left: u64) -> Result<Option<Found>, WireErrorKind> {
        let limit = self.limits.item_bytes;
        let too_long = WireErrorKind::TooLong { limit, at: self.window.at() };
        if !self.skips_long_items {
            return Err(too_long);
        }
        // It waits until as much of the item has arrived as may be held, so that the result does not depend on the chunks.
        let Some(part) = self.window.unread().get(header.bytes..header.bytes + limit) else {
            return Ok(None);
        };
        let key = key_of_part(part).ok_or(too_long)?;
        self.window.take(header.bytes);
        self.skipping = header.following;
        self.state = State::List(left);
        Err(WireErrorKind::Skipped { key, limit })
    }

    fn read_metadata(&mut self, metadata: Range<usize>) {
        for field in Fields::new(self.window.get(metadata)).map_while(Result::ok) {
            match (field.number, field.value) {
                (2, value) => {
                    self.meta.resource_version = ResourceVersion::new(text(value).unwrap_or_default())
                }
                (3, value) => {
                    self.meta.continue_token =
                        text(value).filter(|token| !token.is_empty()).map(str::to_owned);
                }
                (4, Value::Varint(count)) => self.meta.remaining_item_count = Some(count),
                _ => {}
            }
        }
    }
}

impl fmt::Debug for ProtobufListDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProtobufListDecoder({:?}, {:?})", self.state, self.window)
    }
}
