//! Naming many paths at once.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::{Path, Segment, keys};
use crate::model::glob::glob;

/// A path with wildcards: names the values that it leads to and everything in them.
///
/// Written as a [`Path`] prints, and besides: `*` in a name or key stands for any characters, `[*]` for every element
/// of a list, `[web]` and `["web"]` for a field or an element of that name. Every element is meant, too, where a list's
/// is left out: `containers.image`. A leading dot is allowed, as kubectl writes it.
///
/// ```
/// use kubediff::PathPattern;
///
/// for text in [
///     "status",
///     ".spec.template.spec.containers[*].image",
///     r#"metadata.annotations["example.com/*"]"#,
///     r#"data["app.yaml"]#server.port"#,
/// ] {
///     text.parse::<PathPattern>()?;
/// }
/// # Ok::<(), kubediff::InvalidPattern>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    steps: Vec<Step>,
}

/// The most characters of a text that a message quotes.
const QUOTED: usize = 80;

/// The fields that say what an object is and tell it apart from others.
const IDENTITY: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.resourceVersion",
];

/// A text that is no path, or not one for this purpose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPattern(String);

/// One step of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// `.name`: a field.
    Field(String),
    /// `[name]`: a field or an element.
    Bracket(String),
    /// `#`: into a document.
    Document,
}

impl PathPattern {
    /// The names of fields and elements in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match step {
            Step::Field(name) | Step::Bracket(name) => Some(name.as_str()),
            Step::Document => None,
        })
    }

    /// Whether `path` is what this names, or lies below it.
    pub fn covers(&self, path: &Path) -> bool {
        self.follow(path).is_some_and(<[Step]>::is_empty)
    }

    /// Refuses to hide what an object is.
    pub(crate) fn may_hide(&self) -> Result<(), InvalidPattern> {
        let covered = |name: &&&str| name.parse().is_ok_and(|path| self.covers(&path));
        IDENTITY.iter().find(covered).map_or(Ok(()), |identity| {
            Err(InvalidPattern(format!(
                "`{}` would hide `{identity}`, which tells objects apart: name the field with the value, such as `metadata.annotations`",
                quoted(&self.text)
            )))
        })
    }

    /// The rest of the pattern when `path` leads towards what it names.
    pub(crate) fn below(&self, path: &Path) -> Option<&[Step]> {
        self.follow(path).filter(|rest| !rest.is_empty())
    }

    /// The same up to the string that holds the document into which it leads.
    pub(crate) fn until_document(mut self) -> Self {
        let end = self.steps.iter().position(|step| *step == Step::Document);
        self.steps.truncate(end.unwrap_or(self.steps.len()));
        self
    }

    fn follow(&self, path: &Path) -> Option<&[Step]> {
        let mut steps = self.steps.as_slice();
        for segment in path.segments() {
            let Some((step, rest)) = steps.split_first() else { break };
            if step.matches(segment) {
                steps = rest;
            } else if !step.goes_through(segment) {
                return None;
            }
        }
        Some(steps)
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl Step {
    pub(crate) fn matches(&self, segment: &Segment) -> bool {
        match (self, segment) {
            (Self::Field(pattern), Segment::Field(name)) => glob(pattern, name),
            (Self::Bracket(pattern), Segment::Field(name) | Segment::Key(name)) => glob(pattern, name),
            (Self::Bracket(pattern), Segment::Index(index)) => glob(pattern, &index.to_string()),
            (Self::Bracket(pattern), Segment::Former(index)) => {
                glob(pattern, &index.to_string()) || *pattern == format!("was {index}")
            }
            (Self::Bracket(pattern), Segment::Element) => pattern == "*" || pattern.is_empty(),
            (Self::Document, Segment::Document) => true,
            _ => false,
        }
    }

    /// The remainder of `steps` in the `element` at `place` of the list in `field`, when they lead there.
    pub(crate) fn into_element<'a>(
        steps: &'a [Self],
        place: Segment,
        field: Option<&str>,
        element: &Value,
    ) -> Option<&'a [Self]> {
        let (step, rest) = steps.split_first()?;
        if step.goes_through(&place) {
            return Some(steps);
        }
        let is_called = step.matches(&place)
            || step.matches(&Segment::Element)
            || keys::names(field, element).into_iter().any(|name| step.matches(&Segment::Key(name)));
        is_called.then_some(rest)
    }

    /// The same for what is to be hidden, where no schema is known: rather too much than too little.
    pub(crate) fn into_hidden_element<'a>(
        steps: &'a [Self],
        place: Segment,
        field: Option<&str>,
        element: &Value,
    ) -> Option<&'a [Self]> {
        Self::into_element(steps, place, field, element).or_else(|| match steps.split_first() {
            Some((Self::Bracket(key), rest)) if keys::may_mean(key, element) => Some(rest),
            _ => None,
        })
    }

    /// The same for a question, where no schema is known: a key of several parts may be that of any fields.
    pub(crate) fn into_asked_element<'a>(
        steps: &'a [Self],
        place: Segment,
        field: Option<&str>,
        element: &Value,
    ) -> Option<&'a [Self]> {
        match steps {
            [Self::Bracket(key), ..] if key.contains(['/', ',']) => {
                Self::into_hidden_element(steps, place, field, element)
            }
            _ => Self::into_element(steps, place, field, element),
        }
    }

    /// Whether the step names a field of whatever element `segment` is.
    fn goes_through(&self, segment: &Segment) -> bool {
        let is_element = !matches!(segment, Segment::Field(_) | Segment::Document);
        matches!(self, Self::Field(_)) && is_element
    }
}

