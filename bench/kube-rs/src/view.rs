//! The types of objects, and the fields that the benchmarks read.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::reflector::store::Writer;
use serde::de::DeserializeOwned;

pub(crate) trait View:
    Resource<DynamicType: Clone + Eq + Hash + Send + Sync>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    fn dynamic_type(resource: &ApiResource) -> Self::DynamicType;

    /// A stream of what the writer gets from now on; `None` for types that learn their resource at run time.
    fn subscribe(_writer: &Writer<Self>) -> Option<BoxStream<'static, Arc<Self>>> {
        None
    }

    /// The node of a pod and the image of each container, in the views that have them.
    fn node_and_images(&self) -> Option<(&str, Vec<&str>)> {
        None
    }
}

impl View for Pod {
    fn dynamic_type(_resource: &ApiResource) -> Self::DynamicType {}

    fn subscribe(writer: &Writer<Self>) -> Option<BoxStream<'static, Arc<Self>>> {
        writer.subscribe().map(StreamExt::boxed)
    }

    fn node_and_images(&self) -> Option<(&str, Vec<&str>)> {
        let spec = self.spec.as_ref();
        let node = spec.and_then(|it| it.node_name.as_deref()).unwrap_or_default();
        let containers = spec.into_iter().flat_map(|it| &it.containers);
        Some((node, containers.map(|it| it.image.as_deref().unwrap_or_default()).collect()))
    }
}

impl View for DynamicObject {
    fn dynamic_type(resource: &ApiResource) -> Self::DynamicType {
        resource.clone()
    }

    fn node_and_images(&self) -> Option<(&str, Vec<&str>)> {
        let spec = &self.data["spec"];
        let containers = spec["containers"].as_array().into_iter().flatten();
        let images = containers.map(|it| it["image"].as_str().unwrap_or_default());
        Some((spec["nodeName"].as_str().unwrap_or_default(), images.collect()))
    }
}

impl View for PartialObjectMeta<Pod> {
    fn dynamic_type(_resource: &ApiResource) -> Self::DynamicType {}

    fn subscribe(writer: &Writer<Self>) -> Option<BoxStream<'static, Arc<Self>>> {
        writer.subscribe().map(StreamExt::boxed)
    }
}

impl View for PartialObjectMeta<DynamicObject> {
    fn dynamic_type(resource: &ApiResource) -> Self::DynamicType {
        resource.clone()
    }
}
