//! A certificate authority for one server, made when it starts.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serve::http::ServerOptions;

/// Whether a server uses TLS, and the protocols that it offers (ALPN).
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) on: bool,
    pub(crate) protocols: &'static [&'static [u8]],
}

impl Default for Offer {
    fn default() -> Self {
        Self { on: false, protocols: &[b"h2", b"http/1.1"] }
    }
}

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error(transparent)]
    Certificate(#[from] rcgen::Error),
    #[error(transparent)]
    Config(#[from] rustls::Error),
}

impl Offer {
    /// Adds TLS to the options of a server, if it is on; the text is the certificate of the authority, which clients need.
    pub(crate) fn add_to(self, options: ServerOptions) -> Result<(ServerOptions, Option<String>), TlsError> {
        if !self.on {
            return Ok((options, None));
        }
        let (config, ca_pem) = self.certified(options.address.ip())?;
        Ok((ServerOptions { tls: Some(config), ..options }, Some(ca_pem)))
    }

    /// Makes a certificate for `localhost`, the loopback addresses and the address of the server.
    fn certified(&self, address: IpAddr) -> Result<(Arc<ServerConfig>, String), TlsError> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority.distinguished_name.push(DnType::CommonName, "testapi CA");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

        let names = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), address.to_string()];
        let mut server = CertificateParams::new(names)?;
        server.distinguished_name.push(DnType::CommonName, "testapi");
        server.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &authority)?;

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = self.protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok((Arc::new(config), authority.pem()))
    }
}
