//! The TLS of incoming connections: a feature, and without it a type that has no value.

#[cfg(feature = "tls")]
pub(super) use tokio_rustls::TlsAcceptor as Acceptor;

use super::ServerOptions;

/// The handshake of each connection; `None` for plain ones.
#[cfg(feature = "tls")]
pub(super) fn acceptor(options: &ServerOptions) -> Option<Acceptor> {
    let mut config = options.tls.clone()?;
    if config.alpn_protocols.is_empty() {
        std::sync::Arc::make_mut(&mut config).alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    Some(config.into())
}

#[cfg(not(feature = "tls"))]
#[derive(Clone)]
pub(super) enum Acceptor {}

#[cfg(not(feature = "tls"))]
impl Acceptor {
    pub(super) async fn accept(self, _: tokio::net::TcpStream) -> std::io::Result<tokio::net::TcpStream> {
        match self {}
    }
}

#[cfg(not(feature = "tls"))]
pub(super) fn acceptor(_: &ServerOptions) -> Option<Acceptor> {
    None
}
