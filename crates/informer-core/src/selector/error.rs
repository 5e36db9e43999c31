//! Errors of selectors: the reason and the place.

use std::convert::Infallible;
use std::fmt;

/// A string that is not a selector, or a requirement that no selector can have.
///
/// ```
/// # use informer_core as informer;
/// use informer::Selector;
///
/// let error = "app in cart".parse::<Selector>().unwrap_err();
/// assert_eq!(error.text(), "app in cart");
/// assert_eq!(error.position(), 7);
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
    pub(super) fn labels(position: usize, reason: String, remedy: &'static str) -> Self {
        Self { what: "label", text: String::new(), position, reason, remedy }
    }

    pub(super) fn fields(position: usize, reason: String, remedy: &'static str) -> Self {
        Self { what: "field", text: String::new(), position, reason, remedy }
    }

    pub(super) fn at(self, position: usize) -> Self {
        Self { position, ..self }
    }

    pub(super) fn within(self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self }
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
