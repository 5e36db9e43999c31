//! The resources of kube's types.

use std::any::{TypeId, type_name};

use kube_core::discovery::ApiResource;
use kube_core::metadata::PartialObjectMeta;
use kube_core::{ClusterResourceScope, DynamicObject, Resource};

use crate::options::resource::ResourceType;

impl ResourceType {
    /// The resource that a type stands for.
    pub fn of<T>() -> Self
    where
        T: Resource<DynamicType = (), Scope: 'static>,
    {
        Self {
            group: T::group(&()).into_owned(),
            version: T::version(&()).into_owned(),
            plural: T::plural(&()).into_owned(),
            kind: T::kind(&()).into_owned(),
            namespaced: TypeId::of::<T::Scope>() != TypeId::of::<ClusterResourceScope>(),
        }
    }

    /// A resource that kube's discovery found. [`SharedInformerFactory::resource`](crate::SharedInformerFactory::resource)
    /// discovers a resource without kube's types.
    pub fn discovered(resource: &ApiResource, namespaced: bool) -> Self {
        Self {
            group: resource.group.clone(),
            version: resource.version.clone(),
            plural: resource.plural.clone(),
            kind: resource.kind.clone(),
            namespaced,
        }
    }
}

/// Whether a type is kube's [`PartialObjectMeta`], for which fetching the metadata is enough.
///
/// No trait distinguishes it from other types that deserialize, but its type name does. If the compiler ever writes that
/// name differently, whole objects are fetched, and the view is the same.
pub(super) fn is_metadata<T>() -> bool {
    let generic = |name: &'static str| name.split('<').next();
    generic(type_name::<T>()) == generic(type_name::<PartialObjectMeta<DynamicObject>>())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn metadata_is_known_by_its_type() {
        assert!(is_metadata::<PartialObjectMeta<Pod>>() && is_metadata::<PartialObjectMeta<DynamicObject>>());
        assert!(!is_metadata::<Pod>() && !is_metadata::<DynamicObject>());
        assert!(!is_metadata::<Vec<PartialObjectMeta<Pod>>>());
    }
}
