//! The part of a response that came and was not given out yet.

use std::fmt;
use std::ops::Range;

use memchr::{memchr, memchr2};

use super::cursor::{ends_scalar, is_space};
use super::error::WireErrorKind;
use super::nesting::{Nesting, TooDeep};

/// Above this the buffer shrinks again when what made it grow has gone.
const KEPT_CAPACITY: usize = 256 << 10;

/// The unread bytes of a response, and how far the search for the next item's end has come: no byte is looked at twice.
#[derive(Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// Everything before it was given out.
    start: usize,
    /// Everything before it was searched.
    searched: usize,
    search: Option<Search>,
    /// How many bytes of the response are not in `bytes` any more.
    dropped: u64,
    /// How many bytes were searched, to prove that it is linear.
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

impl Window {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.drop_given_out();
        self.bytes.extend_from_slice(chunk);
    }

    /// Gives back memory that one giant item needed.
    pub(super) fn relax(&mut self) {
        if self.bytes.capacity() > KEPT_CAPACITY && self.bytes.len() - self.start <= KEPT_CAPACITY / 2 {
            self.drop_given_out();
            self.bytes.shrink_to(KEPT_CAPACITY);
        }
    }

    fn drop_given_out(&mut self) {
        // What moves up came with the last chunk, or is part of the item that is still coming and does not move again.
        self.bytes.drain(..self.start);
        self.dropped += self.start as u64;
        self.searched -= self.start;
        self.start = 0;
    }

    /// Where the response's next byte to give out is.
    pub(super) fn at(&self) -> u64 {
        self.dropped + self.start as u64
    }

    /// How many bytes of the response came.
    pub(super) fn received(&self) -> u64 {
        self.dropped + self.bytes.len() as u64
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn get(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// What came and was not given out.
    pub(super) fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Gives out the next bytes, as many as came at most.
    pub(super) fn take(&mut self, length: usize) -> Range<usize> {
        let taken = self.start..self.start.saturating_add(length).min(self.bytes.len());
        self.start = taken.end;
        self.searched = taken.end;
        taken
    }

    fn unsearched(&self) -> &[u8] {
        self.bytes.get(self.searched..).unwrap_or_default()
    }

    /// The next byte that is not white space, and passes what is before it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.start) {
            // Within an item that is still coming the first byte is its own.
            if !is_space(byte) {
                return Some(byte);
            }
            self.pass();
        }
        None
    }

    /// Passes one byte.
    pub(super) fn pass(&mut self) {
        self.start += 1;
        self.searched = self.start;
    }

    /// Finds the end of the value that starts here, and gives it out.
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
        self.give_out(found, limit)
    }

    /// Finds the end of the line that starts here, and gives it out without its end.
    pub(super) fn next_line(&mut self, limit: usize) -> Result<Option<Range<usize>>, WireErrorKind> {
        let found = memchr(b'\n', self.unsearched());
        let line = self.give_out(found, limit)?;
        if line.is_some() {
            self.pass();
        }
        Ok(line)
    }

    /// As much of an item that turned out to be too long as was allowed: the same however it came in.
    pub(super) fn allowed_part(&self, limit: usize) -> &[u8] {
        let end = self.start.saturating_add(limit).min(self.bytes.len());
        self.get(self.start..end)
    }

    /// Forgets what came of a value that turned out to be too long; whether that was all of it.
    pub(super) fn skip_value(&mut self) -> Result<bool, WireErrorKind> {
        // Without a search the end was found already.
        if let Some(mut search) = self.search.take() {
            let rest = self.unsearched();
            let found = search.advance(rest).map_err(|TooDeep| WireErrorKind::TooDeep { at: self.at() })?;
            self.searched += found.unwrap_or(rest.len());
            self.search = found.is_none().then_some(search);
        }
        self.start = self.searched;
        Ok(self.search.is_none())
    }

    /// The same of a line.
    pub(super) fn skip_line(&mut self) -> bool {
        let rest = self.unsearched();
        let found = memchr(b'\n', rest);
        self.searched += found.unwrap_or(rest.len());
        self.start = self.searched;
        if found.is_some() {
            self.pass();
        }
        found.is_some()
    }

    /// All that is left.
    pub(super) fn take_rest(&mut self) -> Range<usize> {
        self.take(usize::MAX)
    }

    fn give_out(
        &mut self,
        found: Option<usize>,
        limit: usize,
    ) -> Result<Option<Range<usize>>, WireErrorKind> {
        let searched = found.unwrap_or(self.bytes.len() - self.searched);
        self.searched += searched;
        #[cfg(test)]
        {
            self.looked_at += searched;
        }
        if self.searched - self.start > limit {
            return Err(WireErrorKind::TooLong { limit, at: self.at() });
        }
        Ok(found.map(|_| {
            let item = self.start..self.searched;
            self.start = self.searched;
            item
        }))
    }

    /// Forgets everything but the memory.
    pub(super) fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Self { bytes, ..Self::default() };
    }
}

impl fmt::Debug for Window {
    /// Says how much there is; the bytes are never printed, they may be of a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes from byte {}", self.bytes.len() - self.start, self.at())
    }
}

impl Search {
    /// How many of these bytes still belong to the value, if it ends within or before them.
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
