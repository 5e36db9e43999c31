//! The cryptography provider of rustls.

#[cfg(feature = "rustls")]
use tokio_rustls::rustls::crypto::CryptoProvider;

/// Installs a provider for rustls if the program has not installed one: that of this crate's features. Factories do it.
///
/// rustls chooses by itself only if exactly one provider is compiled in, and panics otherwise. Features add up over a
/// whole program, so an indirect dependency can bring the second.
pub fn ensure_tls_provider() {
    #[cfg(feature = "rustls")]
    if let (None, Some(provider)) = (CryptoProvider::get_default(), chosen()) {
        // An error means that another thread has just installed one, which serves as well.
        let _ = provider.install_default();
    }
}

/// The provider of this crate's features.
#[cfg(feature = "rustls")]
fn chosen() -> Option<CryptoProvider> {
    #[cfg(feature = "aws-lc-rs")]
    return Some(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    return Some(tokio_rustls::rustls::crypto::ring::default_provider());
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    None
}
