//! A value without secrets, which may be shown.

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

/// Something without secrets. Code that prints, stores or sends content of objects takes it in this form.
///
/// Only [`Secrets`](crate::Secrets) makes one of an object or a text; the rest of this crate derives further ones from
/// those. It reads as what it holds:
///
/// ```
/// use kubediff::{Gvk, Redacted, Secrets};
/// use serde_json::{Value, json};
///
/// let secrets = Secrets::with_random_key()?;
/// let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "aHVudGVyMg=="}});
/// let redacted: Redacted<Value> = secrets.redact(&Gvk::new("v1", "Secret"), secret);
/// assert!(redacted["data"]["password"].as_str().unwrap().ends_with(" 7 bytes>"));
/// # Ok::<(), kubediff::NoRandomKey>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    /// The caller has taken the secrets out, or has made it of redacted parts alone.
    pub(crate) fn vouched(inner: T) -> Self {
        Self(inner)
    }

    /// The inner value, for code that may change it.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Redacted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'a, T> IntoIterator for &'a Redacted<Vec<T>> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: fmt::Debug> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize> Serialize for Redacted<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
