//! The transport over kube-client.

use std::fmt;
use std::sync::Arc;
#[cfg(feature = "http2")]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_client::{Client, Config};
use tokio::time::timeout;
use tower::BoxError;

use super::credentials::{Credentials, Fresh};
#[cfg(feature = "http2")]
use super::http2::{self, Connections, Connector};
use super::layers::Layers;
use super::{Response, Transport, TransportError, plugin, tls};
#[cfg(feature = "http2")]
use crate::Http2;
use crate::HttpVersion;

/// Sends requests through a kube client.
///
/// A transport made from a [`Config`] refreshes credentials when the server answers 401, because tokens from files and
/// credential plugins expire. It leaves retries to the informer, which reports each failure. A transport made from a
/// ready-made [`Client`] does neither, and speaks the HTTP version that the client was built for.
pub struct KubeTransport {
    access: Access,
}

/// Where the client of a request comes from.
enum Access {
    /// The client is built from credentials, which are read again when the server refuses them.
    Credentials(Credentials),
    Client(Client),
}

/// How a [`KubeTransport`] connects. Later releases may add options: begin with the default.
///
/// ```
/// use std::time::Duration;
/// use informer::transport::ConnectionOptions;
///
/// let mut options = ConnectionOptions::default();
/// options.credential_timeout = Duration::from_secs(5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// HTTP/1.1 by default.
    pub http_version: HttpVersion,
    /// The time limit of a credential plugin. A plugin that takes longer is killed, and the requests that wait for it fail.
    /// 30 s by default.
    pub credential_timeout: Duration,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self { http_version: HttpVersion::default(), credential_timeout: Duration::from_secs(30) }
    }
}

/// The inputs from which clients are built.
struct Blueprint {
    config: Config,
    options: ConnectionOptions,
    layers: Layers,
    /// The connections of HTTP/2, which outlive a client. With HTTP/1.1 each client has its own.
    #[cfg(feature = "http2")]
    connections: Mutex<Option<Connections>>,
}

impl fmt::Debug for KubeTransport {
    /// Does not print credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self.access {
            Access::Credentials(_) => "configuration",
            Access::Client(_) => "client",
        };
        write!(f, "KubeTransport({of})")
    }
}

impl KubeTransport {
    /// A transport with its own client and the default options. Call it within the tokio runtime that drives
    /// the connections.
    ///
    /// # Errors
    ///
    /// When the configuration's certificates or tokens cannot be used.
    pub fn new(config: Config) -> Result<Self, TransportError> {
        Self::with_options(config, ConnectionOptions::default())
    }

    /// As [`KubeTransport::new`], with these options.
    ///
    /// A credential plugin (`exec` in a kubeconfig) runs when the first request is sent, as a child process; only requests
    /// wait for it. One run serves all requests that need its output. It runs again before the credentials expire and after
    /// a 401. If a run changes nothing, the next one follows after a growing pause of up to 30 s.
    ///
    /// # Errors
    ///
    /// As [`KubeTransport::new`]. The errors of a credential plugin are errors of the requests that wait for it: see
    /// [`TransportError::plugin`].
    pub fn with_options(config: Config, options: ConnectionOptions) -> Result<Self, TransportError> {
        Self::with_layers(config, options, Layers::default())
    }

    /// As [`KubeTransport::with_options`], with these layers around each client.
    pub(crate) fn with_layers(
        mut config: Config,
        options: ConnectionOptions,
        layers: Layers,
    ) -> Result<Self, TransportError> {
        tls::ensure_tls_provider();
        // The reflector paces its own requests and reports each failure; the client's retries are silent.
        config.default_retry = false;
        // A watch is silent for minutes by design; the reflector's silence limit watches over it.
        config.read_timeout = None;
        let runs_program =
            plugin::of(&config.auth_info).is_some() || config.auth_info.auth_provider.is_some();
        let blueprint = Arc::new(Blueprint {
            config,
            options,
            layers,
            #[cfg(feature = "http2")]
            connections: Mutex::default(),
        });
        let present =
            if runs_program { None } else { Some(blueprint.client(&blueprint.config).map_err(unusable)?) };
        let read = Box::new(move || blueprint.clone().read().boxed());
        Ok(Self { access: Access::Credentials(Credentials::new(read, present)) })
    }

    /// A transport over an existing client. Switch off the client's retries (`Config::default_retry`): they are silent, so
    /// the informer would not see those failures.
    pub fn from_client(client: Client) -> Self {
        Self { access: Access::Client(client) }
    }
}

impl Blueprint {
    /// Reads tokens and certificates, and makes a client from them. Does not block the thread.
    async fn read(self: Arc<Self>) -> Result<Fresh, BoxError> {
        let limit = self.options.credential_timeout;
        let mut config = self.config.clone();
        let mut expires = None;
        if let Some(plugin) = plugin::of(&self.config.auth_info) {
            let credential = plugin::run(plugin, limit).await?;
            expires = credential.expires;
            credential.replace_plugin(&mut config.auth_info);
        }
        // Files may be slow, and kube-client runs the commands of old `auth-provider`s inline: so this runs on a thread for
        // blocking work.
        let making = tokio::task::spawn_blocking(move || self.client(&config));
        let made = timeout(limit, making).await;
        let client = made.map_err(|_| format!("the credentials were not read within {limit:?}"))???;
        Ok(Fresh { client, expires })
    }

    fn client(&self, config: &Config) -> Result<Client, BoxError> {
        let client = match self.options.http_version {
            HttpVersion::Http1 => Client::try_from(config.clone())?,
            #[cfg(feature = "http2")]
            HttpVersion::Http2(options) => self.http2_client(config, options)?,
        };
        Ok(self.layers.around(client))
    }

    #[cfg(feature = "http2")]
    fn http2_client(&self, config: &Config, options: Http2) -> Result<Client, BoxError> {
        let connector = Connector::new(config)?;
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        match &*connections {
            Some(connections) => connections.renew(connector, http2::is_known_by_certificate(config)),
            None => *connections = Some(Connections::new(options, connector)),
        }
        let connections = connections.clone();
        connections
            .map_or_else(|| Err("there are no connections".into()), |it| Ok(http2::client(config, &it)?))
    }
}

fn unusable(error: impl Into<BoxError>) -> TransportError {
    TransportError::new("the client configuration cannot be used", Some(error.into()))
}

/// Sends a request, and resolves with the head of the answer.
async fn send(client: Client, request: http::Request<Vec<u8>>) -> Result<Response, TransportError> {
    let response = client.send(request.map(Body::from)).await;
    let response =
        response.map_err(|error| TransportError::new("the request failed", Some(Box::from(error))))?;
    let (head, body) = response.into_parts();
    let body = body.into_data_stream().map(|chunk| {
        chunk.map_err(|error| TransportError::new("the connection broke", Some(Box::from(error))))
    });
    Ok(Response { head, body: body.boxed() })
}

impl Transport for KubeTransport {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        match &self.access {
            Access::Client(client) => send(client.clone(), request).boxed(),
            Access::Credentials(credentials) => {
                let credentials = credentials.clone();
                async move {
                    let current = credentials.current().await?;
                    let response = send(current.client, request).await?;
                    credentials.answered(current.number, response.head.status);
                    Ok(response)
                }
                .boxed()
            }
        }
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        match &self.access {
            Access::Client(_) => futures_util::future::ready(Ok(())).boxed(),
            Access::Credentials(credentials) => {
                let credentials = credentials.clone();
                async move { credentials.refresh().await }.boxed()
            }
        }
    }
}
