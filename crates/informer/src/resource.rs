//! Which objects: a resource of the API, and the part of it that is looked at.

use std::fmt;

use kube_core::Resource;
use kube_core::discovery::ApiResource;

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
    /// The resource that a type stands for.
    pub fn of<T>() -> Self
    where
        T: Resource<DynamicType = (), Scope: 'static>,
    {
        let cluster = std::any::TypeId::of::<k8s_cluster_scope::Scope>();
        Self {
            group: T::group(&()).into_owned(),
            version: T::version(&()).into_owned(),
            plural: T::plural(&()).into_owned(),
            kind: T::kind(&()).into_owned(),
            namespaced: std::any::TypeId::of::<T::Scope>() != cluster,
        }
    }

    /// A resource as discovery tells of it.
    pub fn discovered(resource: &ApiResource, namespaced: bool) -> Self {
        Self {
            group: resource.group.clone(),
            version: resource.version.clone(),
            plural: resource.plural.clone(),
            kind: resource.kind.clone(),
            namespaced,
        }
    }

    /// `group/version`, or `version` in the core group, as objects say it.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The path of the collection, in one namespace or in all.
    pub(crate) fn path(&self, scope: &Scope) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", segment(&self.version)),
            group => format!("/apis/{}/{}", segment(group), segment(&self.version)),
        };
        let plural = segment(&self.plural);
        match scope {
            Scope::Namespace(namespace) if self.namespaced => {
                format!("{root}/namespaces/{}/{plural}", segment(namespace))
            }
            _ => format!("{root}/{plural}"),
        }
    }
}

/// A name as one segment of a path: it cannot leave it, whatever a configuration holds.
fn segment(name: &str) -> String {
    form_urlencoded::byte_serialize(name.as_bytes()).collect()
}

/// The scope that typed cluster-wide resources have.
mod k8s_cluster_scope {
    pub(super) type Scope = kube_core::ClusterResourceScope;
}

impl fmt::Display for ResourceType {
    /// `plural.version.group`, as kubectl takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => write!(f, "{}.{}", self.plural, self.version),
            group => write!(f, "{}.{}.{group}", self.plural, self.version),
        }
    }
}

/// Where objects are looked at.
pub(crate) use informer_core::Scope;

/// Which part of a resource is looked at: the namespaces and what the server filters by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Selection {
    /// All namespaces when empty. Sorted, without duplicates.
    pub(crate) namespaces: Vec<String>,
    pub(crate) labels: String,
    pub(crate) fields: String,
}

impl Selection {
    /// The same for a resource: one without namespaces is in none.
    pub(crate) fn of(&self, resource: &ResourceType) -> Self {
        let mut selection = self.clone();
        if !resource.namespaced {
            selection.namespaces.clear();
        }
        selection
    }

    pub(crate) fn scopes(&self) -> Vec<Scope> {
        if self.namespaces.is_empty() {
            return vec![Scope::All];
        }
        self.namespaces.iter().map(|namespace| Scope::Namespace(namespace.as_str().into())).collect()
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespaces.as_slice() {
            [] => write!(f, "all namespaces")?,
            [one] => write!(f, "namespace {one}")?,
            several => write!(f, "namespaces {}", several.join(", "))?,
        }
        for (name, selector) in [("labels", &self.labels), ("fields", &self.fields)] {
            if !selector.is_empty() {
                write!(f, ", {name} {selector}")?;
            }
        }
        Ok(())
    }
}