impl FromStr for PathPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let mut rest = text;
        let mut steps = Vec::new();
        let mut dotted = rest.strip_prefix('.').inspect(|after| rest = after).is_some();
        let invalid = |reason: &str, rest: &str| {
            let at = text.chars().count() - rest.chars().count() + 1;
            InvalidPattern(format!(
                "`{}` is not a path: {reason} at character {at} (expected for example `spec.containers[*].image`)",
                quoted(text)
            ))
        };
        if let Some(form) = in_our_form(text) {
            return Err(invalid(&format!("expected `{}`", quoted(&form)), rest));
        }
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let (name, after) =
                    bracket(after).ok_or_else(|| invalid("the bracket does not end", rest))?;
                steps.push(Step::Bracket(name));
                rest = after;
            } else if let Some(after) = rest.strip_prefix('#') {
                steps.push(Step::Document);
                (rest, dotted) = (after, true);
                continue;
            } else {
                let end = rest.find(['.', '[', '#', ']', '"']).unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                if name.is_empty() {
                    return Err(invalid("expected a name", rest));
                }
                if !dotted && !steps.is_empty() {
                    return Err(invalid("expected a dot", rest));
                }
                steps.push(Step::Field(name.to_owned()));
                rest = after;
            }
            dotted = rest.strip_prefix('.').inspect(|after| rest = after).is_some();
            if dotted && rest.is_empty() {
                return Err(invalid("expected a name", rest));
            }
        }
        if steps.is_empty() {
            return Err(invalid("it is empty", rest));
        }
        Ok(Self { text: text.to_owned(), steps })
    }
}

/// The beginning of a text that may be of any length.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A JSON pointer (`/spec/token`), or a path as kubectl (`{.spec.token}`) or JSONPath (`$.spec.token`) has it, as one of ours. `None`
/// for any other text.
fn in_our_form(text: &str) -> Option<String> {
    let first = text.split(['.', '[', '#']).next().unwrap_or_default();
    if first.contains('/') {
        let names = text.split('/').filter(|name| !name.is_empty());
        let names = names.map(|name| name.replace("~1", "/").replace("~0", "~"));
        let segments = names.map(|name| name.parse().map_or(Segment::Field(name), Segment::Index));
        return Some(segments.collect::<Path>().to_string());
    }
    matches!(first, "$" | "{" | "{$")
        .then(|| text.trim_matches(['{', '}', '$']).trim_start_matches('.').to_owned())
}

/// The content of a bracket that was just opened, and what follows it.
pub(super) fn bracket(text: &str) -> Option<(String, &str)> {
    if !text.starts_with('"') {
        let (name, rest) = text.split_once(']')?;
        return Some((name.to_owned(), rest));
    }
    let mut strings = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let name = strings.next()?.ok()?;
    let rest = text.get(strings.byte_offset()..)?.strip_prefix(']')?;
    Some((name, rest))
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}
