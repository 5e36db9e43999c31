//! A certificate authority for one server, made when it starts.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// The TLS configuration of a server, and the certificate that its clients need.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    /// The certificate of the authority.
    pub(crate) ca_pem: String,
}

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error(transparent)]
    Certificate(#[from] rcgen::Error),
    #[error(transparent)]
    Config(#[from] rustls::Error),
}

impl Tls {
    /// Makes a certificate for `localhost`, the loopback addresses and the address of the server. `protocols` are for
    /// ALPN.
    pub(crate) fn new(address: IpAddr, protocols: &[&[u8]]) -> Result<Self, TlsError> {
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
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Self { config: Arc::new(config), ca_pem: authority.pem() })
    }
}
