//! The part of a response that has arrived and was not returned yet.

use std::fmt;
use std::ops::Range;

use memchr::{memchr, memchr2};

use super::cursor::{ends_scalar, is_space};
use super::error::WireErrorKind;
use super::nesting::{Nesting, TooDeep};

/// When the buffer is larger than this, it shrinks again after the item that made it grow.
const KEPT_CAPACITY: usize = 256 << 10;

/// The unread bytes of a response, and how far the search for the end of the next item has got. No byte is searched twice.
#[derive(Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// The bytes before this were returned.
    start: usize,
    /// The bytes before this were searched.
    searched: usize,
    search: Option<Search>,
    /// The item that is too long, whose rest is dropped as it arrives.
    skipping: Option<Rest>,
    /// The number of bytes of the response that `bytes` no longer has.
    dropped: u64,
    /// The number of bytes that were searched, which tests use to prove that the search is linear.
    #[cfg(test)]
    pub(super) looked_at: usize,
}

/// The search for the end of a value that began at the window's start.
#[derive(Clone, Copy)]
enum Search {
    Nested(Nesting),
    Text { escaped: bool },
    Scalar,
}

/// The way to the end of an item that is too long.
#[derive(Clone, Copy)]
enum Rest {
    Value,
    Line,
    Bytes(u64),
}

