//! A server, and what runs against it.

use std::time::Duration;

use informer::kube::Client;
use informer::{BackoffConfig, ResourceVersion, SharedInformerFactory};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use testapi::faults::Matcher;
use testapi::{Gvr, TestApi};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A short backoff: with the default one, a test waits for seconds after each failure.
const SHORT: BackoffConfig = BackoffConfig {
    first: Duration::from_millis(5),
    longest: Duration::from_millis(50),
    jitter: 0.0,
    reset_after: Duration::from_secs(1),
};

/// Nothing here takes that long unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) server: TestApi,
    pub(crate) factory: SharedInformerFactory,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn new(objects: impl IntoIterator<Item = Value>) -> Self {
        let server = TestApi::builder().objects(objects).start().await.unwrap();
        let factory = SharedInformerFactory::builder(server.config())
            .reflector(|reflector| reflector.backoff = SHORT)
            .build()
            .unwrap();
        let client = Client::try_from(server.config()).unwrap();
        Self { server, factory, client }
    }

    /// Waits until the server has answered so many requests.
    pub(crate) async fn answered(&self, requests: &Matcher, count: usize) {
        let answered = self.server.requests().answered(requests, count);
        tokio::time::timeout(LONG, answered).await.expect("the requests are sent");
    }

    /// The server's version now.
    pub(crate) fn version(&self) -> ResourceVersion {
        ResourceVersion::new(&self.server.api().revision().to_string())
    }
}

/// Ends a controller.
pub(crate) struct Stop(oneshot::Sender<()>);

impl Stop {
    pub(crate) fn pair() -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (stop, stopped) = oneshot::channel();
        (Self(stop), async move { stopped.await.unwrap_or_default() })
    }

    pub(crate) async fn and_wait<R>(self, running: JoinHandle<R>) -> R {
        self.and_wait_for(running, LONG).await
    }

    pub(crate) async fn and_wait_for<R>(self, running: JoinHandle<R>, limit: Duration) -> R {
        let _ = self.0.send(());
        tokio::time::timeout(limit, running).await.expect("the controller ends").expect("it does not panic")
    }
}

pub(crate) fn maps() -> Gvr {
    Gvr::new("v1", "configmaps")
}

pub(crate) fn secrets() -> Gvr {
    Gvr::new("v1", "secrets")
}

pub(crate) fn map(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": namespace, "name": name }, "data": { "of": name },
    })
}

/// A secret that a config map controls, whose name the server chooses.
pub(crate) fn child(of: &ConfigMap) -> Secret {
    let owner = informer::kube::Resource::controller_owner_ref(of, &());
    let metadata = ObjectMeta {
        namespace: of.metadata.namespace.clone(),
        generate_name: Some("child-".to_owned()),
        owner_references: owner.map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Secret { metadata, ..Secret::default() }
}
