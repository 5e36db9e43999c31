//! Texts with `*`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text in which each `*` stands for any characters, none included: `kube-*`.
///
/// ```
/// use kubediff::Glob;
///
/// assert!(Glob::new("kube-*").matches("kube-system"));
/// assert!(!Glob::new("kube").matches("kube-system"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Glob(String);

impl Glob {
    /// Every text is one.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether it stands for this text.
    pub fn matches(&self, text: &str) -> bool {
        glob(&self.0, text)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `text` is `pattern`, each `*` of which stands for any characters.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let end = pieces.pop().unwrap_or("");
    for piece in pieces {
        let Some(at) = text.find(piece) else { return false };
        text = text.get(at + piece.len()..).unwrap_or("");
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text) in
            [("*", ""), ("*", "x"), ("a*", "a"), ("*a*b*", "xaxbx"), ("a*a", "aba"), ("a.b", "a.b")]
        {
            assert!(glob(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "x"), ("a*a", "a"), ("*a*b", "ba"), ("a*", "b"), ("a", "A")] {
            assert!(!glob(pattern, text), "{pattern} {text}");
        }
    }
}
