//! A walk over one complete JSON value. It reads the requested members and skips the rest.

use std::borrow::Cow;

use memchr::memchr2;

use super::nesting::{Nesting, TooDeep};

/// An error in the bytes, with its offset. Never holds any of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) what: &'static str,
    pub(super) at: usize,
}

pub(super) const ENDS_EARLY: &str = "the JSON ends early";
pub(super) const TOO_DEEP: &str = "the JSON is nested too deep";

/// A position in the bytes of a JSON value.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
}

/// The walk through one object's members.
#[derive(Debug, Clone, Copy)]
pub(super) struct Members {
    first: bool,
}

impl Members {
    /// Continues after a member's value.
    pub(super) const AFTER_A_VALUE: Self = Self { first: false };
}

impl<'a> Cursor<'a> {
    pub(super) fn new(json: &'a [u8]) -> Self {
        Self { json, at: 0 }
    }

    /// The number of bytes before the position.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn fault(&self, what: &'static str) -> Fault {
        Fault { what: if self.at >= self.json.len() { ENDS_EARLY } else { what }, at: self.at }
    }

    /// The bytes after the position.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.json.get(self.at..).unwrap_or_default()
    }

    /// Skips white space. Returns the next byte without skipping it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.json.get(self.at)?;
            if !is_space(byte) {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Skips this byte, if it is the next one. Returns whether it was.
    pub(super) fn pass(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Enters an object.
    pub(super) fn enter_object(&mut self) -> Result<Members, Fault> {
        if self.pass(b'{') { Ok(Members { first: true }) } else { Err(self.fault("an object is expected")) }
    }

    /// The next member's name. The position is then before the member's value. `None` at the end of the object, which it
    /// skips.
    pub(super) fn next_member(&mut self, members: &mut Members) -> Result<Option<Text<'a>>, Fault> {
        if self.pass(b'}') {
            return Ok(None);
        }
        if !members.first && !self.pass(b',') {
            return Err(self.fault("`,` or `}` is expected"));
        }
        members.first = false;
        let name = self.text()?;
        if self.pass(b':') { Ok(Some(name)) } else { Err(self.fault("`:` is expected")) }
    }

    /// Reads a string.
    pub(super) fn text(&mut self) -> Result<Text<'a>, Fault> {
        if !self.pass(b'"') {
            return Err(self.fault("a string is expected"));
        }
        let start = self.at;
        let mut escaped = false;
        loop {
            let Some(found) = memchr2(b'"', b'\\', self.rest()) else {
                self.at = self.json.len();
                return Err(self.fault(ENDS_EARLY));
            };
            self.at += found + 1;
            if self.json.get(self.at - 1) == Some(&b'"') {
                let quoted = self.json.get(start - 1..self.at).unwrap_or_default();
                return Ok(Text { quoted, escaped, at: start });
            }
            escaped = true;
            self.at += 1;
        }
    }

    /// Reads a string; `None` for `null`.
    pub(super) fn text_or_null(&mut self) -> Result<Option<Cow<'a, str>>, Fault> {
        if self.pass_null() { Ok(None) } else { self.text()?.decode().map(Some) }
    }

    /// Skips a `null`, if it is the next value. Returns whether it was.
    pub(super) fn pass_null(&mut self) -> bool {
        let found = self.peek() == Some(b'n') && self.rest().starts_with(b"null");
        self.at += if found { 4 } else { 0 };
        found
    }

    /// Skips a value and returns its bytes. In objects and arrays it looks only at strings and brackets.
    pub(super) fn skip_value(&mut self) -> Result<&'a [u8], Fault> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => drop(self.text()?),
            Some(b'{' | b'[') => self.leave(0)?,
            _ => {
                let scalar = self.rest();
                let length = scalar.iter().position(|&byte| ends_scalar(byte)).unwrap_or(scalar.len());
                if length == 0 {
                    return Err(self.fault("a value is expected"));
                }
                self.at += length;
            }
        }
        Ok(self.json.get(start..self.at).unwrap_or_default())
    }

    /// Skips everything up to the end of the object or array that is this many levels up.
    pub(super) fn leave(&mut self, depth: u32) -> Result<(), Fault> {
        match Nesting::inside(depth).advance(self.rest()) {
            Ok(Some(length)) => {
                self.at += length;
                Ok(())
            }
            Ok(None) => {
                self.at = self.json.len();
                Err(self.fault(ENDS_EARLY))
            }
            Err(TooDeep) => Err(self.fault(TOO_DEEP)),
        }
    }

    /// Fails if anything but white space is left.
    pub(super) fn expect_end(&mut self) -> Result<(), Fault> {
        if self.peek().is_none() { Ok(()) } else { Err(self.fault("nothing more is expected")) }
    }
}

/// A string that was found and not yet decoded.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    quoted: &'a [u8],
    escaped: bool,
    at: usize,
}

impl<'a> Text<'a> {
    fn inner(&self) -> &'a [u8] {
        self.quoted.get(1..self.quoted.len().saturating_sub(1)).unwrap_or_default()
    }

    /// The offset of its opening quote.
    pub(super) fn start(&self) -> usize {
        self.at - 1
    }

    /// The string, for comparison with known names. An invalid string equals none of them.
    pub(super) fn bytes(&self) -> Cow<'a, [u8]> {
        if !self.escaped {
            return Cow::Borrowed(self.inner());
        }
        self.decode().map_or(Cow::Borrowed(self.inner()), |text| Cow::Owned(text.into_owned().into_bytes()))
    }

    /// The string with its escapes resolved.
    pub(super) fn decode(&self) -> Result<Cow<'a, str>, Fault> {
        let fault = |what| Fault { what, at: self.at };
        if self.escaped {
            // Escapes are rare, and have special cases such as surrogate pairs, which serde_json handles.
            let text = serde_json::from_slice::<String>(self.quoted);
            return text
                .map(Cow::Owned)
                .map_err(|_| fault("a string has an invalid escape, character or encoding"));
        }
        let inner = self.inner();
        if inner.iter().any(|&byte| byte < b' ') {
            return Err(fault("a string has an unescaped control character"));
        }
        std::str::from_utf8(inner).map(Cow::Borrowed).map_err(|_| fault("a string is not UTF-8"))
    }
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

pub(super) fn ends_scalar(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b',' | b':' | b'"' | b'[' | b']' | b'{' | b'}')
}
