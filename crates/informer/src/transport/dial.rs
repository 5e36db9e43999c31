//! Connections to a server or to its proxy, without TLS above them.
//!
//! kube-client makes the same for itself, and does not let its connections be exchanged.

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
#[cfg(any(feature = "rustls", feature = "openssl"))]
use kube_client::client::ConfigExt;
use kube_client::{Config, Error};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt};

/// Opens connections to a host and port.
///
/// Implemented for all services of this shape, such as hyper-util's `HttpConnector`.
pub trait Connector:
    Service<Uri, Response: Io + 'static, Error: Into<BoxError>, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<C> Connector for C where
    C: Service<Uri, Response: Io + 'static, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// One connection.
pub trait Io: Read + Write + Connection + Send + Unpin {}
impl<C: Read + Write + Connection + Send + Unpin> Io for C {}

impl Connection for Box<dyn Io> {
    fn connected(&self) -> Connected {
        (**self).connected()
    }
}

/// Opens connections to the server of a configuration.
pub type Dialer = BoxCloneSyncService<Uri, Box<dyn Io>, BoxError>;

/// A dialer over connections of `tcp`: to the server, or through the proxy of the configuration.
///
/// # Errors
///
/// When the proxy's protocol is not supported, or the certificates of the configuration cannot be used.
pub fn dialer(config: &Config, tcp: impl Connector) -> Result<Dialer, Error> {
    let tcp = boxed(tcp);
    let Some(proxy) = &config.proxy_url else { return Ok(tcp) };
    let unsupported = || Error::ProxyProtocolUnsupported { proxy_url: Box::new(proxy.clone()) };
    let matcher = Matcher::builder().all(proxy.to_string()).build();
    let intercept = matcher.intercept(&config.cluster_url).ok_or_else(unsupported)?;
    match proxy.scheme_str() {
        Some("http") => Ok(boxed(tunnel(&intercept, tcp))),
        #[cfg(feature = "rustls")]
        Some("https") => Ok(boxed(tunnel(&intercept, config.rustls_https_connector_with_connector(tcp)?))),
        #[cfg(all(feature = "openssl", not(feature = "rustls")))]
        Some("https") => Ok(boxed(tunnel(&intercept, config.openssl_https_connector_with_connector(tcp)?))),
        Some("socks5") => {
            let socks = SocksV5::new(intercept.uri().clone(), tcp);
            Ok(boxed(match intercept.raw_auth() {
                Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                None => socks,
            }))
        }
        _ => Err(unsupported()),
    }
}

/// Opens TCP connections, to servers of any scheme.
pub fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp
}

fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

fn boxed(connector: impl Connector) -> Dialer {
    let connector = connector.map_response(|io| Box::new(io) as Box<dyn Io>);
    BoxCloneSyncService::new(connector.map_err(Into::into))
}
