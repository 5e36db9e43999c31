//! A path as it is printed, read again.

use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{Path, Segment, is_plain_field, pattern};

/// A text that is no printed [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path as kubediff prints it")]
pub struct InvalidPath(String);

/// Reads what `Display` writes.
impl FromStr for Path {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let invalid = || InvalidPath(text.to_owned());
        let mut path = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let at_start = path.0.last().is_none_or(|last| *last == Segment::Document);
            if let Some(after) = rest.strip_prefix('#') {
                path.push(Segment::Document);
                rest = after;
            } else if let Some(inside) = rest.strip_prefix('[') {
                let (name, after) = pattern::bracket(inside).ok_or_else(invalid)?;
                path.push(match inside.starts_with('"') {
                    false => element(name),
                    true if is_plain_field(&name) => Segment::Key(name),
                    // A field, or a key that prints as a field does.
                    true => Segment::Field(name),
                });
                rest = after;
            } else {
                let name = if at_start { rest } else { rest.strip_prefix('.').ok_or_else(invalid)? };
                let end = name.find(['.', '[', '#']).unwrap_or(name.len());
                let (name, after) = name.split_at(end);
                if name.is_empty() {
                    return Err(invalid());
                }
                path.push(Segment::Field(name.to_owned()));
                rest = after;
            }
        }
        Ok(path)
    }
}

/// The text in brackets without quotes.
fn element(name: String) -> Segment {
    let former = name.strip_prefix("was ").and_then(|index| index.parse().ok());
    match (former, name.parse()) {
        (Some(index), _) => Segment::Former(index),
        (None, Ok(index)) => Segment::Index(index),
        (None, Err(_)) if name.is_empty() => Segment::Element,
        (None, Err(_)) => Segment::Key(name),
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
