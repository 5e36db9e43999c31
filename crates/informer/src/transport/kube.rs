//! The transport over kube-client.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::StatusCode;
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_client::{Client, Config};
use tower::BoxError;

use super::http2::{self, Connections, Connector};
use super::{Response, Transport, TransportError};
use crate::HttpVersion;

/// Sends requests through a kube client.
///
/// Built from a [`Config`], it can read the credentials again when the server answers 401 (tokens from files and exec
/// plugins expire), and it leaves retries to the informer, which says what it waits for. A ready-made [`Client`] can do
/// neither.
pub struct KubeTransport {
    current: Arc<RwLock<Current>>,
    /// The latest credentials that a server did not take.
    refused: Arc<AtomicU64>,
    source: Option<Arc<Source>>,
}

/// The client with the credentials as they were read last.
#[derive(Clone)]
struct Current {
    client: Client,
    /// How often they have been read.
    read: u64,
}

/// What clients are made of.
struct Source {
    config: Config,
    /// HTTP/2's, which outlive a client. With HTTP/1.1 each client has its own.
    connections: Option<Connections>,
    /// Held while credentials are read.
    reading: Mutex<()>,
}

impl KubeTransport {
    /// A transport with a client of its own, over HTTP/1.1. To be called within the tokio runtime that drives the
    /// connections.
    ///
    /// # Errors
    ///
    /// When the configuration's certificates or credentials cannot be used.
    pub fn new(config: Config) -> Result<Self, TransportError> {
        Self::with_http_version(config, HttpVersion::Http1)
    }

    /// The same over either version.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn with_http_version(mut config: Config, version: HttpVersion) -> Result<Self, TransportError> {
        // The reflector paces its own requests and tells its user about each failure; the client's retries are silent.
        config.default_retry = false;
        // A watch is silent for minutes by design; its own deadline watches over it.
        config.read_timeout = None;
        let connections = match version {
            HttpVersion::Http1 => None,
            HttpVersion::Http2(options) => {
                Some(Connections::new(options, Connector::new(&config).map_err(unusable)?))
            }
        };
        let source = Source { config, connections, reading: Mutex::default() };
        let client = source.client().map_err(unusable)?;
        Ok(Self { source: Some(Arc::new(source)), ..Self::from_client(client) })
    }

    /// A transport over an existing client. Switch its retries off (`Config::default_retry`), or failures are retried
    /// silently before the informer hears of them.
    pub fn from_client(client: Client) -> Self {
        let current = Arc::new(RwLock::new(Current { client, read: 1 }));
        Self { current, refused: Arc::default(), source: None }
    }
}

impl Source {
    fn client(&self) -> Result<Client, kube_client::Error> {
        match &self.connections {
            None => Client::try_from(self.config.clone()),
            Some(connections) => http2::client(&self.config, connections),
        }
    }

    /// Reads the credentials, unless somebody has since they were refused: a server that refuses one request refuses
    /// all.
    fn refresh(&self, current: &RwLock<Current>, refused: &AtomicU64) -> Result<(), BoxError> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let read = latest(current).read;
        if refused.load(Ordering::Acquire) < read {
            return Ok(());
        }
        if let Some(connections) = &self.connections {
            connections.renew(Connector::new(&self.config)?, http2::is_known_by_certificate(&self.config));
        }
        // A new client reads token files and runs exec plugins anew.
        let fresh = Current { client: self.client()?, read: read + 1 };
        *current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}

fn latest(current: &RwLock<Current>) -> Current {
    current.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn unusable(error: impl Into<BoxError>) -> TransportError {
    TransportError::new("the client configuration cannot be used", Some(error.into()))
}

impl Transport for KubeTransport {
    fn send(&self, request: http::Request<Vec<u8>>) -> BoxFuture<'static, Result<Response, TransportError>> {
        let Current { client, read } = latest(&self.current);
        let refused = self.refused.clone();
        async move {
            let response = client
                .send(request.map(Body::from))
                .await
                .map_err(|error| TransportError::new("the request failed", Some(Box::from(error))))?;
            if response.status() == StatusCode::UNAUTHORIZED {
                refused.fetch_max(read, Ordering::AcqRel);
            }
            let (head, body) = response.into_parts();
            let body = body.into_data_stream().map(|chunk| {
                chunk.map_err(|error| TransportError::new("the connection broke", Some(Box::from(error))))
            });
            Ok(Response { head, body: body.boxed() })
        }
        .boxed()
    }

    fn refresh_credentials(&self) -> BoxFuture<'static, Result<(), TransportError>> {
        let Some(source) = self.source.clone() else { return futures_util::future::ready(Ok(())).boxed() };
        let (current, refused) = (self.current.clone(), self.refused.clone());
        async move { source.refresh(&current, &refused).map_err(unusable) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Http2;

    #[tokio::test]
    async fn w15_who_is_refused_together_reads_the_credentials_once() {
        for version in [HttpVersion::Http1, HttpVersion::Http2(Http2::default())] {
            let config = Config::new(http::Uri::from_static("https://server.example"));
            let transport = KubeTransport::with_http_version(config, version).unwrap();
            let reads = || latest(&transport.current).read;
            let refused = |read| transport.refused.fetch_max(read, Ordering::AcqRel);
            refused(1);
            for _ in 0..100 {
                transport.refresh_credentials().await.unwrap();
            }
            assert_eq!(reads(), 2, "{version:?}");
            // A late answer to what the first ones were refused for.
            refused(1);
            transport.refresh_credentials().await.unwrap();
            assert_eq!(reads(), 2, "{version:?}");
            refused(2);
            transport.refresh_credentials().await.unwrap();
            assert_eq!(reads(), 3, "{version:?}");
        }
    }
}
