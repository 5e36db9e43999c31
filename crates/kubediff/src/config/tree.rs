//! YAML with the place of everything in it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::place::{FieldPath, Mark, Step};

/// A value, and where it is. `Debug` shows no value: it may be a secret.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) mark: Mark,
    pub(super) content: Content,
}

#[derive(Clone)]
pub(super) enum Content {
    Nothing,
    Bool(bool),
    Whole(u64),
    /// A negative or broken number.
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
    /// An element that was taken out: those after it keep their places.
    Removed,
}

/// The name of a field, and where it is.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) mark: Mark,
    pub(super) name: String,
}

/// Text that is not YAML.
#[derive(Debug)]
pub(super) struct Malformed {
    pub(super) mark: Mark,
    pub(super) message: String,
}

impl Node {
    /// Reads one document.
    pub(super) fn read(text: &str) -> Result<Self, Malformed> {
        match serde_saphyr::from_str(text) {
            Ok(node) => Ok(node),
            // Nothing but comments.
            Err(serde_saphyr::Error::Eof { .. }) => Ok(Self { mark: Mark::START, content: Content::Nothing }),
            Err(error) => Err(Malformed::of(&error, text)),
        }
    }

    /// The field of this name of a map.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        let Content::Map(fields) = &self.content else { return None };
        fields.iter().find_map(|(key, value)| (key.name == name).then_some(value))
    }

    /// Where something is; where the innermost thing around it is, if it is not there.
    pub(super) fn mark_of(&self, path: &FieldPath) -> Mark {
        let mut node = self;
        for step in path.steps() {
            let inner = match (step, &node.content) {
                (Step::Field(name), _) => node.field(name),
                (Step::Element(at), Content::List(list)) => list.get(*at),
                (Step::Element(_), _) => None,
            };
            let Some(inner) = inner else { break };
            node = inner;
        }
        node.mark
    }

    /// Takes something out of the tree. Returns whether it was there.
    pub(super) fn remove(&mut self, path: &FieldPath) -> bool {
        let Some((last, way)) = path.steps().split_last() else { return false };
        let mut node = self;
        for step in way {
            let inner = match (step, &mut node.content) {
                (Step::Field(name), Content::Map(fields)) => {
                    fields.iter_mut().find_map(|(key, value)| (key.name == *name).then_some(value))
                }
                (Step::Element(at), Content::List(list)) => list.get_mut(*at),
                _ => None,
            };
            let Some(inner) = inner else { return false };
            node = inner;
        }
        match (last, &mut node.content) {
            (Step::Field(name), Content::Map(fields)) => {
                let before = fields.len();
                fields.retain(|(key, _)| key.name != *name);
                fields.len() < before
            }
            // The places of the others stay what they are.
            (Step::Element(at), Content::List(list)) => match list.get_mut(*at) {
                Some(element) if !matches!(element.content, Content::Removed) => {
                    element.content = Content::Removed;
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node at {:?}", self.mark)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: content, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { mark: mark(referenced), content })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: name, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { mark: mark(referenced), name })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl<'de> Visitor<'de> for AnyValue {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::Nothing)
            }

            fn visit_none<E>(self) -> Result<Content, E> {
                Ok(Content::Nothing)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
                Content::deserialize(deserializer)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
                Ok(Content::Bool(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
                Ok(Content::Whole(value))
            }

            #[expect(clippy::cast_precision_loss, reason = "no field takes a negative number")]
            fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
                Ok(u64::try_from(value).map_or(Content::Number(value as f64), Content::Whole))
            }

            /// `1e+06` is whole: Helm writes great numbers so.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is whole and within bounds"
            )]
            fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
                let is_whole = value.fract() == 0.0 && (0.0..=1e15).contains(&value);
                Ok(if is_whole { Content::Whole(value as u64) } else { Content::Number(value) })
            }

            fn visit_str<E>(self, value: &str) -> Result<Content, E> {
                Ok(Content::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Content, A::Error> {
                let mut list = Vec::new();
                while let Some(element) = elements.next_element()? {
                    list.push(element);
                }
                Ok(Content::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Content, A::Error> {
                let mut map = Vec::new();
                while let Some(field) = fields.next_entry()? {
                    map.push(field);
                }
                Ok(Content::Map(map))
            }
        }

        deserializer.deserialize_any(AnyValue)
    }
}

impl Malformed {
    /// Without an extract of the file, which could show a token.
    fn of(error: &serde_saphyr::Error, text: &str) -> Self {
        use serde_saphyr::Error;
        let mark = error.location().map_or(Mark::START, mark);
        let said = error.without_snippet().to_string();
        let message = match error.without_snippet() {
            Error::DuplicateMappingKey { key: Some(key), .. } => format!("`{key}` is there twice"),
            Error::MultipleDocuments { .. } => {
                "expected one document: take out the `---` and what follows it".to_owned()
            }
            _ => {
                // The place is told already.
                let said = said.split(" at line ").next().unwrap_or_default();
                let line =
                    usize::try_from(mark.line).ok().and_then(|line| text.lines().nth(line.saturating_sub(1)));
                let has_comment = line.is_some_and(|line| line.contains(" #"));
                let remedy = if said.starts_with("unclosed") && has_comment {
                    ": a `#` begins a comment, so that a text with it needs quotes"
                } else {
                    ""
                };
                format!("this is not YAML: {said}{remedy}")
            }
        };
        Self { mark, message }
    }
}

fn mark(location: Location) -> Mark {
    Mark { line: location.line(), column: location.column() }
}
