//! Errors of selectors: the reason and the place.

use std::convert::Infallible;
use std::fmt;

/// A string that is not a selector, or a requirement that no selector can have.
///
/// ```
/// use kube_selector::Selector;
///
/// let error = "app in cart".parse::<Selector>().unwrap_err();
/// assert_eq!(error.text(), "app in cart");
/// assert_eq!(error.position(), 7);
/// assert_eq!(error.reason(), "unable to parse requirement: found 'cart' expected: '('");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSelector {
    what: &'static str,
    text: String,
    position: usize,
    reason: String,
    remedy: &'static str,
}

impl InvalidSelector {
    pub(crate) fn labels(reason: String, remedy: &'static str) -> Self {
        Self { what: "label", text: String::new(), position: 0, reason, remedy }
    }

    pub(crate) fn fields(reason: String, remedy: &'static str) -> Self {
        Self { what: "field", ..Self::labels(reason, remedy) }
    }

    /// The error at an offset in bytes of a text.
    pub(crate) fn at(self, text: &str, offset: usize) -> Self {
        let position = text.get(..offset).unwrap_or_default().chars().count();
        Self { text: text.to_owned(), position, ..self }
    }

    /// The words in which kube-apiserver refuses it.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The string that was parsed; empty for a requirement that was built without one.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place in the string, counted in characters from 0. It is 0 for a requirement that was built without a string.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl std::error::Error for InvalidSelector {}

impl fmt::Display for InvalidSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, text, position, reason, remedy } = self;
        write!(f, "invalid {what} selector ")?;
        if !text.is_empty() {
            write!(f, "`{text}` at character {position}: ")?;
        }
        write!(f, "{reason}; {remedy}")
    }
}

/// A value that already is a selector cannot be invalid.
impl From<Infallible> for InvalidSelector {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
