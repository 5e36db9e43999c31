//! A user who may or may not read: with roles where there are some, by script where not.

use http::{HeaderName, HeaderValue};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube_client::{Api, Config};
use serde_json::json;

use crate::Rig;
use crate::rig::typed;
use crate::server::{NOBODY, NOBODYS_TOKEN, Server};
use crate::within;

impl Rig {
    /// The configuration of a client that reaches the server through the proxy, as a user who may do nothing.
    pub fn nobodys_config(&self) -> Config {
        self.as_nobody(self.config())
    }

    /// Lets that user list and watch the config maps of the test's namespace.
    pub async fn allow_nobody(&self) {
        match self.server() {
            Server::Embedded(_) | Server::Process(_) => self.server().embedded().allow_nobody(),
            Server::Shared(_) | Server::Own(_) => self.bind_nobody().await,
        }
    }

    /// Lets the user do nothing again, which counts from the next request on.
    pub async fn forbid_nobody(&self) {
        match self.server() {
            Server::Embedded(_) | Server::Process(_) => self.server().embedded().forbid_nobody(),
            Server::Shared(_) | Server::Own(_) => {
                let bindings = Api::<RoleBinding>::namespaced(self.client(), self.namespace());
                bindings.delete("reader", &Default::default()).await.expect("a binding");
            }
        }
        // The server's own informers must see the change, and only a refusal shows that they have.
        let client = kube_client::Client::try_from(self.as_nobody(self.direct_config())).expect("a client");
        let maps = Api::<ConfigMap>::namespaced(client, self.namespace());
        within("a refusal", async { while maps.list(&Default::default()).await.is_ok() {} }).await;
    }

    fn as_nobody(&self, mut config: Config) -> Config {
        match self.server() {
            Server::Embedded(_) | Server::Process(_) => {
                config.auth_info.token = Some(NOBODYS_TOKEN.to_owned().into())
            }
            Server::Shared(_) | Server::Own(_) => config
                .headers
                .push((HeaderName::from_static("impersonate-user"), HeaderValue::from_static(NOBODY))),
        }
        config
    }

    async fn bind_nobody(&self) {
        let role: Role = typed(json!({
            "metadata": { "name": "reader" },
            "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"] }],
        }));
        let binding: RoleBinding = typed(json!({
            "metadata": { "name": "reader" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": NOBODY }],
        }));
        let roles = Api::<Role>::namespaced(self.client(), self.namespace());
        // It may be there from before.
        let _ = roles.create(&Default::default(), &role).await;
        let bindings = Api::<RoleBinding>::namespaced(self.client(), self.namespace());
        bindings.create(&Default::default(), &binding).await.expect("a binding");
    }
}
