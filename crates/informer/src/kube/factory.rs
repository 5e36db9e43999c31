//! Factories on kube's clients, and informers of its types.

use informer_core::View;
use kube_client::{Client, Config};
use kube_core::Resource;

use crate::Error;
use crate::factory::{FactoryBuilder, SharedInformerFactory};
use crate::informer::Informer;
use crate::options::resource::ResourceType;
use crate::options::settings::Representation;
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

    /// Starts to build a factory with options. The factory drives its connections on one thread of its own.
    pub fn builder(config: Config) -> FactoryBuilder {
        FactoryBuilder::with_config(config)
    }

    /// Starts to build a factory on an existing kube client, whose connections stay on their runtime. Switch off the
    /// client's retries (`Config::default_retry`): they are silent, while the informer reports its own.
    ///
    /// A client does not show its configuration, so two things work only with [`SharedInformerFactory::builder`]. First,
    /// credentials are refreshed after a 401. With a client, the informer is denied until the client itself renews them, as
    /// it does with tokens that expire. Second, the HTTP version can be chosen. With a client,
    /// [`FactoryBuilder::http_version`] and [`FactoryBuilder::credential_timeout`] have no effect. If the client is there for
    /// its layers, give these to [`FactoryBuilder::client_layer`] instead.
    pub fn builder_with_client(client: Client) -> FactoryBuilder {
        Self::builder_with_transport(KubeTransport::from_client(client))
    }

    /// The informer of a type that names its resource, as types of k8s-openapi and kube-derive do.
    ///
    /// `PartialObjectMeta<Pod>` is the type for the metadata of pods, and fetches only that: see
    /// [`informer_of`](Self::informer_of).
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

    /// The informer of a resource, viewed as any type: a struct with five fields costs the decoding of five fields.
    ///
    /// [`DynamicObject`](crate::kube::DynamicObject) needs no schema. A
    /// [`PartialObjectMeta`](crate::kube::PartialObjectMeta) is the metadata: if this factory has an informer of the whole
    /// objects, the result is a view of that. Otherwise it fetches only metadata, unless the program asks for whole objects
    /// before the start.
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
}
