//! The transport over kube-client.

use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_client::{Client, Config};

use super::{Response, Transport, TransportError};

/// Sends requests through a kube client.
///
/// Built from a [`Config`], it can read the credentials again when the server answers 401 (tokens from files and exec
/// plugins expire), and it leaves retries to the informer, which says what it waits for. A ready-made [`Client`] can do
/// neither.
pub struct KubeTransport {
    client: Arc<RwLock<Client>>,
    config: Option<Config>,
}

impl KubeTransport {
    /// A transport with a client of its own. To be called within the tokio runtime that drives the connections.
    ///
    /// # Errors
    ///
    /// When the configuration's certificates or credentials cannot be used.
    pub fn new(mut config: Config) -> Result<Self, TransportError> {
        // The reflector paces its own requests and tells its user about each failure; the client's retries are silent.
        config.default_retry = false;
        // A watch is silent for minutes by design; its own deadline watches over it.
        config.read_timeout = None;
        let client = build(&config)?;
        Ok(Self { client: Arc::new(RwLock::new(client)), config: Some(config) })
    }

    /// A transport over an existing client. Switch its retries off (`Config::default_retry`), or failures are retried
    /// silently before the informer hears of them.
    pub fn from_client(client: Client) -> Self {
        Self { client: Arc::new(RwLock::new(client)), config: None }
    }
}

fn build(config: &Config) -> Result<Client, TransportError> {
    Client::try_from(config.clone()).map_err(|error| {
        TransportError::new("the client configuration cannot be used", Some(Box::from(error)))
    })
}

impl Transport for KubeTransport {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        let client = self.client.read().unwrap_or_else(PoisonError::into_inner).clone();
        async move {
            let response = client
                .send(request.map(Body::from))
                .await
                .map_err(|error| TransportError::new("the request failed", Some(Box::from(error))))?;
            let (head, body) = response.into_parts();
            let body = body.into_data_stream().map(|chunk| {
                chunk.map_err(|error| TransportError::new("the connection broke", Some(Box::from(error))))
            });
            Ok(Response { head, body: body.boxed() })
        }
        .boxed()
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        let Some(config) = self.config.clone() else { return futures_util::future::ready(Ok(())).boxed() };
        let client = self.client.clone();
        async move {
            // A new client reads token files and runs exec plugins anew.
            let fresh = build(&config)?;
            *client.write().unwrap_or_else(PoisonError::into_inner) = fresh;
            Ok(())
        }
        .boxed()
    }
}
