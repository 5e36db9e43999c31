//! One version of one object, as stored and sent.

use std::collections::BTreeMap;

use bytes::Bytes;
use kube_selector::LabelSet;

use crate::json;

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
    /// The object of a whole JSON text, with this revision as its `metadata.resourceVersion`. `None` for a text without metadata.
    ///
    /// ```
    /// let json = br#"{"apiVersion":"v1","data":{},"kind":"ConfigMap","metadata":{"labels":{"a":"b"},"resourceVersion":"5"}}"#;
    /// let object = serve::Object::read("shop", "web", 8120, json).unwrap();
    /// assert_eq!(object.labels.get("a"), Some("b"));
    /// assert_eq!(object.body, r#""data":{},"metadata":{"labels":{"a":"b"},"resourceVersion":"8120"}}"#);
    /// ```
    pub fn read(namespace: &str, name: &str, revision: u64, text: &[u8]) -> Option<Self> {
        let mut body = Vec::with_capacity(text.len() + 16);
        let mut labels = None;
        for (member, value) in json::members(text) {
            let (member, value) = (text.get(member)?, text.get(value)?);
            if matches!(member, b"\"kind\"" | b"\"apiVersion\"") {
                continue;
            }
            if !body.is_empty() {
                body.push(b',');
            }
            body.extend_from_slice(member);
            body.push(b':');
            if member == b"\"metadata\"" {
                labels = Some(labels_in(value));
                with_revision(value, revision, &mut body);
            } else {
                body.extend_from_slice(value);
            }
        }
        body.push(b'}');
        Some(Self {
            namespace: namespace.into(),
            name: name.into(),
            revision,
            labels: labels?,
            body: body.into(),
        })
    }

    /// Namespace and name, by which a collection is sorted.
    pub fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

fn labels_in(metadata: &[u8]) -> Labels {
    let labels = json::member(metadata, "labels").and_then(|labels| metadata.get(labels));
    let labels: Option<BTreeMap<String, String>> =
        labels.and_then(|labels| serde_json::from_slice(labels).ok());
    labels.unwrap_or_default().into_iter().collect()
}

/// Metadata with another `resourceVersion`.
fn with_revision(metadata: &[u8], revision: u64, out: &mut Vec<u8>) {
    let revision = format!("\"{revision}\"");
    match json::member(metadata, "resourceVersion") {
        Some(at) => {
            out.extend_from_slice(&metadata[..at.start]);
            out.extend_from_slice(revision.as_bytes());
            out.extend_from_slice(&metadata[at.end..]);
        }
        None => {
            let rest = metadata.strip_prefix(b"{").unwrap_or(metadata);
            let comma = if rest.starts_with(b"}") { "" } else { "," };
            out.extend_from_slice(format!("{{\"resourceVersion\":{revision}{comma}").as_bytes());
            out.extend_from_slice(rest);
        }
    }
}

/// The body is not shown, it may be a Secret.
impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Object({}/{}@{}, {} bytes)", self.namespace, self.name, self.revision, self.body.len())
    }
}
