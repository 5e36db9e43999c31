//! The cluster's identity: the uid of the namespace `kube-system`.

use std::time::Duration;

use kube_client::Client;
use serde_json::Value;

use super::Follow;
use super::error::WatchError;
use crate::text::words::Server;

impl Follow {
    /// The cluster's identity. From now on, each discovery checks that it is still the same.
    ///
    /// # Errors
    ///
    /// When the server does not show the namespace.
    pub(crate) async fn cluster_uid(&self) -> Result<String, WatchError> {
        let client = self.client.clone();
        let client = client.ok_or_else(|| WatchError::NoIdentity("no client can be made".to_owned()))?;
        let uid = identity(&client, &self.server, self.discovery_limit).await?;
        Ok(self.identity.get_or_init(|| uid.clone()).clone())
    }
}

pub(super) async fn identity(
    client: &Client,
    server: &Server,
    limit: Duration,
) -> Result<String, WatchError> {
    let failed = |reason: String| WatchError::NoIdentity(reason);
    let request = http::Request::get("/api/v1/namespaces/kube-system")
        .body(Vec::new())
        .map_err(|error| failed(error.to_string()))?;
    let object = match tokio::time::timeout(limit, client.request::<Value>(request)).await {
        Ok(Ok(object)) => object,
        Ok(Err(error)) => return Err(failed(server.request(&error))),
        Err(_) => return Err(failed(format!("{} does not answer", server.address))),
    };
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    uid.map(str::to_owned).ok_or_else(|| failed("the namespace has no uid".to_owned()))
}
