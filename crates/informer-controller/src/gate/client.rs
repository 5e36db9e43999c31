//! kube clients whose connections a gate watches over.
//!
//! The stack is that of kube-client, made of its own layers: base URL, retries, credentials, headers, TLS, proxies and
//! timeouts. Its spans are left out. kube-client does not let its connector be exchanged, so it is put together here.

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo};
#[cfg(not(any(feature = "openssl", feature = "rustls")))]
use informer::kube::client::Error;
use informer::kube::client::Result;
use informer::kube::client::client::retry::RetryPolicy;
use informer::kube::client::client::{Body, ConfigExt};
use informer::kube::{Client, Config};
use informer::transport::dial;
pub use informer::transport::dial::Connector;
use tokio::net::TcpStream;
use tower::retry::RetryLayer;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt};

use super::connection::GatedConnector;
use super::{Gate, GateLayer};

/// Opens TCP connections that discard unsent bytes when they are closed.
///
/// Without that, the kernel would go on sending a cancelled request, for minutes if the network is down.
pub(super) fn tcp() -> impl Connector {
    dial::tcp().map_response(|io: TokioIo<TcpStream>| {
        // A connection that does not take the option sends no request after the deadline either.
        let _ = io.inner().set_zero_linger();
        io
    })
}

/// A client over connections of `connector`. Reads credentials, which may run a program: it blocks the thread.
pub(super) fn client(gate: &Gate, config: &Config, connector: impl Connector) -> Result<Client> {
    informer::transport::ensure_tls_provider();
    let dialer = dial::dialer(config, GatedConnector::new(connector, gate.clone()))?;
    #[cfg(feature = "rustls")]
    return stack(gate, config, config.rustls_https_connector_with_connector(dialer)?);
    #[cfg(all(feature = "openssl", not(feature = "rustls")))]
    return stack(gate, config, config.openssl_https_connector_with_connector(dialer)?);
    #[cfg(not(any(feature = "openssl", feature = "rustls")))]
    match config.cluster_url.scheme() {
        Some(scheme) if *scheme == http::uri::Scheme::HTTPS => Err(Error::TlsRequired),
        _ => stack(gate, config, dialer),
    }
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
