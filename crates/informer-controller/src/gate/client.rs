//! kube clients whose connections a gate watches over.
//!
//! The stack is that of kube-client, made of its own layers: base URL, retries, credentials, headers, TLS, proxies and
//! timeouts. Its spans are left out. kube-client does not let its connector be exchanged, so it is put together here.

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Builder;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioIo};
use informer::kube::client::client::retry::RetryPolicy;
use informer::kube::client::client::{Body, ConfigExt};
use informer::kube::client::{Error, Result};
use informer::kube::{Client, Config};
use tokio::net::TcpStream;
use tower::retry::RetryLayer;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

use super::connection::GatedConnector;
use super::{Gate, GateLayer};

/// Opens TCP connections that discard unsent bytes when they are closed.
///
/// Without that, the kernel would go on sending a cancelled request, for minutes if the network is down.
pub(super) fn tcp() -> impl Connector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.map_response(|io: TokioIo<TcpStream>| {
        // A connection that does not take the option sends no request after the deadline either.
        let _ = io.inner().set_zero_linger();
        io
    })
}

/// Opens connections to a host and port, without TLS.
///
/// Implemented for all services of this shape, such as hyper-util's `HttpConnector`.
pub trait Connector:
    Service<
        Uri,
        Response: Read + Write + Connection + Send + Unpin + 'static,
        Error: Into<BoxError>,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<C> Connector for C where
    C: Service<
            Uri,
            Response: Read + Write + Connection + Send + Unpin + 'static,
            Error: Into<BoxError>,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// A client over connections of `connector`. Reads credentials, which may run a program: it blocks the thread.
pub(super) fn client(gate: &Gate, config: &Config, connector: impl Connector) -> Result<Client> {
    informer::transport::ensure_tls_provider();
    let connector = GatedConnector::new(connector, gate.clone());
    let Some(proxy) = &config.proxy_url else { return with_tls(gate, config, connector) };
    let unsupported = || Error::ProxyProtocolUnsupported { proxy_url: Box::new(proxy.clone()) };
    let matcher = Matcher::builder().all(proxy.to_string()).build();
    let intercept = matcher.intercept(&config.cluster_url).ok_or_else(unsupported)?;
    match proxy.scheme_str() {
        Some("http") => with_tls(gate, config, tunnel(&intercept, connector)),
        #[cfg(feature = "rustls")]
        Some("https") => {
            let connector = config.rustls_https_connector_with_connector(connector)?;
            with_tls(gate, config, tunnel(&intercept, connector))
        }
        #[cfg(all(feature = "openssl", not(feature = "rustls")))]
        Some("https") => {
            let connector = config.openssl_https_connector_with_connector(connector)?;
            with_tls(gate, config, tunnel(&intercept, connector))
        }
        Some("socks5") => {
            let socks = SocksV5::new(intercept.uri().clone(), connector);
            let socks = match intercept.raw_auth() {
                Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                None => socks,
            };
            with_tls(gate, config, socks.map_err(BoxError::from))
        }
        _ => Err(unsupported()),
    }
}

fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

#[cfg(feature = "rustls")]
fn with_tls(gate: &Gate, config: &Config, connector: impl Connector) -> Result<Client> {
    stack(gate, config, config.rustls_https_connector_with_connector(connector)?)
}

#[cfg(all(feature = "openssl", not(feature = "rustls")))]
fn with_tls(gate: &Gate, config: &Config, connector: impl Connector) -> Result<Client> {
    stack(gate, config, config.openssl_https_connector_with_connector(connector)?)
}

#[cfg(not(any(feature = "openssl", feature = "rustls")))]
fn with_tls(gate: &Gate, config: &Config, connector: impl Connector) -> Result<Client> {
    if config.cluster_url.scheme() == Some(&http::uri::Scheme::HTTPS) {
        return Err(Error::TlsRequired);
    }
    stack(gate, config, connector)
}

fn stack(gate: &Gate, config: &Config, connector: impl Connector) -> Result<Client> {
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http = Builder::new(TokioExecutor::new()).build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry())))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    // Above everything: it refuses at once, and turns what closed connections cause into a clear error.
    let service = GateLayer::new(gate.clone()).layer(service);
    Ok(Client::new(service, config.default_namespace.clone()))
}
