//! Finding a member in JSON text without reading the rest, and leaving out empty members.
//!
//! The searched texts are bodies of objects, which the catalog has written: text that is not JSON has no members.

use std::ops::Range;

use memchr::memchr2;
use serde_json::Value;

/// An object without its members that are null, an empty text or an empty list.
pub(crate) fn without_empty(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        let is_empty = |value: &Value| {
            value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty)
        };
        members.retain(|_, value| !is_empty(value));
    }
    object
}

/// The members in the text of an object's members (with or without the opening brace): the range of each name with its quotes, and that of
/// its value.
pub(crate) fn members(text: &[u8]) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let is_between = |byte: &u8| matches!(byte, b'{' | b',' | b' ' | b'\n' | b'\t' | b'\r');
        let begin = at + text.get(at..)?.iter().position(|byte| !is_between(byte))?;
        if text[begin] != b'"' {
            return None;
        }
        let name = begin..string_end(text, begin)?;
        let mut value = name.end + text[name.end..].iter().position(|byte| *byte == b':')? + 1;
        value += text[value..].iter().position(|byte| !byte.is_ascii_whitespace())?;
        at = value_end(text, value)?;
        Some((name, value..at))
    })
}

/// The range of a member's value in the text of an object's members (with or without the opening brace).
pub(crate) fn member(text: &[u8], name: &str) -> Option<Range<usize>> {
    members(text).find_map(|(found, value)| {
        (&text[found.start + 1..found.end - 1] == name.as_bytes()).then_some(value)
    })
}

/// The range of the value at a path of members: `["metadata", "uid"]`.
pub(crate) fn path<'a>(text: &[u8], names: impl IntoIterator<Item = &'a str>) -> Option<Range<usize>> {
    let mut range = 0..text.len();
    for name in names {
        let found = member(&text[range.clone()], name)?;
        range = range.start + found.start..range.start + found.end;
    }
    Some(range)
}

fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => string_end(text, at),
        b'{' | b'[' => nested_end(text, at),
        _ => {
            let length = text[at..]
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace());
            Some(length.map_or(text.len(), |length| at + length))
        }
    }
}

fn nested_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match text.get(at)? {
            b'"' => {
                at = string_end(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The offset after the closing quote of the string that begins here.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str =
        r#""a\"}":{"metadata":1},"metadata": {"n":[{"x":"]"}],"uid":"u-1","deep":{"er":-2.5}},"last":true}"#;

    fn text<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
        path(BODY.as_bytes(), names).map(|range| &BODY[range])
    }

    #[test]
    fn members_are_found_at_every_depth() {
        assert_eq!(text(["metadata", "uid"]), Some("\"u-1\""));
        assert_eq!(text(["metadata", "n"]), Some(r#"[{"x":"]"}]"#));
        assert_eq!(text(["metadata", "deep", "er"]), Some("-2.5"));
        assert_eq!(text(["last"]), Some("true"));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for names in [&["nothing"][..], &["metadata", "nothing"], &["last", "x"], &["metadata", "uid", "x"]] {
            assert_eq!(text(names.iter().copied()), None, "{names:?}");
        }
        for broken in ["", "{", "\"a", "\"a\":", "\"a\":\"", "\"a\":[", "}"] {
            assert_eq!(member(broken.as_bytes(), "b"), None, "{broken}");
        }
    }
}
