//! GET of one object.

use std::sync::Arc;

use crate::fresh::until_fresh;
use crate::parameters::{parse_version, version_error};
use crate::{Collection, CollectionError, Object, Resource, ResourceRequest, ServeOptions, Status};

/// Finds the object that a request names, not older than the request demands.
pub(crate) async fn get(
    resource: &Resource,
    collection: &dyn Collection,
    request: &ResourceRequest,
    name: &str,
    options: &ServeOptions,
) -> Result<Arc<Object>, Status> {
    let version = request.query.get("resourceVersion").unwrap_or_default();
    let version = parse_version(version).map_err(version_error)?;
    until_fresh(collection, version, options.fresh_timeout).await?;
    let namespace = request.namespace.as_deref().unwrap_or_default();
    match collection.get(namespace, name, None).await {
        Ok(Some(object)) => Ok(object),
        Ok(None) | Err(CollectionError::Gone | CollectionError::Expired { .. }) => {
            Err(Status::not_found(&resource.group, &resource.plural, name))
        }
        Err(CollectionError::Failed(status)) => Err(status),
    }
}
