//! Factories on kube's clients, and informers of its types.

use informer_core::View;
use kube_client::{Client, Config};
use kube_core::metadata::PartialObjectMeta;
use kube_core::{DynamicObject, Resource};

use crate::Error;
use crate::factory::{FactoryBuilder, SharedInformerFactory};
use crate::informer::Informer;
use crate::resource::ResourceType;
use crate::settings::Representation;
use crate::transport::KubeTransport;

use super::resource::is_metadata;

impl SharedInformerFactory {
    /// A factory with default options, for all namespaces, on a connection thread of its own.
    ///
    /// # Errors
    ///
    /// When the configuration's certificates or credentials cannot be used.
    pub fn new(config: Config) -> Result<Self, Error> {
        Self::builder(config).build()
    }

    /// Chooses options first. One thread of the factory's own drives the connections.
    pub fn builder(config: Config) -> FactoryBuilder {
        FactoryBuilder::with_config(config)
    }

    /// A factory on an existing kube client, whose connections stay on their runtime. Switch the client's retries off
    /// (`Config::default_retry`): they are silent, while the informer reports its own.
    ///
    /// A client hides what it was built from, so two things work only with [`SharedInformerFactory::builder`]: credentials
    /// are not refreshed after a 401 (the informer is denied until the client itself renews them, as it does with tokens
    /// that expire), and the version of HTTP is the client's ([`FactoryBuilder::http_version`] and
    /// [`FactoryBuilder::credential_timeout`] change nothing).
    pub fn builder_with_client(client: Client) -> FactoryBuilder {
        Self::builder_with_transport(KubeTransport::from_client(client))
    }

    /// The informer of a type that names its resource, as those of k8s-openapi and kube-derive do.
    ///
    /// `PartialObjectMeta<Pod>` stands for the metadata of pods, and only that is fetched: see
    /// [`metadata`](Self::metadata).
    ///
    /// ```
    /// use informer::SharedInformerFactory;
    /// use informer::kube::PartialObjectMeta;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # fn example(factory: SharedInformerFactory) {
    /// let pods = factory.informer::<Pod>();
    /// let names = factory.informer::<PartialObjectMeta<Pod>>();
    /// # }
    /// ```
    pub fn informer<T: View + Resource<DynamicType = (), Scope: 'static>>(&self) -> Informer<T> {
        self.informer_of(ResourceType::of::<T>())
    }

    /// The informer of a resource, viewed as any type: a struct with five fields costs only those.
    ///
    /// ```no_run
    /// use informer::{ResourceType, SharedInformerFactory};
    /// use k8s_openapi::api::core::v1::Node;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Capacity {
    ///     status: Status,
    /// }
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Status {
    ///     capacity: std::collections::BTreeMap<String, String>,
    /// }
    ///
    /// # fn example(factory: SharedInformerFactory) {
    /// let nodes = factory.informer_of::<Capacity>(ResourceType::of::<Node>());
    /// # }
    /// ```
    pub fn informer_of<T: View>(&self, resource: ResourceType) -> Informer<T> {
        self.view(resource, if is_metadata::<T>() { Representation::Metadata } else { Representation::Whole })
    }

    /// The informer of any resource, with objects without a schema.
    pub fn dynamic(&self, resource: ResourceType) -> Informer<DynamicObject> {
        self.informer_of(resource)
    }

    /// The informer of any resource's metadata. If this factory has an informer of the whole objects, this is a view of
    /// it. Otherwise only metadata is fetched, unless whole objects are asked for before the start.
    pub fn metadata(&self, resource: ResourceType) -> Informer<PartialObjectMeta<DynamicObject>> {
        self.informer_of(resource)
    }
}
