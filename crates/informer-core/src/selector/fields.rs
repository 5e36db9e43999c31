//! Field selectors. Only the server evaluates them, because the selectable fields depend on the resource.
//!
//! A list of requirements separated by `,`. Each is `field=value` (or `==`) or `field!=value`. In a value, `\` escapes `\`,
//! `,` and `=`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::InvalidSelector;

/// A condition on an object's fields, which the server evaluates: all requirements must hold.
///
/// Every resource has `metadata.name` and `metadata.namespace`. Some built-in resources have a few more (`spec.nodeName` and
/// `status.phase` of pods), and custom resources have those that their CRD declares. A server answers 400 to a field that it
/// does not support.
///
/// A selector is normalised: white space around fields and values, the order of requirements, repetitions, and `==` instead
/// of `=` make no difference. A clone is a reference count.
///
/// ```
/// # use informer_core as informer;
/// use informer::FieldSelector;
///
/// let selector: FieldSelector = "status.phase != Running, spec.nodeName == node-1".parse()?;
/// assert_eq!(selector.to_string(), "spec.nodeName=node-1,status.phase!=Running");
/// assert_eq!(FieldSelector::EVERYTHING.equals("metadata.name", "cart")?, "metadata.name=cart".parse()?);
/// # Ok::<(), informer::InvalidSelector>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct FieldSelector(Option<Arc<[Requirement]>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Requirement {
    field: Box<str>,
    is: Comparison,
    value: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Comparison {
    Equal,
    NotEqual,
}

const SYNTAX: &str = "write requirements like `a=b` or `a!=b`, parted by commas";
const ESCAPES: &str = r"write `\,`, `\=` and `\\` for a comma, an equals sign and a backslash in a value";

impl FieldSelector {
    /// Matches every object.
    pub const EVERYTHING: Self = Self(None);

    /// The fields that the requirements name, such as `metadata.name`.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|requirements| requirements.iter()).map(|requirement| &*requirement.field)
    }

    /// Whether there is no requirement: all objects match.
    pub fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a requirement: the field has this value.
    ///
    /// # Errors
    ///
    /// When `field` cannot be the path of a field.
    pub fn equals(self, field: &str, value: &str) -> Result<Self, InvalidSelector> {
        self.with(field, Comparison::Equal, value)
    }

    /// Adds a requirement: the field does not have this value.
    ///
    /// # Errors
    ///
    /// When `field` cannot be the path of a field.
    pub fn not_equals(self, field: &str, value: &str) -> Result<Self, InvalidSelector> {
        self.with(field, Comparison::NotEqual, value)
    }

    /// Adds all requirements of `other`.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        Self::of(self.requirements().iter().chain(other.requirements()).cloned().collect())
    }

    fn with(self, field: &str, is: Comparison, value: &str) -> Result<Self, InvalidSelector> {
        let requirement = Requirement { field: checked(field)?.into(), is, value: value.into() };
        Ok(Self::of(self.requirements().iter().cloned().chain([requirement]).collect()))
    }

    fn requirements(&self) -> &[Requirement] {
        self.0.as_deref().unwrap_or_default()
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort();
        requirements.dedup();
        Self((!requirements.is_empty()).then(|| requirements.into()))
    }
}

fn checked(field: &str) -> Result<&str, InvalidSelector> {
    let is_path = !field.is_empty() && !field.contains(|letter: char| " \t\r\n=!,\\".contains(letter));
    is_path
        .then_some(field)
        .ok_or_else(|| InvalidSelector::fields(0, format!("`{field}` cannot be the path of a field"), SYNTAX))
}

impl FromStr for FieldSelector {
    type Err = InvalidSelector;

    /// Parses the syntax of `kubectl --field-selector`; the empty string selects everything.
    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let mut requirements = Vec::new();
        for (start, term) in terms(text).filter(|(_, term)| !term.trim().is_empty()) {
            // The position in characters.
            let position = |at: usize| text.get(..start + at).unwrap_or_default().chars().count();
            let requirement = requirement(term).map_err(|(at, error)| error.at(position(at)).within(text))?;
            requirements.push(requirement);
        }
        Ok(Self::of(requirements))
    }
}

/// The terms between unescaped commas, each with its start.
fn terms(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_escaped = false;
    let mut start = 0;
    text.split(move |letter| {
        let ends = letter == ',' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    })
    .map(move |term| {
        let next = start + term.len() + 1;
        (std::mem::replace(&mut start, next), term)
    })
}

