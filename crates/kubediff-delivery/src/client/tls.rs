//! TLS with the cryptography of the other programs here: which one is used does not depend on what the process has installed.

use std::error::Error;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::Verifier;

use super::SinkError;

/// Trusts what the machine trusts, and these certificates in PEM.
pub(crate) fn config(ca: Option<&[u8]>) -> Result<ClientConfig, SinkError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(ca.unwrap_or_default())
        .collect::<Result<_, _>>()
        .map_err(|_| SinkError::Certificates)?;
    if ca.is_some() && certificates.is_empty() {
        return Err(SinkError::Certificates);
    }
    let provider = Arc::new(default_provider());
    let verifier = Verifier::new_with_extra_roots(certificates, provider.clone()).map_err(failed)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

fn failed(error: rustls::Error) -> SinkError {
    SinkError::Tls(Box::new(error) as Box<dyn Error + Send + Sync>)
}
