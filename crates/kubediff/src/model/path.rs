//! Where in an object something is.

use std::fmt::{self, Write as _};

use serde::{Serialize, Serializer};

pub use parse::InvalidPath;

pub(crate) use pattern::Step;
pub use pattern::{InvalidPattern, PathPattern};

pub(crate) mod find;
pub(crate) mod keys;
mod parse;
mod pattern;

/// The way from an object's root to a value, elements of lists by their key where they have one.
///
/// | step | printed |
/// |---|---|
/// | field of a map | `spec.replicas`, `metadata.annotations["example.com/team"]` |
/// | element of a list that has keys | `containers[web]`, `ports[80/TCP]` |
/// | element of a list by position | `args[2]` |
/// | element that the list has no more, by its former position | `args[was 2]` |
/// | element of a list that is a set | `finalizers[]` |
/// | into the document that a string holds | `data["app.yaml"]#server.port` |
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(Vec<Segment>);

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// A field of a map.
    Field(String),
    /// The element of a list that has this key.
    Key(String),
    /// The element at this place.
    Index(usize),
    /// The element that was at this place before: the list has it no more.
    Former(usize),
    /// One element of a list in which places mean nothing.
    Element,
    /// Into the document that the string here holds.
    Document,
}

impl Path {
    /// The steps, outermost first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    pub(crate) fn push(&mut self, segment: Segment) {
        self.0.push(segment);
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// The path with other names, if `rename` gives one.
    pub(crate) fn renamed(&self, rename: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let mut renamed = self.clone();
        for segment in &mut renamed.0 {
            if let Segment::Field(name) | Segment::Key(name) = segment
                && let Some(other) = rename(name)
            {
                *name = other;
            }
        }
        Some(renamed).filter(|renamed| renamed != self)
    }

    /// The name of the field that holds the value, however deep in a list of it the value is.
    pub(crate) fn field(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

impl FromIterator<Segment> for Path {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut dot = false;
        for segment in &self.0 {
            match segment {
                Segment::Field(name) if is_plain_field(name) => {
                    if dot {
                        f.write_char('.')?;
                    }
                    f.write_str(name)?;
                }
                Segment::Key(key) if is_plain_key(key) => write!(f, "[{key}]")?,
                Segment::Field(text) | Segment::Key(text) => write!(f, "[{}]", quoted(text))?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Former(index) => write!(f, "[was {index}]")?,
                Segment::Element => f.write_str("[]")?,
                Segment::Document => f.write_char('#')?,
            }
            dot = *segment != Segment::Document;
        }
        Ok(())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// As it is printed.
impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn is_plain_field(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '$'))
}

/// Anything that cannot be taken for a position, a set's element, a quoted text or the end of the brackets.
fn is_plain_key(key: &str) -> bool {
    !key.is_empty()
        && !key.bytes().all(|byte| byte.is_ascii_digit())
        && key.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '[' | ']' | '"' | '*' | '\\'))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
