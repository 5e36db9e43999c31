//! A place in a server for one test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use informer::{
    BackoffConfig, EncodingChoice, FactoryBuilder, Http2, HttpVersion, Informer, Layout, Object,
    ResourceType, ResourceVersion, SharedInformerFactory, Status,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config};
use serde_json::json;

use crate::server::{Server, is_older};
use testapi::Backup;
use testapi::faults::Faults;

use crate::{Kind, Needs, Proxy, Wire, status, within};

/// A namespace of a server: the test writes to it directly, the informers see it through a proxy.
pub struct Rig {
    server: Server,
    namespace: String,
    direct: Config,
    config: Config,
    client: Client,
    kind: Kind,
    /// The proxy of the informers' connections.
    pub proxy: Proxy,
    /// The requests of the informers.
    pub wire: Wire,
}

impl Rig {
    /// A namespace, named after the test, of a server that all tests may share; `None` where there is none.
    pub async fn shared(kind: Kind, test: &str) -> Option<Self> {
        Some(Self::on(Server::shared(kind, test).await?, kind, test).await)
    }

    /// As [`shared`](Self::shared), where the server is Kubernetes 1.`minor` or newer.
    pub async fn shared_since(kind: Kind, minor: u32, test: &str) -> Option<Self> {
        if is_older(kind, minor, test) { None } else { Self::shared(kind, test).await }
    }

    /// A server for this test alone.
    pub async fn own(kind: Kind, test: &str, needs: Needs) -> Option<Self> {
        Some(Self::on(Server::own(kind, test, needs).await?, kind, test).await)
    }

    /// The embedded server in its own process, for tests that measure this one: `program` is the binary
    /// `embedded_server` of this package.
    pub async fn apart(program: &Path, test: &str) -> Self {
        Self::on(Server::process(program), Kind::TestApi, test).await
    }

    async fn on(server: Server, kind: Kind, test: &str) -> Self {
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
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
        let wire = Wire::new();
        let rig = Self { server, namespace, direct, config, client, kind, proxy, wire };
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

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The faults of the embedded server.
    ///
    /// # Panics
    ///
    /// When it is another one.
    pub fn faults(&self) -> &Faults {
        self.server.embedded().api.faults()
    }

    /// The objects of the embedded server as they are now.
    ///
    /// # Panics
    ///
    /// When it is another one.
    pub fn backup(&self) -> Backup {
        self.server.embedded().api.api().backup()
    }

    /// Brings the embedded server's objects of then back, and with them its resourceVersion.
    ///
    /// # Panics
    ///
    /// When it is another one.
    pub async fn restore(&self, backup: &Backup) {
        self.server.embedded().api.restore(backup).await.expect("the port");
    }

    /// Makes a custom resource, and waits until it is served.
    pub async fn define(&self, definition: &serde_json::Value) {
        let definition: CustomResourceDefinition = typed(definition.clone());
        let definitions = Api::<CustomResourceDefinition>::all(self.client());
        let name = definition.metadata.name.clone().unwrap_or_default();
        definitions.create(&PostParams::default(), &definition).await.expect("a definition");
        let versions = definition.spec.versions.first().map(|version| version.name.as_str());
        let path = format!(
            "/apis/{}/{}/{}",
            definition.spec.group,
            versions.unwrap_or_default(),
            definition.spec.names.plural
        );
        let served = async {
            loop {
                let request = http::Request::get(&path).body(Vec::new()).expect("a request");
                if self.client.request_text(request).await.is_ok() {
                    return;
                }
            }
        };
        within(&format!("{name} being served"), served).await;
    }

    /// The file with the kubeconfig of the server's administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.server.kubeconfig()
    }

    /// The token of the server's administrator.
    pub fn token(&self) -> String {
        self.server.token()
    }

    /// Ends the server in an orderly way and starts it again.
    pub async fn restart(&self) {
        self.server.restart().await;
        self.answers().await;
    }

    /// Ends the server at once and starts it again, with nothing in its watch cache.
    pub async fn kill_restart(&self) {
        self.server.kill_restart().await;
        self.answers().await;
    }

    /// Ends the server in an orderly way, for now.
    pub async fn stop(&self) {
        self.server.stop().await;
    }

    /// Starts the server again.
    pub async fn start(&self) {
        self.server.start().await;
        self.answers().await;
    }

    /// Waits until the server answers, and with it until the client has found out which of its connections are gone.
    async fn answers(&self) {
        let asking = async { while self.client.apiserver_version().await.is_err() {} };
        within("an answer of the server", asking).await;
    }

    /// Makes old revisions of objects unknown to the server.
    pub async fn compact(&self) {
        self.server.compact().await;
    }

    /// Makes the history up to now unknown to the server: watches from there are answered with 410.
    pub async fn forget_history(&self) {
        self.compact().await;
        self.kill_restart().await;
    }

    /// A factory through the proxy, its requests recorded, its waits short.
    pub fn builder(&self) -> FactoryBuilder {
        impatient(self.builder_of(self.config()))
    }

    /// A factory with default waits for all namespaces, its requests recorded.
    pub fn builder_of(&self, config: Config) -> FactoryBuilder {
        let wire = self.wire.clone();
        let builder = SharedInformerFactory::builder(config)
            .tweak_list_options(move |resource, query| wire.tweak(resource, query))
            // Its tweak selects nothing: a saved cache is of this server.
            .server_name(self.namespace.as_str());
        match self.kind {
            Kind::Real | Kind::TestApi => builder,
            Kind::TestApiOtherwise => builder
                .http_version(HttpVersion::Http2(Http2::default()))
                .encoding(EncodingChoice::Json)
                .layout(Layout::Bytes),
        }
    }

    /// The factory of [`Rig::builder`], for the test's namespace.
    pub fn factory(&self) -> SharedInformerFactory {
        self.builder().build().expect("a factory").in_namespace(&self.namespace)
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

    /// Awaits writes, some of them at a time. Returns the newest version.
    pub async fn at_once<W: Future<Output = ResourceVersion>>(
        &self,
        writes: impl IntoIterator<Item = W>,
    ) -> ResourceVersion {
        let written = stream::iter(writes).buffer_unordered(16);
        let newer = async |a: ResourceVersion, b: ResourceVersion| if a.is_at_least(&b) { a } else { b };
        written.fold(ResourceVersion::UNSET, newer).await
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

/// Waits that are short enough for tests.
pub fn impatient(builder: FactoryBuilder) -> FactoryBuilder {
    let (first, longest) = (Duration::from_millis(20), Duration::from_millis(500));
    builder.reflector(|reflector| {
        reflector.backoff = BackoffConfig { first, longest, ..BackoffConfig::default() };
        reflector.denied_retry = Duration::from_millis(200);
    })
}

/// A config map with one value.
pub fn config_map(name: &str, value: &str) -> ConfigMap {
    typed(json!({ "metadata": { "name": name }, "data": { "value": value } }))
}

/// The definition of a custom resource with a trivial schema, and its resource type.
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

pub(crate) fn typed<T: serde::de::DeserializeOwned>(object: serde_json::Value) -> T {
    serde_json::from_value(object).expect("an object of that type")
}
