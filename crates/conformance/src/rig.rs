//! A place in a control plane for one test.

use std::net::SocketAddr;
use std::sync::{Arc, Once};
use std::time::Duration;

use control_plane::{Builder, ControlPlane};
use informer::{
    BackoffConfig, FactoryBuilder, Informer, Object, ResourceType, ResourceVersion, SharedInformerFactory,
    Status,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config};
use serde_json::json;

use crate::{Proxy, Wire, status};

/// A namespace of a control plane: the test writes to it directly, the informers see it through a proxy.
pub struct Rig {
    server: Server,
    namespace: String,
    direct: Config,
    config: Config,
    client: Client,
    /// What the informers' connections go through.
    pub proxy: Proxy,
    /// What the informers ask for.
    pub wire: Wire,
}

#[derive(Clone)]
enum Server {
    Shared(&'static ControlPlane),
    Own(Arc<ControlPlane>),
}

impl Rig {
    /// A namespace, named after the test, of the control plane that all tests share; `None` where there is none.
    pub async fn shared(test: &str) -> Option<Self> {
        let server = control_plane::shared_or_skip(test)?;
        // Before anybody uses it: a server that remembers nothing of its early days answers a watch from there with
        // 410, which tests make use of.
        static RESTARTED: Once = Once::new();
        RESTARTED.call_once(|| server.kill_restart().expect("a restart"));
        Some(Self::on(Server::Shared(server), test).await)
    }

    /// A control plane for this test alone.
    pub async fn own(test: &str, builder: Builder) -> Option<Self> {
        let server = builder.start_or_skip(test)?;
        Some(Self::on(Server::Own(Arc::new(server)), test).await)
    }

    async fn on(server: Server, test: &str) -> Self {
        let kubeconfig = Kubeconfig::read_from(server.get().kubeconfig()).expect("a kubeconfig");
        let direct = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .expect("a configuration");
        let client = Client::try_from(direct.clone()).expect("a client");
        let address =
            direct.cluster_url.authority().map(|authority| authority.as_str().parse::<SocketAddr>());
        let proxy = Proxy::to(address.expect("a URL with a host").expect("an address with a port")).await;
        let mut config = direct.clone();
        config.cluster_url = format!("https://{}", proxy.address()).parse().expect("a URL");
        let mut namespace = test.replace('_', "-");
        namespace.truncate(60);
        let namespace = namespace.trim_end_matches('-').to_owned();
        let rig = Self { server, namespace, direct, config, client, proxy, wire: Wire::new() };
        rig.add_namespace(&rig.namespace).await;
        rig
    }

    /// The test's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Makes a further namespace.
    pub async fn add_namespace(&self, name: &str) {
        let namespace: Namespace = typed(json!({ "metadata": { "name": name } }));
        let namespaces = Api::<Namespace>::all(self.client());
        namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace");
    }

    /// A client that reaches the server directly.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The configuration of clients that reach the server through the proxy.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// The configuration of clients that reach the server directly.
    pub fn direct_config(&self) -> Config {
        self.direct.clone()
    }

    /// The server itself. Its calls block: see [`Rig::control`].
    pub fn server(&self) -> &ControlPlane {
        self.server.get()
    }

    /// Does something to the server that takes its time, as a restart.
    pub async fn control<R: Send + 'static>(
        &self,
        action: impl FnOnce(&ControlPlane) -> Result<R, control_plane::Error> + Send + 'static,
    ) -> R {
        let server = self.server.clone();
        let done = tokio::task::spawn_blocking(move || action(server.get())).await;
        done.expect("no panic").expect("the control plane does it")
    }

    /// Makes the history up to now unknown to the server: watches from there are answered with 410.
    pub async fn forget_history(&self) {
        self.control(ControlPlane::compact).await;
        self.control(ControlPlane::kill_restart).await;
    }

    /// A factory for the test's namespace, through the proxy, its requests recorded, its waits short.
    pub fn builder(&self) -> FactoryBuilder {
        impatient(self.builder_of(self.config())).namespace(&self.namespace)
    }

    /// A factory with default waits for all namespaces, its requests recorded.
    pub fn builder_of(&self, config: Config) -> FactoryBuilder {
        let wire = self.wire.clone();
        SharedInformerFactory::builder(config)
            .tweak_list_options(move |resource, query| wire.tweak(resource, query))
    }

    /// The factory of [`Rig::builder`].
    pub fn factory(&self) -> SharedInformerFactory {
        self.builder().build().expect("a factory")
    }

    /// The config maps of the test's namespace, in the cache, with a watch that keeps them current.
    pub async fn synced(&self, factory: &SharedInformerFactory) -> Informer<Object> {
        let informer = factory.informer_of(ResourceType::of::<ConfigMap>());
        factory.start();
        status(&informer, |status| matches!(status, Status::Live { .. })).await;
        informer
    }

    /// The config maps of the test's namespace, on the server.
    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Makes a config map.
    pub async fn create(&self, name: &str) -> ResourceVersion {
        self.create_with(config_map(name, "")).await
    }

    /// Makes a config map as given.
    pub async fn create_with(&self, config_map: ConfigMap) -> ResourceVersion {
        let created = self.config_maps().create(&PostParams::default(), &config_map).await;
        version(&created.expect("a config map"))
    }

    /// Gives a config map another value.
    pub async fn update(&self, name: &str, value: &str) -> ResourceVersion {
        self.patch(name, json!({ "data": { "value": value } })).await
    }

    /// Changes a config map.
    pub async fn patch(&self, name: &str, patch: serde_json::Value) -> ResourceVersion {
        let patched = self.config_maps().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        version(&patched.expect("a config map"))
    }

    /// Deletes a config map.
    pub async fn delete(&self, name: &str) {
        self.config_maps().delete(name, &DeleteParams::default()).await.expect("a config map");
    }
}

impl Server {
    fn get(&self) -> &ControlPlane {
        match self {
            Self::Shared(server) => server,
            Self::Own(server) => server,
        }
    }
}

/// Waits that are short enough for tests.
pub fn impatient(builder: FactoryBuilder) -> FactoryBuilder {
    let (first, longest) = (Duration::from_millis(20), Duration::from_millis(500));
    builder
        .backoff(BackoffConfig { first, longest, ..BackoffConfig::default() })
        .denied_retry(Duration::from_millis(200))
}

/// A config map with one value.
pub fn config_map(name: &str, value: &str) -> ConfigMap {
    typed(json!({ "metadata": { "name": name }, "data": { "value": value } }))
}

/// The definition of a custom resource without a schema to speak of, and what informers call it.
pub fn custom_resource(group: &str, kind: &str) -> (CustomResourceDefinition, ResourceType) {
    let plural = format!("{}s", kind.to_lowercase());
    let definition = typed(json!({
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    }));
    let resource = ResourceType {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural,
        kind: kind.to_owned(),
        namespaced: true,
    };
    (definition, resource)
}

fn version(config_map: &ConfigMap) -> ResourceVersion {
    config_map.metadata.resource_version.as_deref().unwrap_or_default().into()
}

fn typed<T: serde::de::DeserializeOwned>(object: serde_json::Value) -> T {
    serde_json::from_value(object).expect("an object of that type")
}
