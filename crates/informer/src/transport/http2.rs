//! HTTP/2: requests are streams of a few connections. kube-client's layers (credentials, base URL, headers) are above, its
//! certificates and proxy settings below. The connections between them are ours, because kube-client's speak only HTTP/1.1.

mod connect;
mod connection;
mod connections;
#[cfg(test)]
mod tests;
mod tls;

use std::time::Duration;

use kube_client::client::ConfigExt;
use kube_client::{Client, Config};
use tower::{BoxError, ServiceBuilder};

pub(super) use connect::Connector;
pub(super) use connections::Connections;

/// A client with the configuration's credentials, over these connections.
///
/// kube-client's own stack also has retries and traces. They are left out here: the informer does both.
pub(super) fn client(config: &Config, connections: &Connections) -> Result<Client, kube_client::Error> {
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(connections.clone());
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// Whether the server identifies this client by its certificate: then other credentials need other connections.
pub(super) fn is_known_by_certificate(config: &Config) -> bool {
    let auth = &config.auth_info;
    auth.client_certificate.is_some() || auth.client_certificate_data.is_some()
}

/// Why a request over HTTP/2 was not answered, or its answer broke off.
#[derive(Debug, thiserror::Error)]
pub(in crate::transport) enum Failure {
    #[error("failed to connect within {0:?}")]
    ConnectTimeout(Duration),
    #[error("failed to connect")]
    Connect(#[source] BoxError),
    #[error("the server does not speak HTTP/2")]
    #[cfg_attr(not(feature = "rustls"), expect(dead_code, reason = "without TLS nothing is negotiated"))]
    NotSpoken,
    #[error("the HTTP/2 connection could not be opened")]
    Handshake(#[source] h2::Error),
    #[error("an HTTP/2 ping was not answered within {0:?}")]
    PingUnanswered(Duration),
    #[error("the HTTP/2 connection broke")]
    Connection(#[source] h2::Error),
    #[error("the HTTP/2 connection was closed")]
    Closed,
    #[error("the HTTP/2 stream broke")]
    Stream(#[source] h2::Error),
    #[error("the body of the request could not be read")]
    Body(#[source] kube_client::Error),
}
