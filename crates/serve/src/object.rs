//! One version of one object, as stored and sent.

use bytes::Bytes;
use kube_selector::LabelSet;

/// One version of one object.
///
/// The body is the JSON of the object without its first two members, `kind` and `apiVersion`: the request decides
/// whether they are present and which version they name. So the stored bytes are the sent bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Object {
    /// The namespace; empty for a cluster-wide resource.
    pub namespace: Box<str>,
    /// The name.
    pub name: Box<str>,
    /// `metadata.resourceVersion` as a number.
    pub revision: u64,
    /// `metadata.labels`, for selectors.
    pub labels: Labels,
    /// The members of the JSON object except `kind` and `apiVersion`, from the quote of the first name to the closing
    /// brace: `"metadata":{...},"spec":{...}}`. At least `metadata` is present.
    pub body: Bytes,
}

/// Labels, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(candidate, _)| (**candidate).cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// All labels, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }
}

impl LabelSet for Labels {
    fn value(&self, name: &str) -> Option<&str> {
        self.get(name)
    }
}

impl<K: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(labels: I) -> Self {
        let mut labels: Vec<_> =
            labels.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        labels.sort();
        labels.dedup_by(|next, kept| next.0 == kept.0);
        Self(labels.into())
    }
}

impl Object {
    /// Namespace and name, by which a collection is sorted.
    pub fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

/// The body is not shown, it may be a Secret.
impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Object({}/{}@{}, {} bytes)", self.namespace, self.name, self.revision, self.body.len())
    }
}
