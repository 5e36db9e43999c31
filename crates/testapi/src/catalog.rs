//! The server's resources and collections, as the reading half asks for them.

use std::sync::Arc;

use serde_json::Value;
use serve::{Catalog, Collection, Resource, Resources, ServerVersion};

use crate::core::{Core, group_resource};

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
}
