//! The interface that a caller implements for a server as a whole.

use std::sync::Arc;

use serde_json::Value;

use crate::{Collection, Resource};

/// A server's resources and their collections.
pub trait Catalog: Send + Sync + 'static {
    /// All resources that are served right now.
    fn resources(&self) -> Arc<Resources>;

    /// The objects of a resource; `None` if it has just disappeared.
    fn collection(&self, resource: &Resource) -> Option<Arc<dyn Collection>>;

    /// The content of `/version`.
    fn version(&self) -> ServerVersion;

    /// The schemas of one group and version as OpenAPI `components.schemas`, if known.
    fn schemas(&self, _group: &str, _version: &str) -> Option<Value> {
        None
    }

    /// The protobuf writer for objects of a kind; `None` for a kind without messages. Metadata of custom resources are
    /// sent as `PartialObjectMetadata` of `meta.k8s.io/v1`, refusals as `Status`. Without these three, all responses
    /// are JSON. The length of a list comes before its items, so a list in protobuf is in memory as a whole before it is sent.
    fn protobuf(&self, _api_version: &str, _kind: &str) -> Option<Arc<dyn Protobuf>> {
        None
    }
}

/// Writes objects of one kind as protobuf.
pub trait Protobuf: Send + Sync + 'static {
    /// Appends the message of an object, whose members come as in [`Object::body`](crate::Object::body). Equal members
    /// always give equal bytes.
    fn write(&self, body: &[u8], out: &mut Vec<u8>);
}

/// The resources of a server, in the order of discovery: groups in the order of their first resource, within a group
/// the preferred version first.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    all: Vec<Arc<Resource>>,
}

/// The version that a server reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerVersion {
    /// `1`
    pub major: u32,
    /// `36`
    pub minor: u32,
    /// `v1.36.3`
    pub git_version: String,
}

impl Resources {
    /// All resources, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.all.iter()
    }

    /// The resource of a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.all.iter().find(|resource| {
            *resource.plural == *plural && *resource.version == *version && *resource.group == *group
        })
    }

    /// The resource of a kind.
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.all.iter().find(|resource| {
            *resource.kind == *kind && *resource.version == *version && *resource.group == *group
        })
    }
}

impl FromIterator<Arc<Resource>> for Resources {
    fn from_iter<I: IntoIterator<Item = Arc<Resource>>>(resources: I) -> Self {
        Self { all: resources.into_iter().collect() }
    }
}
