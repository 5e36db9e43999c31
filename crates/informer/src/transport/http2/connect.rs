//! Connects to an address for HTTP/2: TCP, through a proxy if one is configured, and TLS.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use kube_client::{Config, Error};
use tower::{BoxError, ServiceExt};

use super::Failure;
use super::tls::{Bytes, Tls};
use crate::transport::dial;

/// Opens connections to one server.
pub(in crate::transport) struct Connector {
    server: Uri,
    dial: Dial,
    /// `None` means plain HTTP with prior knowledge of HTTP/2 (RFC 9113, section 3.3).
    tls: Option<Tls>,
    timeout: Option<Duration>,
}

type Dial = Box<dyn Fn(Uri) -> BoxFuture<'static, Result<Box<dyn Bytes>, BoxError>> + Send + Sync>;

impl Connector {
    /// A connector to the server of the configuration, with its current certificates.
    pub(in crate::transport) fn new(config: &Config) -> Result<Self, BoxError> {
        let tls = match config.cluster_url.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => Some(Tls::new(config)?),
            _ => None,
        };
        Ok(Self {
            server: config.cluster_url.clone(),
            dial: dial(config)?,
            tls,
            timeout: config.connect_timeout,
        })
    }

    /// Connects to the server.
    pub(super) async fn connect(&self) -> Result<Box<dyn Bytes>, Failure> {
        let plain = (self.dial)(self.server.clone()).await.map_err(Failure::Connect)?;
        match &self.tls {
            Some(tls) => tls.connect(plain).await,
            None => Ok(plain),
        }
    }

    /// A connector whose connections are streams in memory.
    #[cfg(test)]
    pub(super) fn over(connector: impl Fn() -> tokio::io::DuplexStream + Send + Sync + 'static) -> Self {
        let dial = move |_| {
            let bytes: Box<dyn Bytes> = Box::new(connector());
            futures_util::future::ready(Ok(bytes)).boxed()
        };
        Self { server: Uri::from_static("http://server"), dial: Box::new(dial), tls: None, timeout: None }
    }

    /// The time limit for opening a connection, the HTTP/2 handshake included.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

fn dial(config: &Config) -> Result<Dial, BoxError> {
    let dialer = dial::dialer(config, dial::tcp()).map_err(|error| match error {
        // Its URL may have a password.
        Error::ProxyProtocolUnsupported { proxy_url } => {
            format!("a proxy of scheme {:?} is not supported", proxy_url.scheme_str()).into()
        }
        error => BoxError::from(error),
    })?;
    Ok(Box::new(move |server| {
        let connecting = dialer.clone().oneshot(server);
        async move { Ok(Box::new(TokioIo::new(connecting.await?)) as Box<dyn Bytes>) }.boxed()
    }))
}
