//! The views that are measured, and how the program reads an object through each.

use std::collections::BTreeMap;

use informer::{Informer, ResourceType, SharedInformerFactory, View};
use k8s_openapi::api::core::v1::Pod;
use kube_core::DynamicObject;
use kube_core::metadata::{ObjectMeta, PartialObjectMeta};
use serde::Deserialize;

pub trait Measured: View {
    fn informer(factory: &SharedInformerFactory, resource: ResourceType) -> Informer<Self>;
    fn metadata(&self) -> &ObjectMeta;
    fn node(&self) -> Option<&str>;
    fn ip(&self) -> Option<&str>;
    /// The image of each container; `None` if the view has no containers.
    fn images(&self) -> Option<Vec<&str>>;

    fn annotations(&self) -> Option<&BTreeMap<String, String>> {
        self.metadata().annotations.as_ref()
    }
}

impl Measured for Pod {
    fn informer(factory: &SharedInformerFactory, _resource: ResourceType) -> Informer<Self> {
        factory.informer::<Self>()
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn node(&self) -> Option<&str> {
        self.spec.as_ref()?.node_name.as_deref()
    }

    fn ip(&self) -> Option<&str> {
        self.status.as_ref()?.pod_ip.as_deref()
    }

    fn images(&self) -> Option<Vec<&str>> {
        let containers = self.spec.iter().flat_map(|spec| &spec.containers);
        Some(containers.map(|container| container.image.as_deref().unwrap_or_default()).collect())
    }
}

impl Measured for DynamicObject {
    fn informer(factory: &SharedInformerFactory, resource: ResourceType) -> Informer<Self> {
        factory.informer_of::<DynamicObject>(resource)
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn node(&self) -> Option<&str> {
        self.data["spec"]["nodeName"].as_str()
    }

    fn ip(&self) -> Option<&str> {
        self.data["status"]["podIP"].as_str()
    }

    fn images(&self) -> Option<Vec<&str>> {
        let containers = self.data["spec"]["containers"].as_array().into_iter().flatten();
        Some(containers.map(|container| container["image"].as_str().unwrap_or_default()).collect())
    }
}

/// Only the fields that this program reads.
#[derive(Deserialize)]
pub struct Declared {
    metadata: ObjectMeta,
    spec: Option<DeclaredSpec>,
    status: Option<DeclaredStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredSpec {
    node_name: Option<String>,
    containers: Vec<DeclaredContainer>,
}

#[derive(Deserialize)]
struct DeclaredContainer {
    image: Option<String>,
}

#[derive(Deserialize)]
struct DeclaredStatus {
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

impl Measured for Declared {
    fn informer(factory: &SharedInformerFactory, resource: ResourceType) -> Informer<Self> {
        factory.informer_of(resource)
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn node(&self) -> Option<&str> {
        self.spec.as_ref()?.node_name.as_deref()
    }

    fn ip(&self) -> Option<&str> {
        self.status.as_ref()?.pod_ip.as_deref()
    }

    fn images(&self) -> Option<Vec<&str>> {
        let containers = self.spec.iter().flat_map(|spec| &spec.containers);
        Some(containers.map(|container| container.image.as_deref().unwrap_or_default()).collect())
    }
}

impl Measured for PartialObjectMeta<DynamicObject> {
    fn informer(factory: &SharedInformerFactory, resource: ResourceType) -> Informer<Self> {
        factory.informer_of::<PartialObjectMeta>(resource)
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn node(&self) -> Option<&str> {
        None
    }

    fn ip(&self) -> Option<&str> {
        None
    }

    fn images(&self) -> Option<Vec<&str>> {
        None
    }
}