impl Window {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.drop_given_out();
        self.bytes.extend_from_slice(chunk);
    }

    /// Frees memory that one very large item needed.
    pub(super) fn relax(&mut self) {
        if self.bytes.capacity() > KEPT_CAPACITY && self.bytes.len() - self.start <= KEPT_CAPACITY / 2 {
            self.drop_given_out();
            self.bytes.shrink_to(KEPT_CAPACITY);
        }
    }

    fn drop_given_out(&mut self) {
        // The bytes that move arrived with the last chunk, or belong to an incomplete item and do not move again.
        self.bytes.drain(..self.start);
        self.dropped += self.start as u64;
        self.searched -= self.start;
        self.start = 0;
    }

    /// The offset in the response of the next byte to return.
    pub(super) fn at(&self) -> u64 {
        self.dropped + self.start as u64
    }

    /// The number of bytes of the response that have arrived.
    pub(super) fn received(&self) -> u64 {
        self.dropped + self.bytes.len() as u64
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn get(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// The bytes that have arrived and were not returned.
    pub(super) fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Returns the next bytes: at most as many as have arrived.
    pub(super) fn take(&mut self, length: usize) -> Range<usize> {
        let taken = self.start..self.start.saturating_add(length).min(self.bytes.len());
        self.start = taken.end;
        self.searched = taken.end;
        taken
    }

    fn unsearched(&self) -> &[u8] {
        self.bytes.get(self.searched..).unwrap_or_default()
    }

    /// Skips white space. Returns the next byte without skipping it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.start) {
            // In an incomplete item, the first byte belongs to the item, so no white space is skipped.
            if !is_space(byte) {
                return Some(byte);
            }
            self.pass();
        }
        None
    }

    /// Skips one byte.
    pub(super) fn pass(&mut self) {
        self.start += 1;
        self.searched = self.start;
    }

    /// Finds the end of the value that starts here, and returns the value.
    pub(super) fn next_value(&mut self, limit: usize) -> Result<Option<Range<usize>>, WireErrorKind> {
        let mut search = match self.search {
            Some(search) => search,
            None => match self.bytes.get(self.start) {
                Some(b'{' | b'[') => Search::Nested(Nesting::default()),
                Some(b'"') => {
                    self.searched += 1;
                    Search::Text { escaped: false }
                }
                _ => Search::Scalar,
            },
        };
        let found =
            search.advance(self.unsearched()).map_err(|TooDeep| WireErrorKind::TooDeep { at: self.at() })?;
        self.search = found.is_none().then_some(search);
        self.give_out(found, limit, Rest::Value)
    }

    /// Finds the end of the line that starts here, and returns the line without its end.
    pub(super) fn next_line(&mut self, limit: usize) -> Result<Option<Range<usize>>, WireErrorKind> {
        let found = memchr(b'\n', self.unsearched());
        let line = self.give_out(found, limit, Rest::Line)?;
        if line.is_some() {
            self.pass();
        }
        Ok(line)
    }

    /// Returns the item of this length that begins behind a header of this many bytes, and takes both.
    pub(super) fn next_bytes(
        &mut self,
        header: usize,
        length: u64,
        limit: usize,
    ) -> Result<Option<Range<usize>>, WireErrorKind> {
        let whole = usize::try_from(length).ok().filter(|length| *length <= limit);
        // Of an item that is too long, the part within the limit is awaited, so that the result does not depend on the
        // chunks.
        if self.unread().len().saturating_sub(header) < whole.unwrap_or(limit) {
            return Ok(None);
        }
        let at = self.at();
        self.take(header);
        let Some(length) = whole else {
            self.skip(length);
            return Err(WireErrorKind::TooLong { limit, at });
        };
        Ok(Some(self.take(length)))
    }

    /// After the error that an item is too long: the part within the limit. It does not depend on the chunks.
    pub(super) fn allowed_part(&self, limit: usize) -> &[u8] {
        let end = self.start.saturating_add(limit).min(self.bytes.len());
        self.get(self.start..end)
    }

    /// Makes [`Window::skip_rest`] drop this many bytes.
    pub(super) fn skip(&mut self, bytes: u64) {
        self.skipping = Some(Rest::Bytes(bytes));
    }

    /// Whether bytes to be dropped have not arrived yet.
    pub(super) fn is_skipping(&self) -> bool {
        self.skipping.is_some()
    }

    /// Drops the bytes that have arrived of the rest of an item that is too long. Returns whether that was the whole rest.
    #[inline]
    pub(super) fn skip_rest(&mut self) -> Result<bool, WireErrorKind> {
        self.skipping.map_or(Ok(true), |rest| self.skip_rest_of(rest))
    }

    fn skip_rest_of(&mut self, rest: Rest) -> Result<bool, WireErrorKind> {
        self.skipping = match rest {
            Rest::Bytes(left) => {
                let taken = self.take(usize::try_from(left).unwrap_or(usize::MAX)).len() as u64;
                Some(Rest::Bytes(left - taken)).filter(|_| taken < left)
            }
            Rest::Line => {
                let found = memchr(b'\n', self.unsearched());
                self.take_searched(found);
                if found.is_some() {
                    self.pass();
                }
                Some(rest).filter(|_| found.is_none())
            }
            Rest::Value => {
                // Without a search the end was found already.
                if let Some(mut search) = self.search.take() {
                    let found = search
                        .advance(self.unsearched())
                        .map_err(|TooDeep| WireErrorKind::TooDeep { at: self.at() })?;
                    self.search = found.is_none().then_some(search);
                    self.take_searched(found);
                }
                self.start = self.searched;
                Some(rest).filter(|_| self.search.is_some())
            }
        };
        Ok(self.skipping.is_none())
    }

    pub(super) fn malformed(&self, what: &'static str) -> WireErrorKind {
        WireErrorKind::Malformed { what, at: self.at() }
    }

    /// Returns all bytes that are left.
    pub(super) fn take_rest(&mut self) -> Range<usize> {
        self.take(usize::MAX)
    }

    fn take_searched(&mut self, found: Option<usize>) {
        self.searched += found.unwrap_or(self.bytes.len() - self.searched);
        self.start = self.searched;
    }

    fn give_out(
        &mut self,
        found: Option<usize>,
        limit: usize,
        rest: Rest,
    ) -> Result<Option<Range<usize>>, WireErrorKind> {
        let searched = found.unwrap_or(self.bytes.len() - self.searched);
        self.searched += searched;
        #[cfg(test)]
        {
            self.looked_at += searched;
        }
        if self.searched - self.start > limit {
            self.skipping = Some(rest);
            return Err(WireErrorKind::TooLong { limit, at: self.at() });
        }
        Ok(found.map(|_| {
            let item = self.start..self.searched;
            self.start = self.searched;
            item
        }))
    }

    /// Clears the window but keeps its memory.
    pub(super) fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Self { bytes, ..Self::default() };
    }
}

impl fmt::Debug for Window {
    /// Shows the size; the bytes are never printed, they may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes from byte {}", self.bytes.len() - self.start, self.at())
    }
}

impl Search {
    /// How many of these bytes belong to the value; `None` if the value does not end here.
    fn advance(&mut self, bytes: &[u8]) -> Result<Option<usize>, TooDeep> {
        match self {
            _ if bytes.is_empty() => Ok(None),
            Self::Nested(nesting) => nesting.advance(bytes),
            Self::Scalar => Ok(bytes.iter().position(|&byte| ends_scalar(byte))),
            Self::Text { escaped } => {
                let mut at = usize::from(std::mem::take(escaped));
                Ok(loop {
                    let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) else {
                        break None;
                    };
                    at += found + 1;
                    if bytes.get(at - 1) == Some(&b'"') {
                        break Some(at);
                    }
                    *escaped = at == bytes.len();
                    at += 1;
                })
            }
        }
    }
}
