//! A part of an object's bytes that knows its offset.

use std::borrow::Cow;

use crate::error::{Error, ErrorKind};
use crate::wire::Malformed;

/// A string, with a replacement character for each byte that is not UTF-8. (The standard library has one for several.)
pub(crate) fn replaced(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

/// Bytes inside an object.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) bytes: &'a [u8],
    /// Their offset in the whole object.
    pub(crate) base: usize,
}

impl<'a> Part<'a> {
    /// The whole object. Refuses more than 4 GiB, because offsets are kept in 32 bits.
    pub(crate) fn whole(bytes: &'a [u8]) -> Result<Self, Error> {
        match u32::try_from(bytes.len()) {
            Ok(_) => Ok(Self { bytes, base: 0 }),
            Err(_) => Err(Error::new(ErrorKind::Malformed("the object is larger than 4 GiB"), 0)),
        }
    }

    /// The part that begins `at` bytes from here.
    #[inline]
    pub(crate) fn inner(self, bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, base: self.base + at }
    }

    #[inline]
    pub(crate) fn text(self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes).map_err(|_| Error::new(ErrorKind::NotUtf8, self.base))
    }

    #[cold]
    pub(crate) fn malformed(self, what: &'static str) -> Error {
        Error::new(ErrorKind::Malformed(what), self.base)
    }

    /// An error in the fields of this part.
    #[cold]
    pub(crate) fn wire(self, error: Malformed) -> Error {
        Error::new(ErrorKind::Malformed(error.what()), self.base + error.offset())
    }
}
