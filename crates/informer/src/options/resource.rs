//! A resource of the API.

use std::fmt;

use informer_core::ObjectKey;

/// A resource of a Kubernetes API, as its requests and objects name it.
///
/// ```
/// use informer::ResourceType;
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// let deployments = ResourceType::of::<Deployment>();
/// assert_eq!(deployments.to_string(), "deployments.v1.apps");
/// assert!(deployments.namespaced);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceType {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The name in paths, as in `pods`.
    pub plural: String,
    /// The name in objects, as in `Pod`.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl ResourceType {
    /// `plural.group`, or `plural` in the core group, as `kubectl api-resources -o name` prints it.
    ///
    /// ```
    /// use informer::ResourceType;
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
    ///
    /// assert_eq!(ResourceType::of::<Deployment>().qualified_name(), "deployments.apps");
    /// assert_eq!(ResourceType::of::<Pod>().qualified_name(), "pods");
    /// ```
    pub fn qualified_name(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// `group/version`, or `version` in the core group, as in the `apiVersion` of objects.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The path of the collection, in one namespace or in all.
    pub(crate) fn path(&self, scope: &Scope) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", path_segment(&self.version)),
            group => format!("/apis/{}/{}", path_segment(group), path_segment(&self.version)),
        };
        let plural = path_segment(&self.plural);
        match scope {
            Scope::Namespace(namespace) if self.namespaced => {
                format!("{root}/namespaces/{}/{plural}", path_segment(namespace))
            }
            _ => format!("{root}/{plural}"),
        }
    }
}

impl ResourceType {
    /// The path of one object.
    pub(crate) fn object_path(&self, key: &ObjectKey) -> String {
        let scope = key.namespace().map_or(Scope::All, |namespace| Scope::Namespace(namespace.into()));
        format!("{}/{}", self.path(&scope), path_segment(key.name()))
    }
}

/// A name as one path segment (RFC 3986). Escaping keeps a malformed name from adding segments, or from taking one away, as
/// `.` and `..` do. Forms write a space as `+`, which in a path is a plus.
#[doc(hidden)]
pub fn path_segment(name: &str) -> String {
    match name {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20"),
    }
}

impl fmt::Display for ResourceType {
    /// `plural.version.group`, kubectl's syntax.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => write!(f, "{}.{}", self.plural, self.version),
            group => write!(f, "{}.{}.{group}", self.plural, self.version),
        }
    }
}

/// The scope of a list or watch: one namespace, or all of them.
pub(crate) use informer_core::Scope;
