//! A part of an object's bytes that knows where it stands.

use crate::error::{Cause, Error};
use crate::wire::Malformed;

/// Bytes inside of an object.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where in the whole they begin.
    pub(crate) base: usize,
}

impl<'a> Part<'a> {
    /// All of them; positions are kept in 32 bits.
    pub(crate) fn whole(bytes: &'a [u8]) -> Result<Self, Error> {
        match u32::try_from(bytes.len()) {
            Ok(_) => Ok(Self { bytes, base: 0 }),
            Err(_) => Err(Error::new(Cause::Malformed("the object has more than 4 GiB"), 0)),
        }
    }

    /// What begins `at` bytes from here.
    #[inline]
    pub(crate) fn inner(self, bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, base: self.base + at }
    }

    #[inline]
    pub(crate) fn text(self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes).map_err(|_| self.malformed("a string is not UTF-8"))
    }

    #[cold]
    pub(crate) fn malformed(self, what: &'static str) -> Error {
        Error::new(Cause::Malformed(what), self.base)
    }

    /// An error of the fields in here.
    #[cold]
    pub(crate) fn wire(self, error: Malformed) -> Error {
        Error::new(Cause::Malformed(error.what()), self.base + error.offset())
    }
}
