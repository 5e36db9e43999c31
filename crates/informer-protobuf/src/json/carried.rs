//! Copies JSON that an object carries: without white space, and checked on the way.
//!
//! `managedFields` are a third of many objects and JSON of this kind, so this is one pass without recursion.

use super::text::{self, IS_SPECIAL};
use crate::error::{Error, ErrorKind};
use crate::part::{Part, replaced};

/// Appends the one value that `part` is. At most `room` levels may lie in it.
pub(super) fn write(part: Part<'_>, room: u8, json: &mut Vec<u8>) -> Result<(), Error> {
    let text = replaced(part.bytes);
    let part = Part { bytes: text.as_bytes(), base: part.base };
    let mut copy = Copy { rest: part.bytes, json, objects: 0, depth: 0, room: room.into() };
    let copied = copy.values();
    let at = part.base + part.bytes.len() - copy.rest.len();
    copied.map_err(|cause| Error::new(cause, at))
}

struct Copy<'a, 'b> {
    rest: &'a [u8],
    json: &'b mut Vec<u8>,
    /// One bit per open level: set for an object. `room` is at most 127.
    objects: u128,
    depth: u32,
    room: u32,
}

/// The next token that the syntax allows.
#[derive(Clone, Copy)]
enum Next {
    Value,
    FirstElement,
    FirstName,
    Name,
    /// A comma or an end.
    Rest,
}

impl Copy<'_, '_> {
    fn values(&mut self) -> Result<(), ErrorKind> {
        let mut next = Next::Value;
        loop {
            let Some(&byte) = self.peek() else { return Err(ErrorKind::Json) };
            next = match (next, byte) {
                (Next::FirstElement, b']') | (Next::FirstName, b'}') => self.close(byte)?,
                (Next::FirstName | Next::Name, b'"') => {
                    self.string()?;
                    if self.peek() != Some(&b':') {
                        return Err(ErrorKind::Json);
                    }
                    self.take(1);
                    Next::Value
                }
                (Next::Value | Next::FirstElement, _) => self.value(byte)?,
                (Next::Rest, b',') => {
                    self.take(1);
                    if self.is_in_object() { Next::Name } else { Next::Value }
                }
                (Next::Rest, b'}' | b']') => self.close(byte)?,
                _ => return Err(ErrorKind::Json),
            };
            if self.depth == 0 {
                return if self.peek().is_none() { Ok(()) } else { Err(ErrorKind::Json) };
            }
        }
    }

    /// The next byte that is not white space.
    #[inline]
    fn peek(&mut self) -> Option<&u8> {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first()
    }

    /// Copies `length` bytes.
    #[inline]
    fn take(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, &[]));
        self.json.extend_from_slice(taken);
        self.rest = rest;
    }

    fn value(&mut self, first: u8) -> Result<Next, ErrorKind> {
        match first {
            b'{' | b'[' => return self.open(first == b'{'),
            b'"' => self.string()?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            _ => self.number()?,
        }
        Ok(Next::Rest)
    }

    fn open(&mut self, is_object: bool) -> Result<Next, ErrorKind> {
        if self.depth == self.room {
            return Err(ErrorKind::TooDeep);
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(is_object);
        self.take(1);
        Ok(if is_object { Next::FirstName } else { Next::FirstElement })
    }

    fn is_in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn close(&mut self, byte: u8) -> Result<Next, ErrorKind> {
        if self.is_in_object() != (byte == b'}') {
            return Err(ErrorKind::Json);
        }
        self.objects >>= 1;
        self.depth -= 1;
        self.take(1);
        Ok(Next::Rest)
    }

    fn string(&mut self) -> Result<(), ErrorKind> {
        self.take(1);
        loop {
            let special = self.rest.iter().position(|&byte| IS_SPECIAL[usize::from(byte)]);
            self.take(special.ok_or(ErrorKind::Json)?);
            match self.rest {
                [b'"', ..] => {
                    self.take(1);
                    return Ok(());
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => self.take(2),
                [b'\\', b'u', digits @ ..]
                    if digits.iter().take(4).filter(|it| it.is_ascii_hexdigit()).count() == 4 =>
                {
                    self.take(6);
                }
                [b'\\' | ..0x20, ..] => return Err(ErrorKind::Json),
                _ => self.rest = text::escape(self.rest, self.json),
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), ErrorKind> {
        if !self.rest.starts_with(word) {
            return Err(ErrorKind::Json);
        }
        self.take(word.len());
        Ok(())
    }

    fn number(&mut self) -> Result<(), ErrorKind> {
        if self.rest.first() == Some(&b'-') {
            self.take(1);
        }
        match self.rest {
            [b'0', ..] => self.take(1),
            _ => self.digits()?,
        }
        if self.rest.first() == Some(&b'.') {
            self.take(1);
            self.digits()?;
        }
        if let [b'e' | b'E', rest @ ..] = self.rest {
            self.take(if matches!(rest, [b'+' | b'-', ..]) { 2 } else { 1 });
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ErrorKind> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(ErrorKind::Json);
        }
        self.take(count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, room: u8) -> Result<String, Error> {
        let mut json = Vec::new();
        write(Part { bytes: text.as_bytes(), base: 0 }, room, &mut json)?;
        Ok(String::from_utf8(json).unwrap())
    }

    #[test]
    fn white_space_goes_and_the_rest_stays() {
        for (text, expected) in [
            (" { \"a b\" : [ 1 , -0.5e+3,true ,false, null, \"\\u00e9\\\\\" ] , \"\":{ } } ", None),
            ("[[],[{}],{\"a\":[]}]", None),
            ("\"<€\u{2029}\"", Some("\"\\u003c€\\u2029\"")),
            (" 10 ", Some("10")),
        ] {
            let plain = serde_json::from_str::<serde_json::Value>(text).unwrap();
            let ours = written(text, 9).unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&ours).unwrap(), plain);
            expected.inspect(|expected| assert_eq!(ours, *expected));
            assert!(ours.len() <= text.len() + 10);
        }
        assert_eq!(written(" { \"a b\" : [ 1 , 2 ] } ", 9).unwrap(), "{\"a b\":[1,2]}");
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "[",
            "]",
            "[1",
            "[1,",
            "[,]",
            "[1,]",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{1:1}",
            "[}",
            "{]",
            "[1}",
            "{\"a\":1]",
            "1 2",
            "01",
            "-",
            "+1",
            ".5",
            "1.",
            "1e",
            "1e+",
            "tru",
            "truefalse",
            "nul",
            "\"",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u123g\"",
            "\"\n\"",
            "'a'",
            "a",
            "[1 2]",
            "{\"a\" 1}",
        ] {
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(text).is_err(), "{text}");
            assert!(written(text, 9).is_err_and(|error| error.is_malformed()), "{text}");
        }
    }

    #[test]
    fn levels_are_counted() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(written(&nested(3), 3).is_ok());
        assert!(written(&nested(4), 3).is_err());
        assert!(written(&nested(127), 127).is_ok());
        assert!(written(&nested(128), 127).is_err());
        assert!(serde_json::from_str::<serde_json::Value>(&nested(127)).is_ok());
    }
}
