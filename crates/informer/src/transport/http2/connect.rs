//! Connects to an address for HTTP/2: TCP, through a proxy if one is configured, and TLS.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use kube_client::Config;
#[cfg(feature = "rustls")]
use kube_client::client::ConfigExt;
use tower::{BoxError, Service, ServiceExt};

use super::Failure;
use super::tls::{Bytes, Tls};

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
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let Some(proxy) = &config.proxy_url else { return Ok(over(tcp)) };
    let matcher = Matcher::builder().all(proxy.to_string()).build();
    let intercept = matcher.intercept(&config.cluster_url);
    let intercept =
        intercept.ok_or_else(|| format!("the proxy of scheme {:?} is not supported", proxy.scheme_str()))?;
    match proxy.scheme_str() {
        Some("http") => Ok(over(tunnel(&intercept, tcp))),
        #[cfg(feature = "rustls")]
        Some("https") => Ok(over(tunnel(&intercept, config.rustls_https_connector_with_connector(tcp)?))),
        Some("socks5") => {
            let socks = SocksV5::new(intercept.uri().clone(), tcp);
            Ok(over(match intercept.raw_auth() {
                Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                None => socks,
            }))
        }
        scheme => Err(format!("a proxy of scheme {scheme:?} is not supported").into()),
    }
}

fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

fn over<C>(connector: C) -> Dial
where
    C: Service<Uri, Future: Send, Error: Into<BoxError>> + Clone + Send + Sync + 'static,
    TokioIo<C::Response>: Bytes + 'static,
{
    Box::new(move |server| {
        let connecting = connector.clone().oneshot(server);
        async move {
            let bytes = connecting.await.map_err(Into::into)?;
            Ok(Box::new(TokioIo::new(bytes)) as Box<dyn Bytes>)
        }
        .boxed()
    })
}
