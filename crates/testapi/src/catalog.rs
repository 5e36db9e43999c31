//! The server's resources and collections, for the reading half (`serve`).

use std::sync::Arc;

use serde_json::Value;
use serve::{Catalog, Collection, Protobuf, Resource, Resources, ServerVersion};

use crate::core::{Core, group_resource};
use crate::schema::Encoder;

impl Catalog for Core {
    fn resources(&self) -> Arc<Resources> {
        Core::resources(self)
    }

    fn collection(&self, resource: &Resource) -> Option<Arc<dyn Collection>> {
        Some(Arc::new(self.store.objects(&group_resource(resource))?))
    }

    fn version(&self) -> ServerVersion {
        self.options.version.clone()
    }

    fn schemas(&self, group: &str, version: &str) -> Option<Value> {
        crate::write::schemas(self, group, version)
    }

    fn protobuf(&self, api_version: &str, kind: &str) -> Option<Arc<dyn Protobuf>> {
        Some(Arc::new(Encoder::of(api_version, kind)?))
    }
}
