//! resourceVersion: the server's version of an object, a list or a bookmark.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The version of an object or of a collection, as the server wrote it.
///
/// Two versions of one resource in one cluster compare as decimal numbers if both are numbers ([KEP-5504]: digits without a
/// leading zero, neither empty nor `0`). Any other version is opaque: it can only be equal to another.
///
/// ```
/// use std::cmp::Ordering;
/// # use informer_core as informer;
/// use informer::ResourceVersion;
///
/// let older = ResourceVersion::new("9");
/// let newer = ResourceVersion::new("10");
/// assert_eq!(older.compare(&newer), Some(Ordering::Less));
/// assert_eq!(older.compare(&ResourceVersion::new("v10")), None);
/// ```
///
/// [KEP-5504]: https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/5504-comparable-resource-version
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourceVersion(Repr);

/// Every number that etcd can reach fits in 64 bits. Longer ones (the KEP has no upper limit) are stored as text.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
enum Repr {
    Number(u64),
    Text(Arc<str>),
    #[default]
    Unset,
}

impl ResourceVersion {
    /// The absent version, written as an empty string. In a request it means "most recent".
    pub const UNSET: Self = Self(Repr::Unset);

    /// Parses a version as a server wrote it.
    pub fn new(text: &str) -> Self {
        Self(match text {
            "" => Repr::Unset,
            _ if is_number(text) => text.parse().map_or_else(|_| Repr::Text(text.into()), Repr::Number),
            _ => Repr::Text(text.into()),
        })
    }

    /// Whether the server gave no version.
    pub fn is_unset(&self) -> bool {
        matches!(self.0, Repr::Unset)
    }

    /// Whether this is unset or `0`. As the start of a watch, both mean "any version" and not a point in history.
    pub fn is_unset_or_zero(&self) -> bool {
        match &self.0 {
            Repr::Unset => true,
            Repr::Text(text) => &**text == "0",
            Repr::Number(_) => false,
        }
    }

    /// The order of the two, or `None` if they are not comparable.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Repr::Number(a), Repr::Number(b)) => Some(a.cmp(b)),
            (Repr::Number(_), Repr::Text(b)) => is_number(b).then_some(Ordering::Less),
            (Repr::Text(a), Repr::Number(_)) => is_number(a).then_some(Ordering::Greater),
            (Repr::Text(a), Repr::Text(b)) if is_number(a) && is_number(b) => {
                Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
            }
            _ => (self == other && !self.is_unset()).then_some(Ordering::Equal),
        }
    }

    /// Whether this is known to be older than `other`.
    pub fn is_older_than(&self, other: &Self) -> bool {
        self.compare(other) == Some(Ordering::Less)
    }

    /// Whether this is known to be `other` or newer.
    pub fn is_at_least(&self, other: &Self) -> bool {
        matches!(self.compare(other), Some(Ordering::Equal | Ordering::Greater))
    }
}

/// KEP-5504: digits only, not empty, and no leading zero, which also excludes `0` itself.
fn is_number(text: &str) -> bool {
    !text.starts_with('0') && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(number) => fmt::Display::fmt(number, f),
            Repr::Text(text) => f.pad(text),
            Repr::Unset => f.pad(""),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(a: &str, b: &str) -> Option<Ordering> {
        ResourceVersion::new(a).compare(&ResourceVersion::new(b))
    }

    #[test]
    fn numbers_of_any_length_compare() {
        let huge = "340282366920938463463374607431768211456";
        assert_eq!(compare("18446744073709551615", huge), Some(Ordering::Less));
        assert_eq!(compare(huge, "7"), Some(Ordering::Greater));
        assert_eq!(compare(huge, "340282366920938463463374607431768211457"), Some(Ordering::Less));
        assert_eq!(compare("99", "100"), Some(Ordering::Less));
    }

    #[test]
    fn anything_else_is_opaque() {
        for text in ["0", "007", "1a", "-1", "+1", " 1"] {
            assert_eq!(compare(text, "5"), None, "{text}");
        }
        assert_eq!(compare("abc", "abc"), Some(Ordering::Equal));
        assert_eq!(compare("", ""), None);
    }

    #[test]
    fn text_is_kept_as_it_came() {
        for text in ["", "0", "007", "18446744073709551616", "etag-x", "42"] {
            assert_eq!(ResourceVersion::new(text).to_string(), text);
        }
    }
}
