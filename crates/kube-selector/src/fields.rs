//! Field selectors. Only a server evaluates them, because the selectable fields depend on the resource.
//!
//! A list of requirements separated by `,`. Each is `field=value` (or `==`) or `field!=value`. In a value, `\` escapes `\`,
//! `,` and `=`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::InvalidSelector;

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
/// use kube_selector::FieldSelector;
///
/// let selector: FieldSelector = "status.phase != Running, spec.nodeName == node-1".parse()?;
/// assert_eq!(selector.to_string(), "spec.nodeName=node-1,status.phase!=Running");
/// assert_eq!(FieldSelector::EVERYTHING.equals("metadata.name", "cart")?, "metadata.name=cart".parse()?);
/// # Ok::<(), kube_selector::InvalidSelector>(())
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
        .ok_or_else(|| InvalidSelector::fields(format!("`{field}` cannot be the path of a field"), SYNTAX))
}

impl FromStr for FieldSelector {
    type Err = InvalidSelector;

    /// Parses the syntax of `kubectl --field-selector`; the empty string selects everything.
    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let terms = terms(text).filter(|term| !term.text.trim().is_empty());
        let requirement = |term: Term<'_>| {
            let Condition { field, equal, value } = term.condition(text)?;
            let start = term.start + field.len() - field.trim_start().len();
            let field = checked(field.trim()).map_err(|error| error.at(text, start))?;
            let is = if equal { Comparison::Equal } else { Comparison::NotEqual };
            Ok(Requirement { field: field.into(), is, value: value.trim().into() })
        };
        Ok(Self::of(terms.map(requirement).collect::<Result<_, InvalidSelector>>()?))
    }
}

/// One requirement's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term<'a> {
    /// Without the commas around it.
    pub text: &'a str,
    start: usize,
}

/// A requirement as a server reads it: white space counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition<'a> {
    /// The path of the field, which a resource may not have.
    pub field: &'a str,
    /// Whether the field has the value; otherwise it has another one.
    pub equal: bool,
    /// Without escapes.
    pub value: String,
}

/// The terms between unescaped commas. A server ignores empty ones.
pub fn terms(text: &str) -> impl Iterator<Item = Term<'_>> {
    let mut is_escaped = false;
    let mut start = 0;
    text.split(move |letter| {
        let ends = letter == ',' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    })
    .map(move |term| {
        let next = start + term.len() + 1;
        Term { text: term, start: std::mem::replace(&mut start, next) }
    })
}

impl<'a> Term<'a> {
    /// Parses a term of a selector.
    ///
    /// # Errors
    ///
    /// When it has no operator, or its value a wrong escape.
    pub fn condition(self, selector: &str) -> Result<Condition<'a>, InvalidSelector> {
        let found = self.text.char_indices().find_map(|(at, _)| {
            let (field, rest) = self.text.split_at(at);
            let operators = [("!=", false), ("==", true), ("=", true)];
            operators.into_iter().find_map(|(text, equal)| Some((field, equal, rest.strip_prefix(text)?)))
        });
        let Some((field, equal, value)) = found else {
            let reason = format!("invalid selector: '{selector}'; can't understand '{}'", self.text);
            return Err(InvalidSelector::fields(reason, SYNTAX).at(selector, self.start + self.text.len()));
        };
        let start = self.start + self.text.len() - value.len();
        let value = unescaped(value).map_err(|(at, reason)| {
            let reason = format!("invalid field selector: {reason}");
            InvalidSelector::fields(reason, ESCAPES).at(selector, start + at)
        })?;
        Ok(Condition { field, equal, value })
    }
}

fn unescaped(text: &str) -> Result<String, (usize, String)> {
    let mut value = String::with_capacity(text.len());
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some((_, letter @ ('\\' | ',' | '='))) => value.push(letter),
                other => {
                    let other = other.map_or(String::new(), |(_, letter)| letter.into());
                    return Err((at, format!("invalid escape sequence: \\{other}")));
                }
            },
            '=' => return Err((at, format!("unescaped character in value: {}", u32::from(letter)))),
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
            ("a", "at character 1: invalid selector: 'a'; can't understand 'a'; write requirements"),
            ("a=b,ü", "at character 5: invalid selector: 'a=b,ü'; can't understand 'ü'"),
            ("a=b, =c", "at character 5: `` cannot be the path of a field; write requirements"),
            ("a b=c", "at character 0: `a b` cannot be"),
            ("ü=a=b", "at character 3: invalid field selector: unescaped character in value: 61; write"),
            (r"a=\x", r"at character 2: invalid field selector: invalid escape sequence: \x"),
            (r"a=b\", r"at character 3: invalid field selector: invalid escape sequence: \;"),
            ("a in (b)", "at character 8: invalid selector: 'a in (b)'; can't understand 'a in (b)'"),
        ] {
            let error = text.parse::<FieldSelector>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("invalid field selector `{text}` {message}")),
                "{text}: {error}"
            );
        }
    }
}
