//! TLS below HTTP/2. It needs rustls: OpenSSL carries HTTP/1.1 only.

use kube_client::Config;
use tokio::io::{AsyncRead, AsyncWrite};
use tower::BoxError;

use super::Failure;

#[cfg(feature = "rustls")]
pub(super) use with_rustls::Tls;

/// Bytes to and from a server.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<B: AsyncRead + AsyncWrite + Send + Unpin> Bytes for B {}

/// TLS for the connections to one server. Without rustls this has no value.
#[cfg(not(feature = "rustls"))]
pub(super) enum Tls {}

#[cfg(not(feature = "rustls"))]
impl Tls {
    pub(super) fn new(_: &Config) -> Result<Self, BoxError> {
        Err("HTTP/2 over TLS needs the feature `ring` or `aws-lc-rs`".into())
    }

    pub(super) async fn connect(&self, _: Box<dyn Bytes>) -> Result<Box<dyn Bytes>, Failure> {
        match *self {}
    }
}

#[cfg(feature = "rustls")]
mod with_rustls {
    use std::sync::Arc;

    use kube_client::client::ConfigExt;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::pki_types::ServerName;

    use super::{BoxError, Bytes, Config, Failure};

    /// How ALPN names HTTP/2 (RFC 9113, section 3.1).
    const H2: &[u8] = b"h2";

    /// TLS for the connections to one server.
    pub(in super::super) struct Tls {
        connector: TlsConnector,
        name: ServerName<'static>,
    }

    impl Tls {
        pub(in super::super) fn new(config: &Config) -> Result<Self, BoxError> {
            let mut tls = config.rustls_client_config()?;
            tls.alpn_protocols = vec![H2.to_vec()];
            Ok(Self { connector: TlsConnector::from(Arc::new(tls)), name: server_name(config)? })
        }

        pub(in super::super) async fn connect(
            &self,
            plain: Box<dyn Bytes>,
        ) -> Result<Box<dyn Bytes>, Failure> {
            let encrypted = self.connector.connect(self.name.clone(), plain).await;
            let encrypted = encrypted.map_err(|error| Failure::Connect(error.into()))?;
            if encrypted.get_ref().1.alpn_protocol() != Some(H2) {
                return Err(Failure::NotSpoken);
            }
            Ok(Box::new(encrypted))
        }
    }

    /// The name that the server's certificate has to carry.
    fn server_name(config: &Config) -> Result<ServerName<'static>, BoxError> {
        let host = config.cluster_url.host().unwrap_or_default();
        // A URI has IPv6 addresses in brackets.
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Ok(ServerName::try_from(config.tls_server_name.clone().unwrap_or_else(|| host.to_owned()))?)
    }
}
