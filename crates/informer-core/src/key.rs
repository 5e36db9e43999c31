//! The identity of an object within its resource: namespace and name.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::memory::{COUNTS, allocated};

/// Names one object of a resource: `namespace/name`, or `name` if the resource has no namespaces.
///
/// A clone shares the text: 16 bytes and a reference count.
/// The uid is not part of a key: an object that was deleted and created again has the same key.
///
/// ```
/// # use informer_core as informer;
/// use informer::ObjectKey;
///
/// let key: ObjectKey = "shop/cart".parse()?;
/// assert_eq!(key.namespace(), Some("shop"));
/// assert_eq!(key.name(), "cart");
/// assert_eq!(key, ObjectKey::new(Some("shop"), "cart")?);
/// # Ok::<(), informer::InvalidKey>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ObjectKey(Arc<str>);

/// A string that is not the key of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an object key: {reason} (expected `namespace/name` or `name`)")]
pub struct InvalidKey {
    text: String,
    reason: &'static str,
}

impl ObjectKey {
    /// Makes a key from its parts. No namespace, or an empty one, means a cluster-scoped object.
    ///
    /// # Errors
    ///
    /// When the name is empty, or a part contains `/`, which the Kubernetes API conventions do not allow in names.
    pub fn new(namespace: Option<&str>, name: &str) -> Result<Self, InvalidKey> {
        let invalid =
            |reason| Err(InvalidKey { text: format!("{}/{name}", namespace.unwrap_or("")), reason });
        if name.is_empty() {
            return invalid("the name is empty");
        }
        if name.contains('/') || namespace.is_some_and(|namespace| namespace.contains('/')) {
            return invalid("a part contains `/`");
        }
        Ok(match namespace {
            None | Some("") => Self(name.into()),
            Some(namespace) => Self(format!("{namespace}/{name}").into()),
        })
    }

    /// The namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name within the namespace.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// The bytes of memory that it takes, besides the reference.
    pub(crate) fn held_bytes(&self) -> usize {
        allocated(COUNTS + self.0.len())
    }

    /// The whole key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ObjectKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        match text.split_once('/') {
            None => Self::new(None, text),
            Some(("", _)) => Err(InvalidKey { text: text.to_owned(), reason: "the namespace is empty" }),
            Some((namespace, name)) => Self::new(Some(namespace), name),
        }
    }
}

/// By namespace, then by name; cluster-scoped objects first.
impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        // Comparing the whole text would sort `a-b/x` before `a/x`.
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for ObjectKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> ObjectKey {
        text.parse().unwrap()
    }

    #[test]
    fn orders_by_namespace_then_name() {
        let mut keys = [key("a-b/x"), key("a/z"), key("node-1"), key("a/b")];
        keys.sort();
        assert_eq!(keys, [key("node-1"), key("a/b"), key("a/z"), key("a-b/x")]);
    }

    #[test]
    fn refuses_what_is_no_key() {
        for text in ["", "/", "a/", "/b", "a/b/c"] {
            assert!(text.parse::<ObjectKey>().is_err(), "{text}");
        }
    }
}
