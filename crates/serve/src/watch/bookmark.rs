//! Bookmarks: events whose object carries only a version.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::Resource;

/// The members that a kube-apiserver 1.37 writes in a bookmark besides kind, version and metadata: those that a
/// built-in kind always has, by resource and version.
static MEMBERS: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("bookmarks.json")).unwrap_or_default());

/// Writes the bookmarks of one resource.
pub(crate) struct Bookmark {
    /// The members after the metadata: `,"spec":{}` or nothing.
    members: String,
}

impl Bookmark {
    pub(crate) fn new(resource: &Resource) -> Self {
        let known = MEMBERS.get(&format!("{}/{}", resource.qualified_name(), resource.version));
        let known = known.and_then(Value::as_object).filter(|_| !resource.typed_items);
        let members = known.into_iter().flatten();
        Self {
            members: members
                .map(|(name, value)| format!(",{}:{value}", Value::from(name.as_str())))
                .collect(),
        }
    }

    /// The body of a bookmark, in the form of [`Object`](crate::Object).
    pub(crate) fn body(&self, revision: u64, initial_end: bool) -> String {
        let annotations =
            if initial_end { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
        format!(r#""metadata":{{"resourceVersion":"{revision}"{annotations}}}{}}}"#, self.members)
    }
}