/// Parses one term. The error has its position in the term.
fn requirement(term: &str) -> Result<Requirement, (usize, InvalidSelector)> {
    let found = term.char_indices().find_map(|(at, _)| {
        let rest = term.get(at..)?;
        let operators = [("!=", Comparison::NotEqual), ("==", Comparison::Equal), ("=", Comparison::Equal)];
        operators.into_iter().find_map(|(operator, is)| Some((at, is, rest.strip_prefix(operator)?)))
    });
    let Some((at, is, value)) = found else {
        let reason = "found the end where `=`, `==` or `!=` was expected".to_owned();
        return Err((term.len(), InvalidSelector::fields(0, reason, SYNTAX)));
    };
    let field = term.get(..at).unwrap_or_default();
    let begin = field.len() - field.trim_start().len();
    let field = checked(field.trim()).map_err(|error| (begin, error))?;
    let begin = term.len() - value.trim_start().len();
    let value = unescaped(value.trim()).map_err(|(at, error)| (begin + at, error))?;
    Ok(Requirement { field: field.into(), is, value: value.into() })
}

fn unescaped(text: &str) -> Result<String, (usize, InvalidSelector)> {
    let mut value = String::with_capacity(text.len());
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        let fault = |reason: String| (at, InvalidSelector::fields(0, reason, ESCAPES));
        match letter {
            '\\' => match letters.next() {
                Some((_, letter @ ('\\' | ',' | '='))) => value.push(letter),
                Some((_, letter)) => return Err(fault(format!("`\\{letter}` is not an escape"))),
                None => return Err(fault("found the end after `\\`".to_owned())),
            },
            '=' => return Err(fault("found `=` in a value".to_owned())),
            letter => value.push(letter),
        }
    }
    Ok(value)
}

impl TryFrom<&str> for FieldSelector {
    type Error = InvalidSelector;

    fn try_from(text: &str) -> Result<Self, InvalidSelector> {
        text.parse()
    }
}

impl TryFrom<&String> for FieldSelector {
    type Error = InvalidSelector;

    fn try_from(text: &String) -> Result<Self, InvalidSelector> {
        text.parse()
    }
}

impl TryFrom<String> for FieldSelector {
    type Error = InvalidSelector;

    fn try_from(text: String) -> Result<Self, InvalidSelector> {
        text.parse()
    }
}

impl From<&Self> for FieldSelector {
    fn from(selector: &Self) -> Self {
        selector.clone()
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Requirement { field, is, value }) in self.requirements().iter().enumerate() {
            let operator = match is {
                Comparison::Equal => "=",
                Comparison::NotEqual => "!=",
            };
            write!(f, "{}{field}{operator}", if index == 0 { "" } else { "," })?;
            for letter in value.chars() {
                let escape = if matches!(letter, '\\' | ',' | '=') { "\\" } else { "" };
                write!(f, "{escape}{letter}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldSelector({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_selectors_are_written_alike() {
        for (text, shown) in [
            ("", ""),
            (" , ", ""),
            ("b=2,a=1", "a=1,b=2"),
            (" a == 1 , b != 2,", "a=1,b!=2"),
            ("a=1,a=1", "a=1"),
            ("a=", "a="),
            (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
            (r"a=x\\,b=ü", r"a=x\\,b=ü"),
            ("a!=b,a=c", "a=c,a!=b"),
        ] {
            let selector: FieldSelector = text.parse().unwrap();
            assert_eq!(selector.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(selector), "{text}");
        }
    }

    #[test]
    fn names_the_selector_the_place_and_the_remedy() {
        for (text, message) in [
            ("a", "at character 1: found the end where `=`, `==` or `!=` was expected; write requirements"),
            ("a=b,ü", "at character 5: found the end"),
            ("a=b, =c", "at character 5: `` cannot be the path of a field; write requirements"),
            ("a b=c", "at character 0: `a b` cannot be"),
            ("ü=a=b", "at character 3: found `=` in a value; write"),
            (r"a=\x", r"at character 2: `\x` is not an escape"),
            (r"a=b\", r"at character 3: found the end after `\`"),
            ("a in (b)", "at character 8: found the end"),
        ] {
            let error = text.parse::<FieldSelector>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("invalid field selector `{text}` {message}")),
                "{text}: {error}"
            );
        }
    }
}
